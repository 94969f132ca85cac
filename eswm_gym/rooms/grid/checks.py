"""Checks of layouts, poses and cells that users hand in."""

from __future__ import annotations

from typing import Any

import numpy as np

from eswm_gym.rooms.grid.layouts import N_CLASSES, SIZE, UNSEEN, WALL, is_connected
from eswm_gym.rooms.grid.views import N_HEADINGS

Pose = tuple[int, int, int]  # (x, y, heading)


def as_grid(grid: Any, connected: bool = False) -> np.ndarray:
    """(9, 9) int8 classes.

    Raises:
        ValueError: if they are no integers of this shape, no classes of cells, not walled in or all walls; or, if
            `connected`, if the free cells do not hang together.
    """
    grid = np.asarray(grid)
    if grid.shape != (SIZE, SIZE) or grid.dtype.kind not in "iu":
        raise ValueError(f"grid must be {(SIZE, SIZE)} integers, got {grid.shape} of {grid.dtype}")
    if grid.min() <= UNSEEN or grid.max() >= N_CLASSES:
        raise ValueError(f"grid must hold classes from 1 to {N_CLASSES - 1}, got {grid.min()} to {grid.max()}")
    inside = grid[1:-1, 1:-1]
    if (grid == WALL).sum() - (inside == WALL).sum() != grid.size - inside.size:
        raise ValueError(f"grid must have walls (class {WALL}) all around")
    if (inside == WALL).all():
        raise ValueError("grid must have a free cell")
    grid = grid.astype(np.int8, order="C")
    if connected and not is_connected(grid[None] != WALL)[0]:
        raise ValueError("grid must have free cells that hang together")
    return grid


def as_pose(grid: np.ndarray, pose: Any, name: str) -> Pose:
    """A pose (x, y, heading) on the floor of a (size, size) layout.

    Raises:
        ValueError: naming `name`, if it is not that.
    """
    x, y, heading = as_integers(pose, 3, name)
    if not (_is_inside(x, y, len(grid)) and 0 <= heading < N_HEADINGS):
        raise ValueError(f"{name} must be (x, y, heading) inside the walls with a heading from 0 to 3, got {pose!r}")
    if grid[y, x] == WALL:
        raise ValueError(f"{name} {(x, y, heading)} is in a wall")
    return x, y, heading


def as_cell(cell: Any, size: int) -> tuple[int, int]:
    """A cell (x, y) inside the walls around.

    Raises:
        ValueError: if it is not that.
    """
    x, y = as_integers(cell, 2, "cell")
    if not _is_inside(x, y, size):
        raise ValueError(f"cell must lie inside the walls around, got {cell!r}")
    return x, y


def as_integers(value: Any, n: int, name: str) -> list[int]:
    """A list of n integers.

    Raises:
        ValueError: naming `name`, if the value is not that.
    """
    array = np.asarray(value)
    if array.shape != (n,) or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {n} integers, got {value!r}")
    return array.tolist()


def _is_inside(x: int, y: int, size: int) -> bool:
    return 0 < x < size - 1 and 0 < y < size - 1
