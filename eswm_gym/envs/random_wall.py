"""Random Wall, the paper's room with an obstacle."""

from __future__ import annotations

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.rooms import RoomConfig


class RandomWallEnv(HexRoomEnv):
    """
    ## Description
    The paper's Random Wall: as many states as locations, dealt at random, and one long, mostly straight wall.
    Actions, rewards, starting state, episode end and information are `HexRoomEnv`'s.

    ## Observation Space
    `state` and, in the task `navigate`, `goal`: `Discrete(L)`, L being the number of locations.

    ## Arguments
    - `radius=3`: radius of the lattice; 2 gives 19 locations, 3 gives 37.
    - `task="navigate"`: or `"explore"`.
    - `memory_bank="none"`: or `"spanning"`, what `ESWM-RandomWall-v0` and `ESWM-RandomWall19-v0` use.
    - `render_mode=None`: `"human"`, `"rgb_array"` or `"ansi"`.
    - `wall_length=None`: least and greatest number of wall locations; None is (radius, 2 * radius - 1).
    - `no_wall=0.1`: probability of a room without a wall.
    - `straightness=0.8`: probability that the wall goes on straight at each step.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        radius: int = 3,
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
        wall_length: tuple[int, int] | None = None,
        no_wall: float = 0.1,
        straightness: float = 0.8,
    ) -> None:
        config = RoomConfig.random_wall(
            radius, wall_length=wall_length, no_wall=no_wall, straightness=straightness, hidden=0.0
        )
        super().__init__(config, task, memory_bank, render_mode)
