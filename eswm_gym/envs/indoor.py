"""The paper's 3-D world: a house seen through a camera, with moves of any length and direction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from eswm_gym.checks import require_choices
from eswm_gym.envs.base import STEP_PENALTY, TASKS
from eswm_gym.envs.indoor_camera import Camera, camera
from eswm_gym.rooms.indoor import (
    MAX_MEMORIES,
    REACH,
    House,
    Space,
    action_between,
    draw_bank,
    draw_house,
    draw_pool,
    from_procthor,
    moved,
    wrap,
)

PIXELS = 224
NEAR, FACING = 0.5, np.pi / 6  # metres and radians: the goal is reached within both
MARK = 0.25  # metres between the points of the walls that exploration counts
MEMORY_BANKS = ("cover", "none")


class IndoorEnv(gym.Env[dict[str, Any], np.ndarray]):
    """
    ## Description
    A house of one to four rooms with doors, furniture and pictures, a new one in each episode (paper: "ProcThor
    Experiments"), drawn by MiniWorld. The agent sees what a camera shows, 1.5 m above the floor, 90 degrees wide. It is
    told neither where it is nor which way it faces.

    In the task `navigate` the agent is shown a picture that was taken somewhere in the house, and has to go there and
    look the same way. In the task `explore` it has to see as much of the walls as it can.

    It needs the extra `indoor`, and EGL, which Mesa brings; no screen.

    ## Action Space
    `Box([-1.5, -1.5, -pi], [1.5, 1.5, pi], (3,), float32)`: metres to the right and ahead (less than 0: to the left and
    back) in a straight line, then radians clockwise. If a wall, a closed door or furniture is in the way, the agent
    stays where it is and does not turn either. Its radius is 0.2 m.

    ## Observation Space
    A flat `Dict`:

    - `image`: `Box(0, 255, (224, 224, 3), uint8)`, what the camera shows.
    - `goal`: likewise, at the goal pose, as it is now. Only in the task `navigate`.

    ## Rewards
    - `navigate`: -0.01 for each step, except 1 for the step that reaches the goal.
    - `explore`: the share of the walls that the step shows for the first time.

    ## Starting State
    A new house, a start and a goal drawn evenly from where the agent can stand, with headings drawn evenly. There is a
    way from one to the other. `reset(options=...)` takes any of:

    - `house`: a `House`, or a house in ProcTHOR's JSON format.
    - `start`, `goal`: poses (x, y, heading): metres, and radians clockwise from y; `goal` only in the task `navigate`.

    ## Episode End
    - Termination: `navigate`: the agent is within 0.5 m and 30 degrees of the goal. `explore`: it has seen 95 % of the
      walls.
    - Truncation: by the time limit of the registered ids, 40 steps. An environment built without `gymnasium.make` has
      none.

    ## Information
    `reset()` and `step()` return:

    - `pose`: (3,) float32, where the agent is.
    - `is_success`: bool, whether the task is done.
    - `blocked`: bool, whether the last action left the agent where it was.
    - `distance`: float, metres of the shortest way to the goal, inf where a closed door cuts it off; measured on a map
      of 15 cm squares where it is not a straight line. Only in the task `navigate`.
    - `coverage`: float, the share of the walls that has been seen. Only in the task `explore`.

    With `memory_bank="cover"`, `reset()` also returns `memory_bank`, a dict of transitions that form a tree over views
    which together show the house, in random order: `start` and `end`, (32, 224, 224, 3) uint8, and `action`, (32, 3)
    float32. Rows at the end are made up for with black pictures and actions of NaN, so that vector environments can
    stack banks.

    ## Arguments
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"cover"`, what `ESWM-Indoor-v0` uses.
    - `rooms=None`: how many rooms a house has; None: 1 to 4.
    - `render_mode=None`: or `"rgb_array"`: what the agent sees, beside the house from above.

    While an episode runs, `set_door(number, closed)` opens and closes doors.

    ## Version History
    * v0: Initial version
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(
        self,
        task: str = "navigate",
        memory_bank: str = "none",
        rooms: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        require_choices(
            task=(task, TASKS),
            memory_bank=(memory_bank, MEMORY_BANKS),
            render_mode=(render_mode, (None, *self.metadata["render_modes"])),
        )
        if rooms is not None and not rooms >= 1:
            raise ValueError(f"rooms must be None or at least 1, got {rooms}")
        self.task, self.memory_bank, self.n_rooms, self.render_mode = task, memory_bank, rooms, render_mode
        keys = ("image", "goal") if task == "navigate" else ("image",)
        self.observation_space = spaces.Dict({key: spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8) for key in keys})
        reach = np.array([REACH, REACH, np.pi], np.float32)
        self.action_space = spaces.Box(-reach, reach, dtype=np.float32)
        self._space: Space | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            ValueError: if an option is unknown, the house is none, start or goal is no pose where the agent can stand,
                or there is no way between them.
        """
        super().reset(seed=seed)
        options = options or {}
        known = ("house", "start", "goal") if self.task == "navigate" else ("house", "start")
        if unknown := set(options) - set(known):
            raise ValueError(f"the task {self.task!r} takes the reset options {known}, got {sorted(unknown)}")
        house = options.get("house")
        if isinstance(house, Mapping):
            house = from_procthor(house)
        elif not (house is None or isinstance(house, House)):
            raise ValueError(f"house must be a House or a dict in ProcTHOR's format, got {type(house).__name__}")
        space = Space(draw_house(self.np_random, self.n_rooms) if house is None else house)
        start, goal = self._ends(space, options.get("start"), options.get("goal"))
        self._space, self._pose, self._goal_pose = space, start, goal
        self._marks = _marks(space.house)
        self._seen = space.shows(start[None], self._marks)[0]
        info = self._info(blocked=False)
        if self.memory_bank == "cover":
            info["memory_bank"] = self._bank()
        return self._observation(), info

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            ValueError: if the action is not in the action space.
            ResetNeeded: before the first reset.
        """
        space = self._entered()
        action = np.asarray(action, np.float32)
        if not self.action_space.contains(action):
            raise ValueError(f"action must be in {self.action_space}, got {action!r}")
        there = moved(self._pose, action)
        blocked = not space.passable(self._pose[:2], there[:2])
        if not blocked:
            self._pose = there
        new = space.shows(self._pose[None], self._marks)[0] & ~self._seen
        self._seen |= new
        info = self._info(blocked)
        success = info["is_success"]
        reward = float(new.mean()) if self.task == "explore" else 1.0 if success else STEP_PENALTY
        return self._observation(), reward, success, False, info

    def render(self) -> np.ndarray | None:
        """(224, 448, 3) uint8: what the agent sees, and the house from above with the agent and the goal in it.

        Raises:
            ResetNeeded: before the first reset.
        """
        space = self._entered()
        if self.render_mode is None:
            return None
        plan = self._camera.plan(space.house, {"agent": self._pose, "goal": self._goal_pose})
        return np.concatenate([self._camera.picture(space.house, self._pose), plan], 1)

    @property
    def _camera(self) -> Camera:
        """Of this process, whichever that is: copies and forks of an environment have one of their own."""
        return camera(PIXELS)

    @property
    def house(self) -> House:
        """The house as it is now."""
        return self._entered().house

    @property
    def pose(self) -> np.ndarray:
        """(3,) float, where the agent is: metres, and radians clockwise from y; a copy."""
        self._entered()
        return self._pose.copy()

    @property
    def goal(self) -> np.ndarray | None:
        """(3,) float, the goal pose; None in the task `explore`; a copy."""
        self._entered()
        return None if self._goal_pose is None else self._goal_pose.copy()

    def set_door(self, number: int, closed: bool) -> None:
        """Open or close a door while the episode runs.

        Raises:
            ValueError: if there is no such door, or the agent or the goal stands in it.
        """
        space = Space(self._entered().house.with_door(number, closed))
        for name, pose in (("agent", self._pose), ("goal", self._goal_pose)):
            if pose is not None and not space.free(pose[:2]):
                raise ValueError(f"door {number} cannot be closed: the {name} stands in it")
        self._space = space

    def get_state(self) -> dict[str, Any]:
        """Return all that later steps and resets depend on, random numbers too, as a dict ready for JSON."""
        return {
            "house": dataclasses.asdict(self.house),
            "pose": self._pose.tolist(),
            "goal": None if self._goal_pose is None else self._goal_pose.tolist(),
            "seen": np.flatnonzero(self._seen).tolist(),
            "rng": self.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` returned, here or in another environment with the same arguments.

        Raises:
            ValueError: if the state is of another task or a pose is not free; nothing changes then.
        """
        if (state["goal"] is None) != (self.task == "explore"):
            raise ValueError(f"the task is {self.task!r}, but the state's goal is {state['goal']!r}")
        space = Space(House.from_dict(state["house"]))
        pose = self._place(space, state["pose"], "pose")
        goal = None if state["goal"] is None else self._place(space, state["goal"], "goal")
        self.np_random.bit_generator.state = state["rng"]
        self._space, self._pose, self._goal_pose = space, pose, goal
        self._marks = _marks(space.house)
        self._seen = np.isin(np.arange(len(self._marks)), state["seen"])

    def _entered(self) -> Space:
        if self._space is None:
            raise ResetNeeded("call reset() first: there is no house yet")
        return self._space

    def _place(self, space: Space, pose: Any, name: str) -> np.ndarray:
        """The pose that was asked for, or one drawn from where the agent can stand."""
        if pose is None:
            return np.array([*space.draw_points(self.np_random, 1)[0], wrap(self.np_random.uniform(-np.pi, np.pi))])
        pose = np.array(pose, float)
        if pose.shape != (3,) or not np.isfinite(pose).all():
            raise ValueError(f"{name} must be (x, y, heading), got {pose!r}")
        if not space.free(pose[:2]):
            raise ValueError(f"{name} {pose.tolist()} is not free: a wall, a closed door or furniture is within 0.2 m")
        return np.array([*pose[:2], wrap(pose[2:])[0]])

    def _ends(self, space: Space, start: Any, goal: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Start and goal; what is not given is drawn until there is a way and the goal is not reached at the start."""
        while True:
            one = self._place(space, start, "start")
            if self.task == "explore":
                return one, None
            other = self._place(space, goal, "goal")
            arrived, cut_off = reached(one, other), not np.isfinite(space.distance(one[:2], other[:2]))
            if not (arrived or cut_off):
                return one, other
            if start is not None and goal is not None:
                why = "is reached at the start" if arrived else "cannot be reached from the start"
                raise ValueError(f"goal {other.tolist()} {why} {one.tolist()}")

    def _bank(self) -> dict[str, np.ndarray]:
        """Transitions between poses that together show the house, in random order, and rows that stand for none."""
        space, rng = self._entered(), self.np_random
        pool = draw_pool(space.house, rng)
        rows = rng.permutation(draw_bank(rng, pool, MAX_MEMORIES))
        pictures = {row: self._camera.picture(space.house, pool.poses[row]) for row in np.unique(rows).tolist()}
        bank = {name: np.zeros((MAX_MEMORIES, PIXELS, PIXELS, 3), np.uint8) for name in ("start", "end")}
        bank["action"] = np.full((MAX_MEMORIES, 3), np.nan, np.float32)
        for i, (start, end) in enumerate(rows.tolist()):
            bank["start"][i], bank["end"][i] = pictures[start], pictures[end]
            bank["action"][i] = action_between(pool.poses[start], pool.poses[end])
        return bank

    def _observation(self) -> dict[str, np.ndarray]:
        poses = {"image": self._pose} | ({} if self._goal_pose is None else {"goal": self._goal_pose})
        return {key: self._camera.picture(self.house, pose) for key, pose in poses.items()}

    def _info(self, blocked: bool) -> dict[str, Any]:
        info: dict[str, Any] = {"pose": self._pose.astype(np.float32), "blocked": blocked}
        if self._goal_pose is None:
            coverage = float(self._seen.mean())
            return info | {"coverage": coverage, "is_success": coverage >= 0.95}
        distance = self._entered().distance(self._pose[:2], self._goal_pose[:2])
        return info | {"distance": distance, "is_success": reached(self._pose, self._goal_pose)}


def reached(pose: np.ndarray, goal: np.ndarray) -> bool:
    """Whether a pose is as near to the goal, and looks as much the same way, as success asks for."""
    right, forward, turn = action_between(pose, goal)
    return bool(np.hypot(right, forward) <= NEAR and abs(turn) <= FACING)


def _marks(house: House) -> np.ndarray:
    """(N, 2) points of the walls, some 25 cm apart; the same whichever doors are closed."""
    opened = dataclasses.replace(house, doors=tuple(dataclasses.replace(d, closed=False) for d in house.doors))
    marks = []
    for start, end in Space(opened).walls:
        n = max(1, round(float(np.linalg.norm(end - start)) / MARK))
        marks.append(start + (np.arange(n)[:, None] + 0.5) / n * (end - start))
    return np.concatenate(marks)
