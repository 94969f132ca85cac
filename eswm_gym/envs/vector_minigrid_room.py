"""Thousands of MiniGrid's rooms in one object: what `gymnasium.make_vec` makes of `ESWM-MiniGrid-v0`."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from eswm_gym.envs.grid_episodes import GridEpisodes, draw_grid_episodes, empty_grid_episodes
from eswm_gym.envs.minigrid_room import MiniGridRoomEnv
from eswm_gym.envs.vector_room import RoomVectorEnv
from eswm_gym.rooms.grid import (
    AHEAD,
    ENCODING,
    FORWARD,
    HERE,
    N_ACTIONS,
    SIZE,
    UNSEEN,
    VIEW,
    WALL,
    GridBatch,
    moved,
    pose_index,
    poses,
    seen_cells,
    steps_to,
)


class MiniGridRoomVectorEnv(RoomVectorEnv):
    """`MiniGridRoomEnv`s side by side, without MiniGrid's objects; see `RoomVectorEnv`.

    Args:
        num_envs: number of rooms.
        max_episode_steps: steps after which an episode is truncated. None, or -1 as in `gymnasium.make`: never.
        autoreset_mode: how rooms start anew; `"SameStep"`, `"Disabled"` and so on name them too.
        kwargs: `MiniGridRoomEnv`'s arguments.

    Raises:
        ValueError: if the render mode is `"human"`, num_envs or max_episode_steps is not positive.
    """

    BLOCK = (64, 256)
    ATTRIBUTES = (
        *("grid_classes", "pose", "grid", "agent_pos", "agent_dir", "front_pos", "dir_vec", "right_vec", "step_count"),
        *RoomVectorEnv.ATTRIBUTES,
    )
    _single: MiniGridRoomEnv

    def __init__(
        self,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **kwargs: Any,
    ) -> None:
        single = MiniGridRoomEnv(**kwargs)  # type: ignore[abstract]  # _gen_grid, which it never calls
        if kwargs.get("max_steps") is not None:
            limit = max_episode_steps
            max_episode_steps = single.max_steps if limit is None or limit == -1 else min(limit, single.max_steps)
        super().__init__(single, num_envs, max_episode_steps, autoreset_mode)
        every = poses(SIZE)
        self._turned = np.stack([pose_index(SIZE, *moved(every, action).T) for action in range(N_ACTIONS)], 1)
        front = every[:, :2] + AHEAD[every[:, 2]]
        self._front = front[:, 1] * SIZE + front[:, 0]  # (P,) the cell ahead of each pose
        # Where each room begins in the flat arrays of the running episodes.
        self._first_pose, self._first_cell = self._rooms * len(every), self._rooms * SIZE * SIZE
        self._known = np.zeros((num_envs, SIZE * SIZE + 1), bool)  # last column: off the grid

    def _empty(self, n: int) -> GridEpisodes:
        return empty_grid_episodes(self._single.memory_bank, n)

    def _draw(self, n: int) -> GridEpisodes:
        return draw_grid_episodes(self.np_random, self._single.task, self._single.memory_bank, n)

    def _beginning(self, info: dict[str, Any]) -> GridEpisodes:
        env = self._single
        room = GridBatch.of(env.grid_classes[None])
        start = pose_index(SIZE, *env.pose)
        goal = start if env.goal is None else pose_index(SIZE, *env.goal)
        distances = steps_to(room.free, np.array([goal]))[0]
        bank = info.get("memory_bank", np.array(-1))
        return GridEpisodes(room.grids.reshape(-1), room.views[0], start, goal, distances, room.visible[0], bank)

    def _moved(self, actions: np.ndarray) -> np.ndarray:
        front = self._now.grids.ravel().take(self._first_cell + self._front.take(self._place))
        blocked = (actions == FORWARD) & (front == WALL)
        return np.where(blocked, self._place, self._turned.ravel().take(self._place * N_ACTIONS + actions))

    def _forget(self, rows: np.ndarray) -> np.ndarray:
        self._known[rows] = False
        self._look(rows)
        return (self._now.seeable[rows] & ~self._known[rows, :-1]).sum(1)

    def _discover(self) -> np.ndarray:
        return self._look(self._rooms)

    def _look(self, rows: np.ndarray) -> np.ndarray:
        """Note what the agents of some rooms see; (len(rows),) int, how many cells they see for the first time."""
        shown = self._now.views[rows, self._place[rows]] != UNSEEN
        shown[:, HERE] = False
        cells = rows[:, None], seen_cells(SIZE)[self._place[rows]]
        new = shown & ~self._known[cells]
        self._known[cells] |= shown
        return new.sum(1)

    def _state(self, i: int) -> dict[str, Any]:
        now, explores = self._now, self._single.task == "explore"
        return {
            "grid": now.grids[i].reshape(SIZE, SIZE),
            "pose": poses(SIZE)[self._place[i]].tolist(),
            "goal": None if explores else poses(SIZE)[now.goal[i]].tolist(),
            "seen": np.flatnonzero(self._known[i, :-1]),
            "step_count": int(self._elapsed[i]),
        }

    def _observation(self) -> dict[str, np.ndarray]:
        views = self._now.views.reshape(-1, VIEW, VIEW)
        seen = views.take(self._first_pose + self._place, axis=0)
        goal = {} if self._single.task == "explore" else {"goal": views.take(self._first_pose + self._now.goal, axis=0)}
        return {"state": seen, **goal, "image": ENCODING.take(seen, axis=0)}

    def _action_mask(self) -> np.ndarray:
        return np.ones((self.num_envs, N_ACTIONS), np.int8)

    def _where(self) -> dict[str, np.ndarray]:
        where = {"pose": poses(SIZE).take(self._place, axis=0)}
        if self._single.task == "explore":
            where["coverage"] = 1 - self._left / self._now.seeable.sum(1)
        return where

    def _steps_to_goal(self) -> np.ndarray:
        distances = self._now.distances.ravel().take(self._first_pose + self._place)
        return distances.astype(np.int64)
