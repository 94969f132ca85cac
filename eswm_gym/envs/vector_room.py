"""Many rooms in one object: what the vector environments of all worlds share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from eswm_gym.envs.base import STEP_PENALTY, RoomEnv


class RoomVectorEnv(VectorEnv[dict[str, np.ndarray], np.ndarray, np.ndarray]):
    """Rooms side by side: what a `SyncVectorEnv` of single environments in the same rooms returns, but fast.

    Observations, rewards, ends and infos are the same in each mode of resetting. One random number generator draws the
    episodes of all rooms, many at a time: `reset(seed=...)` and the same actions give the same results again, but not
    those of single environments under the same seed.

    Arrays that `reset` and `step` return are not changed later. `HexRoomVectorEnv` and `MiniGridRoomVectorEnv` say how
    their rooms are stored and what moves do there.

    Args:
        env: a single environment, which this object keeps: it says what the rooms are like and what is seen of them.
        num_envs: number of rooms.
        max_episode_steps: steps after which an episode is truncated. None, or -1 as in `gymnasium.make`: never.
        autoreset_mode: how rooms start anew; `"SameStep"`, `"Disabled"` and so on name them too.

    Raises:
        ValueError: if the environment's render mode is `"human"`, num_envs or max_episode_steps is not positive.
    """

    BLOCK = (64, 1024)  # least and most episodes drawn at a time; a processor's cache holds no more
    ATTRIBUTES: tuple[str, ...] = ("layout", "place", "goal", "shortest_path_length")  # of single environments

    def __init__(
        self,
        env: RoomEnv,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        if env.render_mode == "human":
            raise ValueError("render_mode 'human' shows one room; a vector environment takes 'rgb_array' or 'ansi'")
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        max_episode_steps = None if max_episode_steps == -1 else max_episode_steps
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**env.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = env.render_mode
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, num_envs)
        self.action_space = batch_space(env.action_space, num_envs)
        self._single = env
        self._n_actions = int(env.action_space.n)  # type: ignore[attr-defined]

        self._now = self._empty(num_envs)  # the running episodes
        self._next = self._empty(0)  # episodes drawn ahead, of which `_taken` have begun
        self._taken = 0
        self._rooms = np.arange(num_envs)
        self._place = np.zeros(num_envs, np.int64)
        self._left = np.zeros(num_envs, np.int64)  # in the task `explore`: how much there is left to find
        self._elapsed = np.zeros(num_envs, np.int64)
        self._done = np.zeros(num_envs, bool)
        self._begun = np.zeros(num_envs, bool)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode in every room, or in some.

        Args:
            seed: of the generator that draws the episodes of all rooms. None: go on.
            options: `reset_mask`, (n,) bool, says which rooms; the rest are the single environment's, for all of these
                rooms.

        Raises:
            ValueError: if the seed is no integer, the mask is no (n,) bool array with a True, or the single
                environment does not take the options.
            ResetNeeded: if the mask leaves out a room that never started.
        """
        options = dict(options or {})
        rows = self._masked(options.pop("reset_mask", None))
        if seed is not None:
            if not isinstance(seed, int | np.integer):
                raise ValueError(f"seed must be one integer for all rooms, got {seed!r}")
            super().reset(seed=int(seed))
            self._next, self._taken = self._empty(0), 0
        self._single.np_random = self.np_random
        if options:
            self._begin_with(rows, options)
        else:
            self._begin(rows)
        infos = masked_infos(self._info(), None if len(rows) == self.num_envs else self._mask(rows))
        self._add_banks(infos, rows)
        return self._observation(), infos

    def step(
        self, actions: np.ndarray
    ) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take one step in every room; one that starts anew in this step ignores its action.

        Args:
            actions: (n,) integers, actions of the single environment.

        Raises:
            ValueError: if they are not that.
            ResetNeeded: before the first reset, or if an episode has ended and resetting is disabled.
        """
        actions = self._checked(actions)
        self._require_rooms(self._begun.all())
        ended: np.ndarray = self._done
        if self.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            raise ResetNeeded(
                f"the episodes in rooms {np.flatnonzero(ended).tolist()} have ended: "
                "reset them with options={'reset_mask': ...}"
            )

        place = self._moved(actions)
        blocked = place == self._place
        self._place = place
        self._elapsed += 1
        if self._single.task == "navigate":
            terminations = self._is_success()
            rewards = np.where(terminations, 1.0, STEP_PENALTY)
        else:
            new = self._discover()
            self._left -= new
            terminations = self._is_success()
            rewards = new.astype(np.float64)
        truncations = np.zeros(self.num_envs, bool)
        if self.max_episode_steps is not None:
            truncations = self._elapsed >= self.max_episode_steps

        infos: dict[str, Any] = {}
        rows = np.zeros(0, np.int64)  # that start anew
        if self.autoreset_mode == AutoresetMode.NEXT_STEP:
            rows = np.flatnonzero(ended)
            rewards[rows], terminations[rows], truncations[rows], blocked[rows] = 0, False, False, False
        elif self.autoreset_mode == AutoresetMode.SAME_STEP:
            rows = np.flatnonzero(terminations | truncations)
            if rows.size:
                infos = self._final(rows, blocked)
                blocked[rows] = False
        self._done = terminations | truncations
        if rows.size:
            self._begin(rows)
        infos.update(masked_infos(self._info(blocked), None))
        if rows.size:
            self._add_banks(infos, rows)
        return self._observation(), rewards, terminations, truncations, infos

    def render(self) -> tuple[Any, ...] | None:
        """Draw every room as the single environment does."""
        return tuple(self._at(i).render() for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        if "_single" in vars(self):  # Gymnasium also closes an object whose arguments were wrong
            self._single.close()

    def action_masks(self) -> np.ndarray:
        """(n, A) bool, what `info["action_mask"]` allows.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_rooms(self._begun.all())
        return self._action_mask().astype(bool)

    def call(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every room's single environment, such as `layout`, or its `action_masks()`.

        Raises:
            AttributeError: if there is no such attribute, or it is another method.
        """
        if name == "action_masks":
            return tuple(self.action_masks())
        if name in self.ATTRIBUTES:
            return tuple(getattr(self._at(i), name) for i in range(self.num_envs))
        value = getattr(self._single, name)  # the same in all rooms
        if callable(value):
            raise AttributeError(f"the rooms of a vector environment have no method {name!r}")
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The same as `call`."""
        return self.call(name)

    # What a world says

    @abstractmethod
    def _empty(self, n: int) -> Any:
        """Beginnings of n episodes: a named tuple of arrays with a row for each, `start`, `goal` and `bank` among
        them."""

    @abstractmethod
    def _draw(self, n: int) -> Any:
        """Draw the beginnings of n episodes."""

    @abstractmethod
    def _beginning(self, info: dict[str, Any]) -> Any:
        """The beginning of the episode that the single environment has just reset to, with this info."""

    @abstractmethod
    def _moved(self, actions: np.ndarray) -> np.ndarray:
        """(n,) int64, the places to which actions lead; where it leaves the agent where it is, an action is blocked."""

    @abstractmethod
    def _forget(self, rows: np.ndarray) -> np.ndarray:
        """Begin to explore some rooms; (len(rows),) int, how much there is to find."""

    @abstractmethod
    def _discover(self) -> np.ndarray:
        """(n,) int, how much the step found in each room."""

    @abstractmethod
    def _state(self, i: int) -> dict[str, Any]:
        """The state of the single environment in room i, without random numbers."""

    @abstractmethod
    def _observation(self) -> dict[str, np.ndarray]:
        """What is seen in all rooms."""

    @abstractmethod
    def _action_mask(self) -> np.ndarray:
        """(n, A) int8, a new array."""

    @abstractmethod
    def _where(self) -> dict[str, np.ndarray]:
        """What the infos of this world say more than those of all worlds, in new arrays."""

    @abstractmethod
    def _steps_to_goal(self) -> np.ndarray:
        """(n,) int64, of shortest ways."""

    # Arguments

    def _masked(self, mask: Any) -> np.ndarray:
        """The rooms of a reset mask."""
        if mask is None:
            return self._rooms
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise ValueError(f"reset_mask must be a ({self.num_envs},) bool array with at least one True, got {mask!r}")
        if not (mask | self._begun).all():
            raise ResetNeeded(f"reset_mask leaves out rooms that never started, got {mask!r}")
        return np.flatnonzero(mask)

    def _checked(self, actions: Any) -> np.ndarray:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "biu":
            raise ValueError(
                f"actions must be {self.num_envs} integers, got {actions.dtype} of shape {actions.shape}: {actions!r}"
            )
        wrong = np.flatnonzero((actions < 0) | (actions >= self._n_actions))
        if wrong.size:
            i = wrong[0]
            raise ValueError(f"actions must be from 0 to {self._n_actions - 1}, got {actions[i]} in room {i}")
        return actions.astype(np.int64, copy=False)

    def _mask(self, rows: np.ndarray) -> np.ndarray:
        """(n,) bool, True for some rooms."""
        mask = np.zeros(self.num_envs, bool)
        mask[rows] = True
        return mask

    # Episodes

    def _begin(self, rows: np.ndarray) -> None:
        """Start the next episodes in some rooms; draw a block of them whenever there is none left."""
        waiting = rows
        while waiting.size:
            if self._taken == len(self._next.start):
                self._next, self._taken = self._draw(int(np.clip(self.num_envs, *self.BLOCK))), 0
            n = min(len(waiting), len(self._next.start) - self._taken)
            for mine, drawn in zip(self._now, self._next, strict=True):
                mine[waiting[:n]] = drawn[self._taken : self._taken + n]
            self._taken, waiting = self._taken + n, waiting[n:]
        self._enter(rows)

    def _begin_with(self, rows: np.ndarray, options: dict[str, Any]) -> None:
        """Start an episode in some rooms by the single environment's reset, with options."""
        begun = [self._beginning(self._single.reset(options=options)[1]) for _ in rows]
        for i, beginning in zip(rows.tolist(), begun, strict=True):
            for mine, part in zip(self._now, beginning, strict=True):
                mine[i] = part
        self._enter(rows)

    def _enter(self, rows: np.ndarray) -> None:
        """Put the agents of some rooms at their starts."""
        self._place[rows] = self._now.start[rows]
        self._elapsed[rows] = 0
        self._begun[rows], self._done[rows] = True, False
        if self._single.task == "explore":
            self._left[rows] = self._forget(rows)

    @staticmethod
    def _require_rooms(begun: bool | np.bool_) -> None:
        if not begun:
            raise ResetNeeded("call reset() first: there are no rooms yet")

    def _at(self, i: int) -> Any:
        """The single environment, set to room i."""
        self._require_rooms(self._begun[i])
        single: Any = self._single
        single.set_state({**self._state(i), "rng": self.np_random.bit_generator.state})
        return single

    # What is returned

    def _is_success(self) -> np.ndarray:
        if self._single.task == "explore":
            return self._left == 0
        return self._place == self._now.goal

    def _info(self, blocked: np.ndarray | None = None) -> dict[str, np.ndarray]:
        info: dict[str, np.ndarray] = {
            "action_mask": self._action_mask(),
            **self._where(),
            "is_success": self._is_success(),
            "blocked": np.zeros(self.num_envs, bool) if blocked is None else blocked.copy(),
        }
        if self._single.task == "navigate":
            info["shortest_path_length"] = self._steps_to_goal()
        return info

    def _final(self, rows: np.ndarray, blocked: np.ndarray) -> dict[str, Any]:
        """`final_obs` and `final_info` of the rooms whose episodes end."""
        mask = self._mask(rows)
        seen = self._observation()
        observations = np.full(self.num_envs, None, object)
        columns = [list(column[rows]) if column.ndim > 1 else column[rows].tolist() for column in seen.values()]
        for i, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
            observations[i] = dict(zip(seen, values, strict=True))
        return {
            "final_obs": observations,
            "_final_obs": mask,
            "final_info": masked_infos(self._info(blocked), mask),
            "_final_info": mask.copy(),
        }

    def _add_banks(self, infos: dict[str, Any], rows: np.ndarray) -> None:
        if self._single.memory_bank != "none":
            banks = np.zeros(self._now.bank.shape, np.int64)
            banks[rows] = self._now.bank[rows]
            infos.update(memory_bank=banks, _memory_bank=self._mask(rows))


def masked_infos(info: dict[str, np.ndarray], mask: np.ndarray | None) -> dict[str, Any]:
    """Add Gymnasium's `_key` masks and set what they leave out to 0; None leaves out nothing."""
    infos: dict[str, Any] = {}
    for key, column in info.items():
        if mask is not None:
            column[~mask] = 0
        infos[key] = column
        infos[f"_{key}"] = np.ones(len(column), bool) if mask is None else mask.copy()
    return infos
