"""MiniGrid's own environments as egocentric views of classes, with three actions."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from minigrid.core.actions import Actions
from minigrid.core.constants import OBJECT_TO_IDX, STATE_TO_IDX

from eswm_gym.rooms.grid import FORWARD, N_ACTIONS, VIEW, own_cell

# What stands in place of the nine classes of `eswm_gym.rooms.grid`: objects instead of floors of a colour. An open door
# is empty.
OBJECTS = ("unseen", "wall", "empty", "goal", "door", "lava", "key", "ball", "box")
GOAL, DOOR, LAVA, KEY, BALL, BOX = range(3, 9)
_CLASS_OF = {OBJECT_TO_IDX[name]: number for number, name in enumerate(OBJECTS)} | {
    OBJECT_TO_IDX["floor"]: OBJECTS.index("empty")
}
_CAN_BE_PICKED_UP = tuple(OBJECT_TO_IDX[name] for name in ("key", "ball", "box"))


class MiniGridViews(gym.Wrapper, gym.utils.RecordConstructorArgs):
    """An environment of MiniGrid, with its views as `state`: (side, side) classes, in the order of `OBJECTS`.

    The three actions are to turn left, to turn right, and to go ahead: a step forward or, where something is in the
    way, what clears it, MiniGrid's `toggle` at a door that is not open and its `pickup` at an object. That is one step
    and leaves the agent where it is.

    `info` has `pose`, (3,) int64 (x, y, heading), which the agent is not to look at, and `is_success`, whether the
    episode ended with a reward.

    Args:
        env: shows an `image` of MiniGrid's codes as the agent sees it, of an odd number of cells, at least 5, a side.

    Raises:
        ValueError: if it shows something else; or, in an episode, if a cell has no code of a view.
    """

    def __init__(self, env: gym.Env) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        shape: Any = getattr(getattr(env.observation_space, "spaces", {}).get("image"), "shape", ())
        if len(shape) != 3 or shape[0] != shape[1] or shape[0] < VIEW or shape[0] % 2 == 0 or shape[2] != 3:
            raise ValueError(
                f"MiniGridViews needs MiniGrid's egocentric `image`, (side, side, 3) with an odd side of at least "
                f"{VIEW}, got {env.observation_space}"
            )
        self._image = np.zeros((*shape[:2], 3), np.uint8)  # the latest
        self.action_space = spaces.Discrete(N_ACTIONS)
        view = spaces.Box(0, len(OBJECTS) - 1, shape[:2], np.uint8)
        self.observation_space = spaces.Dict({"state": view})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        obs, info = self.env.reset(seed=seed, options=options)
        return self._shown(obs), {**info, "pose": self._pose(), "is_success": False}

    def step(self, action: Any) -> tuple[dict, Any, bool, bool, dict]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is none of 0: left, 1: right, 2: ahead")
        taken = self._ahead() if action == FORWARD else int(action)
        obs, reward, terminated, truncated, info = self.env.step(taken)
        info = {**info, "pose": self._pose(), "is_success": bool(terminated and float(reward) > 0)}
        return self._shown(obs), reward, terminated, truncated, info

    def _ahead(self) -> Actions:
        """MiniGrid's action to go ahead, by the code of the cell in front."""
        cells, action = self._image.reshape(-1, 3), Actions.forward
        thing, _, state = cells[own_cell(len(cells)) - 1]
        if thing == OBJECT_TO_IDX["door"] and state != STATE_TO_IDX["open"]:
            action = Actions.toggle
        elif thing in _CAN_BE_PICKED_UP:
            action = Actions.pickup
        return action if self.env.action_space.contains(int(action)) else Actions.forward  # some ids have three actions

    def _shown(self, obs: dict[str, Any]) -> dict[str, np.ndarray]:
        self._image = np.array(obs["image"])
        codes = self._image[..., 0]
        wrong = set(codes.ravel().tolist()) - set(_CLASS_OF)
        if wrong:
            raise ValueError(
                f"{min(wrong)} is no code of a cell in a view (10, the agent itself, is one in whole rooms, as "
                "FullyObsWrapper shows them)"
            )
        classes = np.vectorize(_CLASS_OF.get, otypes=[np.uint8])(codes)
        is_open = (codes == OBJECT_TO_IDX["door"]) & (self._image[..., 2] == STATE_TO_IDX["open"])
        classes[is_open] = OBJECTS.index("empty")
        classes.flat[own_cell(classes.size)] = OBJECTS.index("empty")
        return {"state": classes}

    def _pose(self) -> np.ndarray:
        world: Any = self.env.unwrapped
        return np.array([*world.agent_pos, world.agent_dir], np.int64)
