"""Gymnasium environments over rooms. `import eswm_gym` registers them."""

from typing import TYPE_CHECKING, Any

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.envs.registration import register_envs

if TYPE_CHECKING:
    from eswm_gym.envs.minigrid_room import MiniGridRoomEnv

__all__ = ["HexRoomEnv", "MiniGridRoomEnv", "OpenArenaEnv", "RandomWallEnv", "register_envs"]


def __getattr__(name: str) -> Any:
    if name == "MiniGridRoomEnv":  # not before it is asked for: minigrid is slow to import and brings pygame
        from eswm_gym.envs.minigrid_room import MiniGridRoomEnv

        return MiniGridRoomEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
