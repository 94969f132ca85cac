"""Rooms on a hexagonal lattice, their memory banks and queries: pure NumPy, in batches."""

from eswm_gym.rooms.banks import BankBatch, add_transitions, observed_moves, spanning_banks, walk_banks
from eswm_gym.rooms.generation import RoomBatch, RoomConfig, generate_rooms
from eswm_gym.rooms.lattice import ACTION_NAMES, N_ACTIONS, HexLattice, hex_lattice, reverse_action
from eswm_gym.rooms.queries import PAPER_MIX, TRAINING_MIX, Kind, QueryBatch, draw_queries, move_kinds

__all__ = [
    "ACTION_NAMES",
    "N_ACTIONS",
    "PAPER_MIX",
    "TRAINING_MIX",
    "BankBatch",
    "HexLattice",
    "Kind",
    "QueryBatch",
    "RoomBatch",
    "RoomConfig",
    "add_transitions",
    "draw_queries",
    "generate_rooms",
    "hex_lattice",
    "move_kinds",
    "observed_moves",
    "reverse_action",
    "spanning_banks",
    "walk_banks",
]
