"""Puts the memory bank into the observation, for loops that pass observations and drop infos."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces


class MemoryBankObservation(gym.Wrapper, gym.utils.RecordConstructorArgs):
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

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        self._bank = info["memory_bank"]
        return self._with_bank(obs), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        obs, *rest = self.env.step(action)
        return (self._with_bank(obs), *rest)  # type: ignore[return-value]

    def _with_bank(self, obs: dict[str, Any]) -> dict[str, Any]:
        return {**obs, "memory_bank": self._bank.copy()}
