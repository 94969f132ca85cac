"""Lattices besides the hexagonal one: squares, squares with diagonals, tori and poses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from eswm_gym.checks import require_choices
from eswm_gym.rooms.lattice.geometry import Lattice, hex_lattice

SQUARE_MOVES = {"left": (-1, 0), "down": (0, 1), "right": (1, 0), "up": (0, -1)}  # (x, y); y grows downwards
# In the order of a circle, from the left downwards.
DIAGONAL_MOVES = {
    "left": (-1, 0), "down-left": (-1, 1), "down": (0, 1), "down-right": (1, 1),
    "right": (1, 0), "up-right": (1, -1), "up": (0, -1), "up-left": (-1, -1),
}  # fmt: skip
HEADINGS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # right, down, left, up: MiniGrid's, and each turn right is one further
TURN_LEFT, TURN_RIGHT, FORWARD = range(3)


def lattice_of(name: str, size: tuple[int, ...]) -> Lattice:
    """The lattice "hexagon" of a radius (size,), or "square", "diagonal", "torus" or "pose" of (width, height) cells.

    Raises:
        ValueError: if there is no such lattice, or the size has another number of numbers or a wrong one.
    """
    require_choices(lattice=(name, tuple(SHAPES)))
    build, sides = SHAPES[name]
    if len(size) != len(sides):
        raise ValueError(f"the size of a {name} lattice is ({', '.join(sides)}), got {size}")
    return build(*size)


@cache
def square_lattice(width: int, height: int) -> Lattice:
    """A grid of width x height locations, numbered row by row, with the moves left, down, right and up.

    Raises:
        ValueError: if width or height is not a whole number of at least 1.
    """
    return _grid("square", width, height, SQUARE_MOVES)


@cache
def diagonal_lattice(width: int, height: int) -> Lattice:
    """The same with the four diagonal moves as well.

    Raises:
        ValueError: if width or height is not a whole number of at least 1.
    """
    return _grid("diagonal", width, height, DIAGONAL_MOVES)


@cache
def torus_lattice(width: int, height: int) -> Lattice:
    """A grid whose rims are joined, left to right and top to bottom, with the moves of `square_lattice`.

    Raises:
        ValueError: if width or height is not a whole number of at least 3: of two locations side by side, two
            moves would lead from one to the other.
    """
    return _grid("torus", width, height, SQUARE_MOVES, wraps=True, least=3)


@cache
def pose_lattice(width: int, height: int) -> Lattice:
    """The poses in a grid of width x height cells: turn left, turn right, and a step forward, which none undoes.

    A location is a cell, numbered row by row, and one of four `HEADINGS`: 4 * cell + heading.

    Raises:
        ValueError: if width or height is not a whole number of at least 1.
    """
    cells, heading = np.divmod(np.arange(4 * _size(width, height, 1)), 4)
    x, y = cells % width, cells // width
    dx, dy = np.array(HEADINGS)[heading].T
    neighbors = np.stack(
        [
            4 * cells + (heading - 1) % 4,
            4 * cells + (heading + 1) % 4,
            _at(x + dx, y + dy, width, height, lambda cell: 4 * cell + heading),
        ],
        axis=1,
    )
    return Lattice(
        actions=("turn left", "turn right", "forward"),
        neighbors=neighbors,
        reverse=np.array([TURN_RIGHT, TURN_LEFT, -1]),
        xy=np.stack([x + dx / 4, y + dy / 4], axis=1),
        cells=cells,
        shape="pose",
        size=(int(width), int(height)),
    )


SHAPES: dict[str, tuple[Callable[..., Lattice], tuple[str, ...]]] = {
    "hexagon": (hex_lattice, ("radius",)),
    "square": (square_lattice, ("width", "height")),
    "diagonal": (diagonal_lattice, ("width", "height")),
    "torus": (torus_lattice, ("width", "height")),
    "pose": (pose_lattice, ("width", "height")),
}


def _grid(
    shape: str, width: int, height: int, moves: dict[str, tuple[int, int]], wraps: bool = False, least: int = 1
) -> Lattice:
    y, x = np.divmod(np.arange(_size(width, height, least)), width)
    steps = np.array(list(moves.values()))
    to_x, to_y = x[:, None] + steps[:, 0], y[:, None] + steps[:, 1]  # (L, A)
    if wraps:
        to_x, to_y = to_x % width, to_y % height
    back = {step: action for action, step in enumerate(moves.values())}
    return Lattice(
        actions=tuple(moves),
        neighbors=_at(to_x, to_y, width, height),
        reverse=np.array([back[-dx, -dy] for dx, dy in moves.values()]),
        xy=np.stack([x, y], axis=1).astype(float),
        displacements=None if wraps else steps,
        shape=shape,
        size=(int(width), int(height)),
    )


def _size(width: int, height: int, least: int) -> int:
    for name, size in (("width", width), ("height", height)):
        if not isinstance(size, int | np.integer) or size < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {size!r}")
    return width * height


def _at(x: np.ndarray, y: np.ndarray, width: int, height: int, name=lambda cell: cell) -> np.ndarray:
    """The names of cells (x, y), -1 outside of the grid."""
    return np.where((x >= 0) & (x < width) & (y >= 0) & (y < height), name(y * width + x), -1)
