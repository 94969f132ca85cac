"""Puts what the agent has lived through into the observation, for policies that take observations alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eswm_gym.envs import HexRoomEnv
from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper


class EpisodicMemory(EpisodeWrapper):
    """Adds `memory` to the observation: (capacity, 3) int16, the episode's last transitions (s_s, a, s_e).

    The most recent is the last row; rows of -1 come first while there are fewer.

    Args:
        env: a hexagonal room with states as integers; around it may be `ManyGoals`, whose goals share the memory.
        capacity: most transitions (200 in Ritter et al. 2021; paper: appendix "Episodic Planning Networks").

    Raises:
        ValueError: if states are no integers, or the capacity is not positive.
    """

    def __init__(self, env: gym.Env, capacity: int = 200) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, capacity=capacity)
        super().__init__(env)
        room = env.unwrapped
        if not isinstance(room, HexRoomEnv) or not isinstance(room.state_space(), spaces.Discrete):
            raise ValueError("EpisodicMemory needs a hexagonal room with states as integers")
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        memory = spaces.Box(-1, max(room.n_states, room.config.lattice.n_actions) - 1, (capacity, 3), np.int16)
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "memory": memory})  # type: ignore[attr-defined]

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self._memory = np.full((self.capacity, 3), -1, np.int16)
        return self._with_memory(obs), info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        end = info.get("end_state", obs["state"])
        self._memory = np.concatenate([self._memory[1:], np.array([[self._state, action, end]], np.int16)])
        return self._with_memory(obs), reward, terminated, truncated, info

    def _with_memory(self, obs: dict[str, Any]) -> dict[str, Any]:
        self._state = int(obs["state"])
        return {**obs, "memory": self._memory.copy()}
