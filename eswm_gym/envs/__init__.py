"""Gymnasium environments over rooms. `import eswm_gym` registers them."""

from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.open_arena import OpenArenaEnv
from eswm_gym.envs.random_wall import RandomWallEnv
from eswm_gym.envs.registration import register_envs

__all__ = ["HexRoomEnv", "OpenArenaEnv", "RandomWallEnv", "register_envs"]
