"""Puts what happened in the episode so far into the observation, for policies that take observations alone."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eswm_gym.envs import HexRoomEnv
from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper


class History(EpisodeWrapper):
    """Adds `history` to the observation: (window, 4) int16, one row (s_{t-1}, a_{t-1}, s_t, s_goal) for each step.

    The oldest comes first; rows of -1 come last while there are fewer. At the start there is no step yet: the first
    row is (-1, -1, s_0, s_goal), and so is the first of each goal of `ManyGoals`. (Paper: appendix "Baseline
    Navigational Agent".)

    Args:
        env: a hexagonal room with states as integers, task `navigate`; around it may be `ManyGoals`.
        window: most rows; 15 is a whole episode with 19 locations.

    Raises:
        ValueError: if the environment is none of these, or the window is not positive.
    """

    def __init__(self, env: gym.Env, window: int = 15) -> None:
        gym.utils.RecordConstructorArgs.__init__(self, window=window)
        super().__init__(env)
        room = env.unwrapped
        if not isinstance(room, HexRoomEnv) or room.task != "navigate":
            raise ValueError("History needs a hexagonal room with the task 'navigate'")
        if not isinstance(room.state_space(), spaces.Discrete):
            raise ValueError("History needs states as integers")
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        self.window = window
        history = spaces.Box(-1, max(room.n_states, room.config.lattice.n_actions) - 1, (window, 4), np.int16)
        self.observation_space = spaces.Dict({**env.observation_space.spaces, "history": history})  # type: ignore[attr-defined]

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self._rows = [(-1, -1, int(obs["state"]), int(obs["goal"]))]
        return self._with_history(obs), info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        *_, before, goal = self._rows[-1]
        self._rows.append((before, int(action), int(info.get("end_state", obs["state"])), goal))
        if "goal_result" in info:
            self._rows.append((-1, -1, int(obs["state"]), int(obs["goal"])))
        self._rows = self._rows[-self.window :]
        return self._with_history(obs), reward, terminated, truncated, info

    def _with_history(self, obs: dict[str, Any]) -> dict[str, Any]:
        history = np.full((self.window, 4), -1, np.int16)
        history[: len(self._rows)] = self._rows
        return {**obs, "history": history}
