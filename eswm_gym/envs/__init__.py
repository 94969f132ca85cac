"""Gymnasium environments over rooms. `import eswm_gym` registers them."""

from typing import TYPE_CHECKING, Any

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.lattice import LatticeEnv
from eswm_gym.envs.lattice_room import LatticeRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.envs.registration import register_envs
from eswm_gym.envs.vector_hex_room import HexRoomVectorEnv, OpenArenaVectorEnv, RandomWallVectorEnv

if TYPE_CHECKING:
    from eswm_gym.envs.minigrid_room import MiniGridRoomEnv
    from eswm_gym.envs.sb3_vec_env import SB3VecEnv

__all__ = [
    "HexRoomEnv",
    "HexRoomVectorEnv",
    "LatticeEnv",
    "LatticeRoomEnv",
    "MiniGridRoomEnv",
    "OpenArenaEnv",
    "OpenArenaVectorEnv",
    "RandomWallEnv",
    "RandomWallVectorEnv",
    "SB3VecEnv",
    "register_envs",
]


def __getattr__(name: str) -> Any:
    if name == "MiniGridRoomEnv":  # not before it is asked for: minigrid is slow to import and brings pygame
        from eswm_gym.envs.minigrid_room import MiniGridRoomEnv

        return MiniGridRoomEnv
    if name == "SB3VecEnv":  # nor stable-baselines3, which brings torch
        from eswm_gym.envs.sb3_vec_env import SB3VecEnv

        return SB3VecEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
