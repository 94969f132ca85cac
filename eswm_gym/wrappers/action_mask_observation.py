"""Puts the action mask into the observation, for loops that pass observations and drop infos."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class ActionMaskObservation(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """Adds `action_mask` to the observation: (n,) int8, which of the n actions `info["action_mask"]` allows.

    Args:
        env: an environment of this package, wrapped or not.

    Raises:
        ValueError: if the environment hands out no action mask.
    """

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not hasattr(env.unwrapped, "action_masks"):
            raise ValueError("ActionMaskObservation needs an environment with action masks")
        mask = spaces.MultiBinary(int(env.action_space.n))  # type: ignore[attr-defined]
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "action_mask": mask})  # type: ignore[attr-defined]

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        return _with_mask(obs, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return _with_mask(obs, info), reward, terminated, truncated, info


def _with_mask(obs: dict[str, Any], info: dict[str, Any]) -> dict[str, Any]:
    return {**obs, "action_mask": np.array(info["action_mask"], np.int8)}
