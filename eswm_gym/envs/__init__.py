"""Gymnasium environments over rooms. `import eswm_gym` registers them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.lattice import LatticeEnv
from eswm_gym.envs.lattice_room import LatticeRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.envs.registration import register_envs
from eswm_gym.envs.vector_hex_room import HexRoomVectorEnv, OpenArenaVectorEnv, RandomWallVectorEnv
from eswm_gym.envs.vector_room import RoomVectorEnv

if TYPE_CHECKING:
    from eswm_gym.envs.minigrid_room import MiniGridRoomEnv
    from eswm_gym.envs.sb3_vec_env import SB3VecEnv
    from eswm_gym.envs.vector_minigrid_room import MiniGridRoomVectorEnv

__all__ = [
    "HexRoomEnv",
    "HexRoomVectorEnv",
    "LatticeEnv",
    "LatticeRoomEnv",
    "MiniGridRoomEnv",
    "MiniGridRoomVectorEnv",
    "OpenArenaEnv",
    "OpenArenaVectorEnv",
    "RandomWallEnv",
    "RandomWallVectorEnv",
    "RoomVectorEnv",
    "SB3VecEnv",
    "register_envs",
]


# Not before they are asked for: minigrid is slow to import and brings pygame, stable-baselines3 brings torch.
LAZY = {"MiniGridRoomEnv": "minigrid_room", "MiniGridRoomVectorEnv": "vector_minigrid_room", "SB3VecEnv": "sb3_vec_env"}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(f"eswm_gym.envs.{LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
