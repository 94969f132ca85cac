"""What an agent needs in the place of a stable-baselines3 policy."""

from __future__ import annotations

import gymnasium as gym

from eswm_gym.wrappers.action_mask_observation import ActionMaskObservation
from eswm_gym.wrappers.memory_bank_observation import MemoryBankObservation


def for_sb3(env: gym.Env) -> gym.Env:
    """Put into the observation what stable-baselines3 does not pass on to a policy: memory bank and action mask.

    Args:
        env: any environment; where it hands out neither, as around `DiscreteStates`, it stays as it is.
    """
    if getattr(env.unwrapped, "memory_bank", "none") != "none":
        env = MemoryBankObservation(env)
    return ActionMaskObservation(env) if hasattr(env.unwrapped, "action_masks") else env
