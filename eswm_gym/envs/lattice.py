"""Rooms on squares, squares with diagonals, tori, poses or hexagons, whose actions may have to be found out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from gymnasium import spaces

from eswm_gym.envs.lattice_room import LatticeRoomEnv
from eswm_gym.rooms import CODES, ScatteredConfig, move_numbers


class LatticeEnv(LatticeRoomEnv):
    """
    ## Description
    A room on a lattice of any shape, a new one in each episode. There are as many states as locations, dealt to
    them at random, so that a state does not say where it lies. Walls are scattered over the room.

    In the task `navigate` the agent is shown a goal state and has to reach it. In the task `explore` it has
    to visit as many locations as it can.

    ## Action Space
    `Discrete(A)`. With `actions="known"`, action i is the lattice's i-th:

    - `square` and `torus`: left, down, right, up. The rims of a torus are joined: who leaves it on the left comes
      back on the right.
    - `diagonal`: left, down-left, down, down-right, right, up-right, up, up-left.
    - `pose`: turn left, turn right, forward. A location is a cell and a heading in it; forward is a step to the
      cell ahead, which no single action undoes.
    - `hexagon`: east, north-east, north-west, west, south-west, south-east.

    With `actions="permuted"`, each episode deals these moves to the actions 0 to A - 1 at random, and the agent has
    to find out what each does. The property `action_names` has the names of known actions, such as `"left"` or
    `"NW"`, and is None if they are permuted; `eswm_gym.rooms.move_numbers` says which names mean the same move.

    A step into a wall or off the lattice leaves the agent where it is.

    ## Observation Space
    A flat `Dict`:

    - `state`: the state where the agent is, `Discrete(L)`, L being the number of locations: four for each cell on
      the pose lattice.
    - `goal`: the state to reach, likewise. Only in the task `navigate`.
    - `actions`: (A,) int64, the world model's numbers of the actions, always the same: those of their names, or codes
      if they are permuted (`eswm_gym.rooms.CODES`).

    ## Rewards
    - `navigate`: -0.01 for each step, except 1 for the step that reaches the goal.
    - `explore`: 1 for each location visited for the first time, else 0. The start counts as visited already.

    ## Starting State
    A new room, a start drawn uniformly from the free locations from which a move leads to another one, and a goal
    drawn uniformly from the other locations that can be reached from the start. `reset(options=...)` takes any of:

    - `room`: a `Room` to walk in; the environment works on a copy. Permuted actions are as the room numbers them.
    - `start`, `goal`: locations, numbered row by row from the upper left; on the pose lattice 4 * cell + heading,
      which is 0 to 3 for right, down, left and up. `goal` only in the task `navigate`.

    ## Episode End
    - Termination: `navigate`: the agent is at the goal. `explore`: it has visited all that can be reached.
    - Truncation: by the time limit of the registered ids: 60 steps, six times as many as the longest way across
      6 x 6 squares. For larger rooms, or to visit all 144 poses of 6 x 6 cells, give `gymnasium.make` a
      `max_episode_steps` of your own. An environment built without `gymnasium.make` has none.

    ## Information
    `reset()` and `step()` return:

    - `action_mask`: (A,) int8, 1 for moves that stay on the lattice; walls do not show. The method
      `action_masks()` returns the same as bool.
    - `location`: int, where the agent is.
    - `is_success`: bool, whether the task is done.
    - `blocked`: bool, whether the last action left the agent where it was.
    - `shortest_path_length`: int, moves from here to the goal, -1 if walls were added that cut it off.
      Only in the task `navigate`.

    With `memory_bank="spanning"`, `reset()` also returns:

    - `memory_bank`: (L - 1, 3) int64, transitions (s_s, a, s_e) in random order: a spanning tree of the free
      locations and one bump into each wall location that one of them leads to; a is the environment's number of the
      action. Rows of -1 at the end make up for what is missing. `bank[bank[:, 1] >= 0]` drops them.

    ## Arguments
    - `lattice="square"`: or `"diagonal"`, `"torus"`, `"pose"` or `"hexagon"`.
    - `size=(6, 6)`: (width, height) in cells; for `"hexagon"` (radius,).
    - `actions="known"`: or `"permuted"`.
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"spanning"`, what `ESWM-Lattice-v0` uses.
    - `render_mode=None`: `"human"`, `"rgb_array"` or `"ansi"`.
    - `walls=0.2`: greatest share of cells that are walls, from 0 to less than 1. Their number is drawn uniformly. They
      may split the room. On the pose lattice all four poses of a cell are walls together.

    While an episode runs, `add_walls(locations)` and `remove_walls(locations)` change the room, on the pose lattice
    by whole cells, and `get_state()` and `set_state(state)` save it and go back. The environment can be copied and
    pickled.

    ## Version History
    * v0: Initial version
    """

    config: ScatteredConfig

    def __init__(
        self,
        lattice: str = "square",
        size: Sequence[int] = (6, 6),
        actions: Literal["known", "permuted"] = "known",
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
        walls: float = 0.2,
    ) -> None:
        super().__init__(ScatteredConfig(lattice, tuple(size), walls, actions), task, memory_bank, render_mode)
        names = self.action_names
        self._numbers = CODES[: self.config.lattice.n_actions] if names is None else move_numbers(names)
        shown = self.observation_space.spaces  # type: ignore[attr-defined]
        self.observation_space = spaces.Dict({**shown, "actions": spaces.MultiDiscrete(self._numbers + 1)})

    def _observation(self) -> dict[str, Any]:
        return {**super()._observation(), "actions": self._numbers.copy()}

    @property
    def action_names(self) -> tuple[str, ...] | None:
        return self.config.lattice.actions if self.config.actions == "known" else None
