"""The paper's MiniGrid world: an agent that sees a few cells ahead, in a room of coloured floors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from minigrid.core.actions import Actions
from minigrid.core.constants import OBJECT_TO_IDX
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Floor, Wall
from minigrid.minigrid_env import MiniGridEnv

from eswm_gym.envs.base import RoomEnv, as_mask, check_vacant
from eswm_gym.envs.minigrid_rendering import draw_pose, draw_text, signs, with_legend
from eswm_gym.envs.rendering import WHITE, Screen
from eswm_gym.rooms.grid import (
    CLASSES,
    COVER_BANK_SIZE,
    EMPTY,
    N_ACTIONS,
    N_CELLS,
    N_CLASSES,
    SIZE,
    VIEW,
    WALL,
    GridBatch,
    GridConfig,
    classes_of,
    cover_bank,
    distances_to,
    generate_grids,
    pose_index,
    poses,
)
from eswm_gym.rooms.grid.checks import Pose, as_cell, as_grid, as_integers, as_pose

MISSIONS = {"navigate": "go to where the view is the goal", "explore": "see the whole room"}


class MiniGridRoomEnv(RoomEnv, MiniGridEnv):
    """
    ## Description
    A room of MiniGrid, a new one in each episode (paper: "MiniGrid environments"): 9 x 9 cells with walls all
    around, a few straight walls inside and a floor of random colours. The agent sees 5 x 5 cells ahead, but
    not through walls. It is told neither where it is nor which way it faces.

    In the task `navigate` the agent is shown the view of a goal pose, which no other pose of the room has, and
    has to reach that pose. In the task `explore` it has to see as many cells as it can.

    Movement, views and rendering are MiniGrid's own.

    ## Action Space
    `Discrete(3)`, MiniGrid's first three:

    - 0: turn left
    - 1: turn right
    - 2: forward

    A step into a wall leaves the agent where it is. MiniGrid's other `Actions`, which keys of its
    `ManualControl` send, are steps that do nothing; as plain integers they are errors.

    ## Observation Space
    A flat `Dict`:

    - `state`: the view as classes, `Box(0, 8, (5, 5), uint8)`, indexed [x, y] as MiniGrid's images: the agent
      is at [2, 4] and looks towards smaller y. Its own cell always shows as empty.
    - `goal`: the view at the goal pose, likewise, as it is now: walls that come or go show. Only in the task
      `navigate`.
    - `image`: the same view in MiniGrid's encoding, `Box(0, 10, (5, 5, 3), uint8)`, for MiniGrid's wrappers.
      Its bound is not 255, so that stable-baselines3 does not take it for a picture.

    The nine classes, in order: unseen, wall, empty (plain floor), red, green, blue, purple, yellow, grey floor.

    MiniGrid's `direction` would be a compass and is left out, and so is its `mission`, which never changes.
    Its wrappers work, except `FlatObsWrapper` and `DictObservationSpaceWrapper`, which read the mission, and
    `DirectionObsWrapper`, which looks for a `Goal` object.

    ## Rewards
    - `navigate`: -0.01 for each step, except 1 for the step that reaches the goal.
    - `explore`: the number of cells, walls too, that the step shows for the first time. What the first view
      shows counts as seen already; the cell under the agent is not seen.

    ## Starting State
    A new room, a start drawn uniformly from the free poses, and a goal drawn uniformly from the other poses
    whose view is unique in the room. A pose is (x, y, heading), a heading being 0: right, 1: down, 2: left or
    3: up. All free cells hang together, so that every pose can be reached. `reset(options=...)` takes any of:

    - `grid`: the room as (9, 9) classes, indexed [y, x].
    - `start`, `goal`: poses; `goal` only in the task `navigate`.

    ## Episode End
    - Termination: `navigate`: the agent is at the goal pose. `explore`: it has seen every cell that can be
      seen from where it can go.
    - Truncation: by the time limit of the registered ids, 60 steps, which is Gymnasium's: MiniGrid's own
      `max_steps` is off. An environment built without `gymnasium.make` has none.

    ## Information
    `reset()` and `step()` return:

    - `action_mask`: (3,) int8, all 1: every action can be tried. `action_masks()` returns the same as bool.
    - `pose`: (3,) int64, where the agent is.
    - `is_success`: bool, whether the task is done.
    - `blocked`: bool, whether the last action left the agent where it was.
    - `shortest_path_length`: int, actions from here to the goal, turns too, -1 if new walls cut it off. Only in the
      task `navigate`.
    - `coverage`: float, the share of what can be seen that has been seen. Only in the task `explore`.

    With `memory_bank="cover"`, `reset()` also returns:

    - `memory_bank`: (24, 51) int64, transitions in random order: the 25 classes of a view, the
      action and the 25 classes of the view after it. Rows of -1 at the end make up for missing ones, so that
      vector environments can stack the banks. `bank[bank[:, 0] >= 0]` drops them.

    ## Arguments
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"cover"`, what `ESWM-MiniGrid-v0` uses.
    - `render_mode=None`: `"human"`, `"rgb_array"` or `"ansi"`. A white triangle is the goal pose.
    - `max_steps=None`: MiniGrid's own time limit; None is no limit.
    - `highlight`, `tile_size`, `screen_size`, `agent_pov`: MiniGrid's.

    While an episode runs, `add_walls(cells)` and `remove_walls(cells)` change the room, and `get_state()` and
    `set_state(state)` save it and go back. The environment can be copied and pickled.

    ## Version History
    * v0: Initial version
    """

    metadata = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 10}
    MEMORY_BANKS = ("cover", "none")
    LAYOUT_OPTION = "grid"

    def __init__(
        self,
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
        max_steps: int | None = None,
        **kwargs: Any,
    ) -> None:
        self._check_arguments(task, memory_bank, render_mode)
        MiniGridEnv.__init__(
            self,
            MissionSpace(lambda: MISSIONS[task]),
            grid_size=SIZE,
            max_steps=2**63 - 1 if max_steps is None else max_steps,
            see_through_walls=False,
            agent_view_size=VIEW,
            render_mode=render_mode,
            **kwargs,
        )
        self._screen = Screen()
        self.task = task
        self.memory_bank = memory_bank
        keys = ("state", "goal") if task == "navigate" else ("state",)
        shown: dict[str, spaces.Space] = {key: spaces.Box(0, N_CLASSES - 1, (VIEW, VIEW), np.uint8) for key in keys}
        shown["image"] = spaces.Box(0, max(OBJECT_TO_IDX.values()), (VIEW, VIEW, 3), np.uint8)
        self.observation_space = spaces.Dict(shown)
        self.action_space = spaces.Discrete(N_ACTIONS)
        self.goal: Pose | None = None

    # MiniGridEnv leaves the types of its observations and actions open.
    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            ValueError: if an option is unknown, the grid is no room of this kind, start or goal is no free pose,
                they are the same, or the view at the goal is not unique.
        """
        gym.Env.reset(self, seed=seed)  # MiniGrid's own does no more than is done here
        self._check_options(options := options or {})
        grid = as_grid(options["grid"], connected=True) if "grid" in options else self._draw_grid()
        start, goal = self._draw_ends(grid, options.get("start"), options.get("goal"))
        self._enter(grid, start, goal, step_count=0)
        self._seen = self._sight[self._index()].copy()
        if self.render_mode == "human":
            self.render()
        info = self._info(blocked=False)
        if self.memory_bank == "cover":
            info["memory_bank"] = cover_bank(grid, self.np_random)
        return self.gen_obs(), info

    def step(  # type: ignore[override]
        self, action: int | np.integer
    ) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            ValueError: if the action is neither an integer from 0 to 2 nor one of MiniGrid's `Actions`.
            ResetNeeded: before the first reset.
        """
        before = self.pose
        if not (self.action_space.contains(action) or isinstance(action, Actions)):
            raise ValueError(f"action must be an integer from 0 to {N_ACTIONS - 1}, got {action!r}")
        obs, _, _, truncated, _ = super().step(action)
        new = self._sight[self._index()] & ~self._seen
        self._seen |= new
        info = self._info(blocked=self.pose == before)
        return obs, self._reward_of_step(info["is_success"], new.sum()), info["is_success"], truncated, info

    def gen_obs(self) -> dict[str, Any]:
        """Return the observation; MiniGrid's `step` calls it."""
        image = super().gen_obs()["image"]
        goal = {} if self.goal is None else {"goal": self._view_at_end.copy()}
        return {"state": classes_of(image), **goal, "image": image}

    def render(self) -> Any:
        """Draw the room: (height, width, 3) uint8 for `rgb_array`, a window for `human`, text for `ansi`.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_reset()
        if self.render_mode == "ansi":
            return draw_text(self.grid_classes, self.pose, self.goal)
        picture = self.get_frame(self.highlight, self.tile_size, self.agent_pov)
        if not self.agent_pov:
            picture = with_legend(picture, signs(self.goal is not None, self.highlight))
        if self.render_mode == "human":
            self._screen.show(picture, self.metadata["render_fps"])
        return picture if self.render_mode == "rgb_array" else None

    def get_full_render(self, highlight: bool, tile_size: int) -> np.ndarray:
        """Draw the whole room, as MiniGrid's method of the same name does, and the goal pose on top."""
        image = super().get_full_render(highlight, tile_size)
        if self.goal is not None:
            draw_pose(image, self.goal, WHITE, tile_size)
        return image

    def close(self) -> None:
        """Close the window, if there is one, and no other one."""
        self._screen.close()

    @property
    def pose(self) -> Pose:
        """Where the agent is, as (x, y, heading).

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_reset()
        x, y = self.agent_pos
        return int(x), int(y), int(self.agent_dir)

    @property
    def grid_classes(self) -> np.ndarray:
        """(9, 9) int8, the room as it is now, indexed [y, x]; a copy.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._require_reset()
        return classes_of(self.grid.encode()).T.astype(np.int8, order="C")

    place, layout = pose, grid_classes  # their names in all worlds

    @property
    def bank_space(self) -> spaces.Box:
        """The space of the memory banks that `reset` hands out: (24, 51) int64, rows of -1 at the end included."""
        view = [N_CLASSES - 1] * N_CELLS
        return spaces.Box(-1, np.tile([*view, N_ACTIONS - 1, *view], (COVER_BANK_SIZE, 1)), dtype=np.int64)

    @property
    def shortest_path_length(self) -> int | None:
        """Moves from here to the goal, turns counted, -1 if it is cut off; None without a goal."""
        return None if self.goal is None else int(self._distances[self._index()])

    def action_masks(self) -> np.ndarray:
        """(3,) bool, all True; the name is MaskablePPO's."""
        self._require_reset()
        return np.ones(N_ACTIONS, bool)

    def add_walls(self, cells: Iterable[tuple[int, int]]) -> None:
        """Turn free cells (x, y) into walls while the episode runs.

        Raises:
            ValueError: naming a cell that holds the agent or the goal, is a wall or does not lie inside.
        """
        cells = [as_cell(cell, SIZE) for cell in cells]
        check_vacant("cell", cells, self.pose[:2], self.goal and self.goal[:2])
        self._set_cells(cells, to_wall=True)

    def remove_walls(self, cells: Iterable[tuple[int, int]]) -> None:
        """Turn walls at cells (x, y) into plain floor while the episode runs.

        Raises:
            ValueError: naming a cell that is not a wall or does not lie inside.
        """
        self._set_cells([as_cell(cell, SIZE) for cell in cells], to_wall=False)

    def get_state(self) -> dict[str, Any]:
        """Return all that later steps and resets depend on, random numbers too, as a dict ready for JSON."""
        return {
            "grid": self.grid_classes.tolist(),
            "pose": list(self.pose),
            "goal": None if self.goal is None else list(self.goal),
            "seen": np.flatnonzero(self._seen).tolist(),
            "step_count": self.step_count,
            "rng": self.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` returned, here or in another environment with the same arguments.

        Raises:
            ValueError: if the state is of another task, its grid is no room of this kind, or the rest does not fit the
                grid; nothing changes then.
        """
        self._check_task(state)
        grid = as_grid(state["grid"])
        pose = as_pose(grid, state["pose"], "pose")
        goal = None if state["goal"] is None else as_pose(grid, state["goal"], "goal")
        seen = as_mask(state["seen"], SIZE * SIZE, "seen")
        (steps,) = as_integers([state["step_count"]], 1, "step_count")
        if steps < 0:
            raise ValueError(f"step_count must not be negative, got {steps}")
        self.np_random.bit_generator.state, self._seen = state["rng"], seen
        self._enter(grid, pose, goal, steps)

    def _require_reset(self) -> None:
        if self.agent_pos is None:
            raise ResetNeeded("call reset() first: there is no room yet")

    def _enter(self, classes: np.ndarray, pose: Pose, goal: Pose | None, step_count: int) -> None:
        """Put the agent into a room of these classes."""
        self.grid = Grid(SIZE, SIZE)
        for y, x in np.argwhere(classes != EMPTY).tolist():
            self.grid.set(x, y, Wall() if classes[y, x] == WALL else Floor(CLASSES[classes[y, x]]))
        self.agent_pos, self.agent_dir = pose[:2], pose[2]
        self.goal, self.step_count = goal, step_count
        self._measure()

    def _set_cells(self, cells: list[tuple[int, int]], to_wall: bool) -> None:
        grid = self.grid_classes
        for x, y in cells:
            if (grid[y, x] == WALL) == to_wall:
                raise ValueError(f"cell {(x, y)} is a wall already" if to_wall else f"cell {(x, y)} is not a wall")
        for x, y in cells:
            self.grid.set(x, y, Wall() if to_wall else None)
        self._measure()

    def _draw_grid(self) -> np.ndarray:
        while True:  # in rooms that look the same all over there is no goal
            grids = generate_grids(self.np_random, 1, GridConfig())
            if GridBatch.of(grids).unique.sum() > 1:
                return grids[0]

    def _draw_ends(self, grid: np.ndarray, start: Any, goal: Any) -> tuple[Pose, Pose | None]:
        """Return start and goal (None in the task `explore`): those given, else random ones."""
        room = GridBatch.of(grid[None])
        starts, goals = room.free[0], room.unique[0]
        if goal is not None:
            goal = as_pose(grid, goal, "goal")
            if not goals[pose_index(SIZE, *goal)]:
                raise ValueError(f"goal {goal} must have a view that no other pose has")
            starts[pose_index(SIZE, *goal)] = False
        start = self._draw_pose(starts) if start is None else as_pose(grid, start, "start")
        if self.task == "explore":
            return start, None
        if start == goal:
            raise ValueError(f"goal {goal} must be another pose than start {start}")
        goals[pose_index(SIZE, *start)] = False
        if not goals.any():
            raise ValueError("grid has no pose, apart from the start, with a view that no other pose has")
        return start, goal or self._draw_pose(goals)

    def _draw_pose(self, among: np.ndarray) -> Pose:
        x, y, heading = poses(SIZE)[self.np_random.choice(np.flatnonzero(among))].tolist()
        return x, y, heading

    def _measure(self) -> None:
        """Find what each pose sees, and its distance to the goal or, where there is none, to the agent.

        Once for each change of the room: observations and infos of the steps between read it off.
        """
        room = GridBatch.of(self.grid_classes[None])
        end = pose_index(SIZE, *(self.pose if self.goal is None else self.goal))
        self._distances = distances_to(room.targets[0], end)
        self._sight = room.sight[0]
        self._seeable = self._sight[(self._distances >= 0) & room.free[0]].any(0)
        self._view_at_end = room.views[0, end].reshape(VIEW, VIEW).astype(np.uint8)

    def _index(self) -> int:
        return pose_index(SIZE, *self.pose)

    def _is_success(self) -> bool:
        return self.pose == self.goal if self.goal is not None else not (self._seeable & ~self._seen).any()

    def _info(self, blocked: bool) -> dict[str, Any]:
        info = {**super()._info(blocked), "pose": np.array(self.pose, np.int64)}
        if self.goal is None:
            info["coverage"] = float(1 - (self._seeable & ~self._seen).sum() / self._seeable.sum())
        return info
