"""Rooms, their memory banks and queries: pure NumPy, in batches. A package a kind of world; the names of rooms on a
lattice stand here too, those of MiniGrid's rooms in `eswm_gym.rooms.grid`."""

from eswm_gym.rooms.lattice import *  # noqa: F403
from eswm_gym.rooms.lattice import __all__ as __all__
