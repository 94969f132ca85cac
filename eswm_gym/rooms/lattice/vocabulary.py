"""What moves are called, whatever the lattice: one number for each move that is known by name, and codes for others.

Moves that add the same to the coordinates have one name on all lattices: in axial coordinates those of a hexagonal
lattice are six of the eight moves on squares. The hexagonal ones come first, in their own order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eswm_gym.rooms.lattice.geometry import ACTION_NAMES

MOVES = (
    "right", "up-right", "up", "left", "down-left", "down",  # E, NE, NW, W, SW, SE of hexagons
    "down-right", "up-left", "turn left", "turn right", "forward",
)  # fmt: skip
N_CODES = 8  # for actions of which nothing is known; a room has one code for each action, drawn anew
N_NAMES = len(MOVES) + N_CODES
CODES = np.arange(len(MOVES), N_NAMES)
_NUMBERS = {name: i for i, name in enumerate(MOVES)} | {name: i for i, name in enumerate(ACTION_NAMES)}


def move_numbers(names: Sequence[str]) -> np.ndarray:
    """(A,) int, the numbers of moves by their names, such as "left" or a hexagon's "NW".

    Raises:
        ValueError: naming a move that is not in the vocabulary.
    """
    for name in names:
        if name not in _NUMBERS:
            raise ValueError(f"no move is called {name!r}; there are {', '.join(_NUMBERS)}")
    return np.array([_NUMBERS[name] for name in names])
