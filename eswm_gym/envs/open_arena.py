"""Open Arena, the paper's room without obstacles whose states are bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.rooms import RoomConfig, state_to_bits

N_BITS = 6


class OpenArenaEnv(HexRoomEnv):
    """
    ## Description
    The paper's Open Arena: no wall, and more states than locations, each seen as 6 bits.
    Actions, rewards, starting state, episode end and information are `HexRoomEnv`'s.

    ## Observation Space
    `state` and, in the task `navigate`, `goal`: `MultiBinary(6)`, the most significant bit first. Rooms and
    memory banks count the same states from 0 to 63: see `eswm_gym.rooms.bits_to_state` and `state_to_bits`.

    ## Arguments
    - `radius=2`: radius of the lattice; 2 gives 19 locations, 3 gives 37.
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"spanning"`, what `ESWM-OpenArena-v0` uses.
    - `render_mode=None`: `"human"`, `"rgb_array"` or `"ansi"`.
    - `states=range(64)`: the states that rooms draw from, to train and test on different ones.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        radius: int = 2,
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
        states: Sequence[int] = range(2**N_BITS),
    ) -> None:
        if max(states) >= 2**N_BITS:
            raise ValueError(f"states must be below {2**N_BITS}, got {max(states)}")
        super().__init__(RoomConfig.open_arena(radius, states=tuple(states)), task, memory_bank, render_mode)
        self.n_states = 2**N_BITS

    def state_space(self) -> spaces.Space:
        return spaces.MultiBinary(N_BITS)

    def observe(self, state: int) -> np.ndarray:
        return state_to_bits(state, N_BITS)
