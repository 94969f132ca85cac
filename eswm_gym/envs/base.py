"""What the environments of all worlds share: tasks, rewards, and what an episode in one room is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from eswm_gym.checks import require_choices

TASKS = ("navigate", "explore")
STEP_PENALTY = -0.01


class RoomEnv(gym.Env[dict[str, Any], Any]):
    """One room with the tasks `navigate` and `explore`. A place is where an agent can be: a location, or a pose.

    Attributes:
        task: one of `TASKS`.
        memory_bank: what bank `reset` hands out, one of `MEMORY_BANKS`.
        goal: the place to reach; None in the task `explore`.
    """

    MEMORY_BANKS: ClassVar[tuple[str, ...]]
    LAYOUT_OPTION: ClassVar[str]  # the reset option that takes a layout
    task: str
    memory_bank: str
    goal: Any

    @property
    @abstractmethod
    def place(self) -> Any:
        """Where the agent is."""

    @property
    @abstractmethod
    def layout(self) -> Any:
        """The room as it is now, in the form that the reset option `LAYOUT_OPTION` takes.

        Raises:
            ResetNeeded: before the first reset.
        """

    @property
    @abstractmethod
    def bank_space(self) -> spaces.Box:
        """The space of the memory banks that `reset` hands out, rows of -1 at the end included."""

    @property
    @abstractmethod
    def shortest_path_length(self) -> int | None:
        """Steps from here to the goal, -1 if it is cut off; None without a goal."""

    @abstractmethod
    def action_masks(self) -> np.ndarray:
        """(A,) bool, the actions that `info["action_mask"]` allows; the name is MaskablePPO's."""

    def _action_mask(self) -> np.ndarray:
        """(A,) int8, a new array of what `action_masks` returns."""
        return self.action_masks().astype(np.int8)

    @abstractmethod
    def _is_success(self) -> bool:
        """Whether the task is done."""

    def _check_arguments(self, task: str, memory_bank: str, render_mode: str | None) -> None:
        require_choices(
            task=(task, TASKS),
            memory_bank=(memory_bank, self.MEMORY_BANKS),
            render_mode=(render_mode, (None, *self.metadata["render_modes"])),
        )

    def _check_options(self, options: dict[str, Any]) -> None:
        """Raise a ValueError if `reset` does not take these options."""
        known = (self.LAYOUT_OPTION, "start", "goal") if self.task == "navigate" else (self.LAYOUT_OPTION, "start")
        if unknown := set(options) - set(known):
            raise ValueError(f"the task {self.task!r} takes the reset options {known}, got {sorted(unknown)}")

    def _check_task(self, state: dict[str, Any]) -> None:
        """Raise a ValueError if what `get_state` returned is of the other task."""
        if (state["goal"] is None) != (self.task == "explore"):
            raise ValueError(f"the task is {self.task!r}, but the state's goal is {state['goal']!r}")

    def _reward_of_step(self, is_success: bool, n_new: int) -> float:
        """The reward of a step; `n_new` is what it showed for the first time."""
        if self.task == "explore":
            return float(n_new)
        return 1.0 if is_success else STEP_PENALTY

    def _info(self, blocked: bool) -> dict[str, Any]:
        """What `reset` and `step` say in all worlds; `blocked`: whether the last action left the agent where it was."""
        info: dict[str, Any] = {
            "action_mask": self._action_mask(),
            "is_success": self._is_success(),
            "blocked": blocked,
        }
        if self.goal is not None:
            info["shortest_path_length"] = self.shortest_path_length
        return info


def check_vacant(kind: str, walls: Iterable[Any], agent: Any, goal: Any) -> None:
    """Check that new walls leave the agent and the goal alone.

    Raises:
        ValueError: naming the `kind` of place and the place that is taken.
    """
    for name, taken in (("agent", agent), ("goal", goal)):
        if taken in walls:
            raise ValueError(f"a wall cannot be put on {kind} {taken}: the {name} is there")


def as_mask(indices: Any, n: int, name: str) -> np.ndarray:
    """(n,) bool, True at these indices.

    Raises:
        ValueError: naming `name`, if they are no integers from 0 to n - 1.
    """
    array = np.asarray(indices)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= n)):
        raise ValueError(f"{name} must be integers from 0 to {n - 1}, got {indices!r}")
    return np.isin(np.arange(n), array)
