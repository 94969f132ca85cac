"""Hexagonal rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eswm_gym.envs.hex_episodes import Episodes, draw_episodes
from eswm_gym.envs.lattice_room import LatticeRoomEnv
from eswm_gym.rooms import Room, RoomConfig

MOST_AHEAD = 64  # episodes drawn at a time


class HexRoomEnv(LatticeRoomEnv):
    """
    ## Description
    A room on a hexagonal lattice, a new one in each episode (paper: "Building Random Environments"). Every
    location shows a different state. States are dealt to locations at random, so that a state does not say
    where it lies: only memories of transitions do. A wall of several locations may stand in the way.

    In the task `navigate` the agent is shown a goal state and has to reach it. In the task `explore` it has
    to visit as many locations as it can.

    This class takes any family of rooms without duplicate states; `RandomWallEnv` and `OpenArenaEnv` are the
    paper's two.

    ## Action Space
    `Discrete(6)`, a step to the neighbouring location:

    - 0: east
    - 1: north-east
    - 2: north-west
    - 3: west
    - 4: south-west
    - 5: south-east

    A step into a wall or off the lattice leaves the agent where it is. `(a + 3) % 6` reverses action a.

    ## Observation Space
    A flat `Dict`:

    - `state`: the state where the agent is, `Discrete(n_states)`.
    - `goal`: the state to reach, likewise. Only in the task `navigate`.

    ## Rewards
    - `navigate`: -0.01 for each step, except 1 for the step that reaches the goal.
    - `explore`: 1 for each location visited for the first time, else 0. The start counts as visited already.

    ## Starting State
    A new room, a start drawn uniformly from the free locations that have a free neighbour, and a goal drawn
    uniformly from the other locations that can be reached from the start. `reset(options=...)` takes any of:

    - `room`: a `Room` to walk in; the environment works on a copy.
    - `start`, `goal`: locations, numbered row by row from the north-west; `goal` only in the task `navigate`.

    ## Episode End
    - Termination: `navigate`: the agent is at the goal. `explore`: it has visited all that can be reached.
    - Truncation: by the time limit of the registered ids: 15 steps with 19 locations, 30 steps with 37.
      An environment built without `gymnasium.make` has none.

    ## Information
    `reset()` and `step()` return:

    - `action_mask`: (6,) int8, 1 for steps that stay on the lattice; walls do not show. The method
      `action_masks()` returns the same as bool.
    - `location`: int, where the agent is.
    - `is_success`: bool, whether the task is done.
    - `blocked`: bool, whether the last action left the agent where it was.
    - `shortest_path_length`: int, steps from here to the goal, -1 if walls were added that cut it off.
      Only in the task `navigate`.

    With `memory_bank="spanning"`, `reset()` also returns:

    - `memory_bank`: (L - 1, 3) int64, transitions (s_s, a, s_e) in random order: a spanning tree of the free
      locations and one bump into each wall location, L being the number of all locations. A wall that
      splits the room makes it a forest, which has fewer transitions: rows of -1 at the end make up for them,
      so that vector environments can stack the banks. `bank[bank[:, 1] >= 0]` drops them.

    ## Arguments
    - `config`: the family of rooms. The memory bank covers the observed part of each room.
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"spanning"`.
    - `render_mode=None`: `"human"`, `"rgb_array"` or `"ansi"`.

    While an episode runs, `add_walls(locations)` and `remove_walls(locations)` change the room, and
    `get_state()` and `set_state(state)` save it and go back. The environment can be copied and pickled.

    ## Version History
    * v0: Initial version
    """

    config: RoomConfig

    def __init__(
        self,
        config: RoomConfig,
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
    ) -> None:
        if config.duplicates[1]:
            raise ValueError(f"a room to walk in has no duplicate states, got duplicates={config.duplicates}")
        super().__init__(config, task, memory_bank, render_mode)
        self._block: _Block | None = None

    def get_state(self) -> dict[str, Any]:
        block = self._block if self._block and self._block.rng is self.np_random else None
        drawn = block and {"rng": block.before, "size": block.size, "taken": block.taken}
        return {**super().get_state(), "drawn_ahead": drawn}

    def set_state(self, state: dict[str, Any]) -> None:
        super().set_state(state)
        drawn = state.get("drawn_ahead")
        self._block = drawn and _Block(self.np_random, drawn["rng"], drawn["size"], drawn["taken"])

    def _drawn_ahead(self) -> tuple[Room, int, int | None, np.ndarray, np.ndarray | None]:
        """The next episode. After a reset with a seed 2 are drawn at a time, then 4 and so on, up to `MOST_AHEAD`."""
        rng, block = self.np_random, self._block
        if block is None or block.rng is not rng or block.taken == block.size:
            size = 2 if block is None or block.rng is not rng else min(2 * block.size, MOST_AHEAD)
            block = self._block = _Block(rng, rng.bit_generator.state, size)
            block.episodes = draw_episodes(rng, self, size)
        elif block.episodes is None:  # of a state that was set
            now, rng.bit_generator.state = rng.bit_generator.state, block.before
            block.episodes = draw_episodes(rng, self, block.size)
            rng.bit_generator.state = now
        i, drawn = block.taken, block.episodes
        block.taken += 1
        room = Room.unchecked(self.config.lattice, drawn.states[i], drawn.walls[i], drawn.observed[i])
        goal = drawn.goal.item(i) if self.task == "navigate" else None
        bank = drawn.bank[i].astype(np.int64) if self.memory_bank == "spanning" else None
        return room, drawn.start.item(i), goal, drawn.distances[i], bank


@dataclass(eq=False)
class _Block:
    """Episodes drawn ahead.

    Attributes:
        rng: what draws them; of another generator they are not used.
        before: its state before it does.
        size: how many there are.
        taken: how many have begun.
        episodes: all of them; None until they are needed.
    """

    rng: np.random.Generator
    before: Any
    size: int
    taken: int = 0
    episodes: Episodes | None = None
