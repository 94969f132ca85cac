"""Puts the memory bank into the observation, for loops that pass observations and drop infos."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces

from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper


class MemoryBankObservation(EpisodeWrapper):
    """Adds `memory_bank` to the observation: int64, the bank that `reset` handed out, padded with -1.

    (L - 1, 3) in a hexagonal room, (24, 51) in MiniGrid.

    Args:
        env: a hexagonal room with `memory_bank="spanning"`, or one of MiniGrid with `memory_bank="cover"`.

    Raises:
        ValueError: if the environment hands out no memory bank.
    """

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        room: Any = env.unwrapped
        if getattr(room, "memory_bank", "none") == "none":
            raise ValueError('MemoryBankObservation needs a room with memory_bank="spanning" or "cover"')
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "memory_bank": room.bank_space})  # type: ignore[attr-defined]

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self._bank = info["memory_bank"].copy()
        return self._with_bank(obs), info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        return self._with_bank(obs), reward, terminated, truncated, info

    def _with_bank(self, obs: dict[str, Any]) -> dict[str, Any]:
        return {**obs, "memory_bank": self._bank.copy()}
