"""Rooms on a lattice, their memory banks and queries: pure NumPy, in batches."""

from eswm_gym.rooms.lattice.banks import BankBatch, add_transitions, observed_moves, spanning_banks, walk_banks
from eswm_gym.rooms.lattice.bits import bits_to_state, state_to_bits
from eswm_gym.rooms.lattice.generation import RoomBatch, RoomConfig, generate_rooms, random_regions, random_walls
from eswm_gym.rooms.lattice.geometry import (
    ACTION_NAMES,
    DISPLACEMENTS,
    N_ACTIONS,
    HexLattice,
    Lattice,
    hex_lattice,
    reverse_action,
)
from eswm_gym.rooms.lattice.queries import (
    PAPER_MIX,
    SEEN_ONLY,
    TRAINING_MIX,
    UNSEEN_ONLY,
    QueryBatch,
    draw_queries,
    move_kinds,
)
from eswm_gym.rooms.lattice.regions import RegionConfig
from eswm_gym.rooms.lattice.room import Room
from eswm_gym.rooms.lattice.scattered import ScatteredConfig
from eswm_gym.rooms.lattice.shapes import (
    diagonal_lattice,
    lattice_of,
    pose_lattice,
    square_lattice,
    torus_lattice,
)
from eswm_gym.rooms.lattice.source import LatticeSource
from eswm_gym.rooms.lattice.vocabulary import CODES, MOVES, N_NAMES, move_numbers
from eswm_gym.rooms.transitions import Kind

__all__ = [
    "ACTION_NAMES",
    "CODES",
    "DISPLACEMENTS",
    "MOVES",
    "N_ACTIONS",
    "N_NAMES",
    "PAPER_MIX",
    "SEEN_ONLY",
    "TRAINING_MIX",
    "UNSEEN_ONLY",
    "BankBatch",
    "HexLattice",
    "Kind",
    "Lattice",
    "LatticeSource",
    "QueryBatch",
    "RegionConfig",
    "Room",
    "RoomBatch",
    "RoomConfig",
    "ScatteredConfig",
    "add_transitions",
    "bits_to_state",
    "diagonal_lattice",
    "draw_queries",
    "generate_rooms",
    "hex_lattice",
    "lattice_of",
    "move_kinds",
    "move_numbers",
    "observed_moves",
    "pose_lattice",
    "random_regions",
    "random_walls",
    "reverse_action",
    "spanning_banks",
    "square_lattice",
    "state_to_bits",
    "torus_lattice",
    "walk_banks",
]
