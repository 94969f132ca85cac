"""Views with errors: some of the cells that the agent sees are wrong or missing."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.rooms.grid import ENCODING, N_CELLS, VIEW, with_errors
from eswm_gym.wrappers.episode_wrapper import EpisodeWrapper


class ViewErrors(EpisodeWrapper):
    """Each cell that a view shows is wrong with half of a probability and unseen with the other half.

    That holds for `state`, anew at each step; for `goal`, once in each episode; and for the views of the memory bank.
    `image` agrees with `state`. The agent's own cell is never wrong.

    Args:
        env: one of MiniGrid's rooms.
        wrong_cells: the probability, from 0 to 1.

    Raises:
        ValueError: if that is no probability, or the environment shows no views.
    """

    def __init__(self, env: gym.Env, wrong_cells: float = 0.05) -> None:
        if not 0 <= wrong_cells <= 1:
            raise ValueError(f"wrong_cells must lie between 0 and 1, got {wrong_cells}")
        shown = getattr(env.observation_space, "spaces", {}).get("state")
        if getattr(shown, "shape", None) != (VIEW, VIEW):
            raise ValueError(f"ViewErrors needs views of {(VIEW, VIEW)} cells as `state`, got {env.observation_space}")
        gym.utils.RecordConstructorArgs.__init__(self, wrong_cells=wrong_cells)
        super().__init__(env)
        self.wrong_cells = wrong_cells
        self._errors = np.random.default_rng()

    def begin(
        self, obs: dict[str, Any], info: dict[str, Any], seed: int | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self._errors = np.random.default_rng([seed, 1])  # not the stream that draws the room
        self._goal = self._seen(obs["goal"]) if "goal" in obs else None
        if "memory_bank" in info:
            info = {**info, "memory_bank": with_errors(self._errors, info["memory_bank"][None], self.wrong_cells)[0]}
        return self._with_errors(obs), info

    def follow(
        self, action: Any, obs: dict[str, Any], reward: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        return self._with_errors(obs), reward, terminated, truncated, info

    def _with_errors(self, obs: dict[str, Any]) -> dict[str, Any]:
        state = self._seen(obs["state"])
        goal = {} if self._goal is None else {"goal": self._goal.copy()}
        return {**obs, "state": state, **goal, "image": ENCODING[state]}

    def _seen(self, view: np.ndarray) -> np.ndarray:
        cells = view.reshape(1, 1, N_CELLS).astype(np.int64)
        return with_errors(self._errors, cells, self.wrong_cells).reshape(view.shape).astype(view.dtype)
