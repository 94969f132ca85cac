"""AI2-THOR's houses (Kolve et al., 2017), for people who have Unity. Not run against Unity: tested against AI2-THOR's
own Python client with a stand-in for the Unity player.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from eswm_gym.checks import require_choices
from eswm_gym.envs.base import STEP_PENALTY, TASKS
from eswm_gym.envs.indoor import PIXELS, reached
from eswm_gym.rooms.indoor.poses import REACH, moved, wrap

NEARBY = 1.0  # metres: exploration counts the positions that the agent has come so near to
# Given to AI2-THOR at each reset. It refuses positions off its grid unless `snapToGrid` is off.
SETTINGS = {"width": PIXELS, "height": PIXELS, "fieldOfView": 90, "snapToGrid": False}


class AI2ThorEnv(gym.Env[dict[str, Any], np.ndarray]):
    """
    ## Description
    `IndoorEnv` with AI2-THOR's houses and pictures instead of MiniWorld's (paper: "ProcThor Experiments"). It drives an
    `ai2thor.controller.Controller` of version 5 that you made, with an agent of the mode `default`.

    Not run against Unity: it was tested at the level of the protocol, against the real Python client of AI2-THOR 5.0.0
    with a stand-in for the Unity player. What was tested is what is sent and how answers are read, and not Unity's
    collisions, reachable positions or pictures.

    AI2-THOR's x is our x, its z our y, and its `rotation.y`, in degrees, our heading. The camera looks straight ahead.

    ## Action Space
    `Box([-1.5, -1.5, -pi], [1.5, 1.5, pi], (3,), float32)`: metres to the right and ahead (less than 0: to the left and
    back), then radians clockwise. Where AI2-THOR refuses the new pose, the agent stays where it is and does not turn
    either. Unlike in `IndoorEnv`, what lies on the way does not matter: a step is one `Teleport`, as in the paper, and
    can pass through a wall.

    ## Observation Space
    A flat `Dict`:

    - `image`: `Box(0, 255, (224, 224, 3), uint8)`, what the camera shows, 90 degrees wide.
    - `goal`: likewise, at the goal pose, as it was at `reset`. Only in the task `navigate`.

    ## Rewards
    - `navigate`: -0.01 for each step, except 1 for the step that reaches the goal.
    - `explore`: the share of the reachable positions that the step comes within 1 m of for the first time.

    ## Starting State
    A start and a goal drawn evenly from what `GetReachablePositions` returns, with headings drawn evenly.
    `reset(options=...)` takes any of:

    - `house`: a house in ProcTHOR's JSON format, or the name of a scene. Without one it is drawn from `houses`; without
      those it is the controller's last one. Where the house says where the agent begins (`house["metadata"]["agent"]`),
      the agent is put there first, since AI2-THOR finds reachable positions from where it is.
    - `start`, `goal`: poses (x, y, heading): metres, and radians clockwise from y; `goal` only in the task `navigate`.

    ## Episode End
    - Termination: `navigate`: the agent is within 0.5 m and 30 degrees of the goal. `explore`: `coverage` is at least
      0.95.
    - Truncation: none; `gymnasium.wrappers.TimeLimit` sets one.

    ## Information
    `reset()` and `step()` return:

    - `pose`: (3,) float32, where AI2-THOR says that the agent is.
    - `is_success`: bool, whether the task is done.
    - `blocked`: bool, whether the last action left the agent where it was.
    - `coverage`: float, the share of the reachable positions that the agent has come within 1 m of, walls or not. Only
      in the task `explore`.

    ## Arguments
    - `controller`: the controller, or a function that makes one, which the first `reset` calls and `close` stops. A
      controller that you pass is yours to stop. Each `reset` sets its pictures to 224 x 224 and 90 degrees, and
      `snapToGrid` to False.
    - `task="navigate"`: or `"explore"`.
    - `houses=()`: what `reset` draws houses from.
    - `render_mode=None`: or `"rgb_array"`: what the agent sees.

    ## Version History
    * v0: Initial version
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}

    def __init__(
        self,
        controller: Any | Callable[[], Any],
        task: str = "navigate",
        houses: Sequence[dict[str, Any] | str] = (),
        render_mode: str | None = None,
    ) -> None:
        require_choices(task=(task, TASKS), render_mode=(render_mode, (None, *self.metadata["render_modes"])))
        self.task, self.houses, self.render_mode = task, houses, render_mode
        self._make = controller if callable(controller) else None
        self._controller: Any = None if callable(controller) else controller
        keys = ("image", "goal") if task == "navigate" else ("image",)
        self.observation_space = spaces.Dict({key: spaces.Box(0, 255, (PIXELS, PIXELS, 3), np.uint8) for key in keys})
        reach = np.array([REACH, REACH, np.pi], np.float32)
        self.action_space = spaces.Box(-reach, reach, dtype=np.float32)
        self._event: Any = None  # AI2-THOR's last answer
        self._ready = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            ValueError: if an option is unknown, AI2-THOR refuses the house, the start or the goal, the goal is reached
                at the start, or pictures are of another size.
        """
        super().reset(seed=seed)
        options = options or {}
        known = ("house", "start", "goal") if self.task == "navigate" else ("house", "start")
        if unknown := set(options) - set(known):
            raise ValueError(f"the task {self.task!r} takes the reset options {known}, got {sorted(unknown)}")
        self._ready = False
        self._places = self._enter(options.get("house"))
        start = self._put("start", options.get("start"))
        self._goal_pose = self._goal_image = None
        if self.task == "navigate":
            self._goal_pose = self._put("goal", options.get("goal"), start)
            self._goal_image = self._image()
            self._put("start", start)
        self._visited, self._ready = self._nearby(), True
        return self._observation(), self._info(blocked=False)

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], float, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            ValueError: if the action is not in the action space.
            ResetNeeded: before the first reset.
        """
        pose = self.pose
        action = np.asarray(action, np.float32)
        if not self.action_space.contains(action):
            raise ValueError(f"action must be in {self.action_space}, got {action!r}")
        blocked = not self._teleport(moved(pose, action))
        new = self._nearby() & ~self._visited
        self._visited |= new
        info = self._info(blocked)
        success = info["is_success"]
        reward = float(new.mean()) if self.task == "explore" else 1.0 if success else STEP_PENALTY
        return self._observation(), reward, success, False, info

    def render(self) -> np.ndarray | None:
        """(224, 224, 3) uint8, what the agent sees.

        Raises:
            ResetNeeded: before the first reset.
        """
        self._entered()
        return None if self.render_mode is None else self._image()

    def close(self) -> None:
        """Stop the controller if it was made here; the next `reset` makes another one."""
        if self._make is not None and self._controller is not None:
            self._controller.stop()
            self._controller, self._ready = None, False

    @property
    def pose(self) -> np.ndarray:
        """(3,) float, where the agent is: metres, and radians clockwise from y."""
        self._entered()
        return self._here()

    @property
    def goal(self) -> np.ndarray | None:
        """(3,) float, the goal pose; None in the task `explore`; a copy."""
        self._entered()
        return None if self._goal_pose is None else self._goal_pose.copy()

    def _entered(self) -> None:
        if not self._ready:
            raise ResetNeeded("call reset() first: there is no house yet")

    def _here(self) -> np.ndarray:
        agent = self._event.metadata["agent"]
        x, y = agent["position"]["x"], agent["position"]["z"]
        return np.array([x, y, wrap(np.deg2rad(agent["rotation"]["y"]))])

    def _enter(self, house: dict[str, Any] | str | None) -> np.ndarray:
        """(N, 2) float, the reachable positions of a house, which the controller is told to show."""
        if self._controller is None and self._make is not None:
            self._controller = self._make()
        if house is None:
            drawn = self.houses[int(self.np_random.integers(len(self.houses)))] if self.houses else None
            house = self._controller.scene if drawn is None else drawn
        self._event = self._controller.reset(scene=house, **SETTINGS)
        self._require("the house")
        agent = house.get("metadata", {}).get("agent") if isinstance(house, dict) else None
        if agent is not None:
            self._step("Teleport", position=agent["position"], rotation=agent["rotation"], horizon=0, standing=True)
            self._require("where the agent begins in the house")
        places = self._step("GetReachablePositions").metadata["actionReturn"]
        self._require("the search for reachable positions")
        if not places:
            raise ValueError("AI2-THOR finds no reachable position")
        return np.array([(place["x"], place["z"]) for place in places])

    def _put(self, name: str, pose: Any, start: np.ndarray | None = None) -> np.ndarray:
        """The pose that the agent was put at: the one asked for, or one drawn from where it fits; not at the start."""
        if pose is None:
            headings = self.np_random.uniform(-np.pi, np.pi, (len(self._places), 1))
            poses = self.np_random.permutation(np.concatenate([self._places, headings], 1))
        else:
            poses = np.array(pose, float)[None]
            if poses.shape != (1, 3) or not np.isfinite(poses).all():
                raise ValueError(f"{name} must be (x, y, heading), got {pose!r}")
        for wanted in poses:  # AI2-THOR refuses some of the positions that it calls reachable
            if not self._teleport(wanted):
                why = self._event.metadata["errorMessage"]
            elif start is not None and reached(start, self._here()):
                why = "it is reached at the start"
            else:
                return self._here()
        raise ValueError(f"{name} {wanted.tolist()} cannot be taken: {why}")

    def _teleport(self, pose: np.ndarray) -> bool:
        """Put the agent at a pose; whether AI2-THOR did."""
        x, y, heading = pose.tolist()
        position = {"x": x, "y": self._event.metadata["agent"]["position"]["y"], "z": y}
        rotation = {"x": 0.0, "y": math.degrees(heading) % 360, "z": 0.0}
        return bool(self._step("Teleport", position=position, rotation=rotation, horizon=0, standing=True))

    def _step(self, action: str, **arguments: Any) -> Any:
        self._event = self._controller.step(action, **arguments)
        return self._event

    def _require(self, what: str) -> None:
        """Raise a ValueError if AI2-THOR did not do what it was last told to."""
        if not self._event:
            raise ValueError(f"AI2-THOR refuses {what}: {self._event.metadata['errorMessage']}")

    def _nearby(self) -> np.ndarray:
        """(N,) bool, which reachable positions the agent is near to."""
        return np.linalg.norm(self._places - self._here()[:2], axis=1) <= NEARBY

    def _image(self) -> np.ndarray:
        frame = np.array(self._event.frame)
        if frame.shape != (PIXELS, PIXELS, 3):
            raise ValueError(f"AI2-THOR's pictures must be of shape {(PIXELS, PIXELS, 3)}, got {frame.shape}")
        return frame

    def _observation(self) -> dict[str, np.ndarray]:
        image = {"image": self._image()}
        return image if self._goal_image is None else image | {"goal": self._goal_image.copy()}

    def _info(self, blocked: bool) -> dict[str, Any]:
        pose = self._here()
        info: dict[str, Any] = {"pose": pose.astype(np.float32), "blocked": blocked}
        if self._goal_pose is None:
            coverage = float(self._visited.mean())
            return info | {"coverage": coverage, "is_success": coverage >= 0.95}
        return info | {"is_success": reached(pose, self._goal_pose)}
