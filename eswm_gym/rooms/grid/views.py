"""What an agent sees and where its moves lead, for all poses of many layouts at once.

A pose is a cell and a heading. Views are exactly those of MiniGrid's `gen_obs`, with one class for each cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from eswm_gym.rooms.grid.layouts import EMPTY, UNSEEN, WALL

LEFT, RIGHT, FORWARD = 0, 1, 2  # MiniGrid's numbers
N_ACTIONS = 3
N_HEADINGS = 4
AHEAD = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])  # the step (x, y) of each heading: right, down, left, up
TURN = np.array([-1, 1, 0])  # what each action adds to the heading
VIEW = 5  # cells along a side of a view
N_CELLS = VIEW * VIEW


def own_cell(n_cells: int) -> int:
    """The agent's own cell in a flat view of so many cells; the one before it lies in front."""
    side = math.isqrt(n_cells)
    return (side // 2) * side + side - 1


def offsets(side: int) -> np.ndarray:
    """(side * side, 2) steps to the right and ahead to each cell of a view, in MiniGrid's order."""
    return np.array([(i - side // 2, side - 1 - j) for i in range(side) for j in range(side)])


HERE = own_cell(N_CELLS)  # which never shows its colour
IN_FRONT = HERE - 1
OFFSETS = offsets(VIEW)


@lru_cache
def poses(size: int) -> np.ndarray:
    """(P, 3) int (x, y, heading) of every pose within the walls around; P = 4 (size - 2) ** 2; read-only."""
    y, x, heading = np.indices((size - 2, size - 2, N_HEADINGS)).reshape(3, -1)
    found = np.stack([x + 1, y + 1, heading], 1)
    found.flags.writeable = False  # all callers share it
    return found


def pose_index(size: int, x: Any, y: Any, heading: Any) -> Any:
    """The row of a pose in `poses`; integers, or arrays of them."""
    return ((y - 1) * (size - 2) + x - 1) * N_HEADINGS + heading


def moved(pose: np.ndarray, action: int, steps: int = 1) -> np.ndarray:
    """(..., 3) int, the poses to which an action leads from poses (..., 3) if no wall is in the way.

    Args:
        pose: (x, y, heading).
        action: turns by 90 degrees, or walks.
        steps: cells to walk; -1 walks backwards.
    """
    pose = np.array(pose)
    if action == FORWARD:
        pose[..., :2] += steps * AHEAD[pose[..., 2]]
    pose[..., 2] = (pose[..., 2] + TURN[action]) % N_HEADINGS
    return pose


def cells_along(pose: tuple[int, int, int], actions: Iterable[int]) -> list[tuple[int, int]]:
    """The cell (x, y) after each step forward among actions from a pose, if no wall is in the way."""
    at, cells = np.array(pose), list[tuple[int, int]]()
    for action in actions:
        at = moved(at, action)
        if action == FORWARD:
            cells.append((int(at[0]), int(at[1])))
    return cells


def view_positions(where: np.ndarray, side: int = VIEW) -> np.ndarray:
    """(K, side * side, 2) int (x, y) of each cell in the views of poses (K, 3)."""
    ahead = AHEAD[where[:, 2]][:, None]
    right = np.stack([-ahead[..., 1], ahead[..., 0]], -1)
    return where[:, None, :2] + offsets(side)[:, :1] * right + offsets(side)[:, 1:] * ahead


@lru_cache
def seen_cells(size: int) -> np.ndarray:
    """(P, 25) int, the number y * size + x of each cell in each pose's view; -1 off the grid; read-only."""
    x, y = np.moveaxis(view_positions(poses(size)), -1, 0)
    inside = (x >= 0) & (x < size) & (y >= 0) & (y < size)
    found = np.where(inside, y * size + x, -1)
    found.flags.writeable = False  # all callers share it
    return found


def views_of(grids: np.ndarray, pose: np.ndarray | None = None) -> np.ndarray:
    """Look at layouts.

    Args:
        grids: (B, size, size) int8 classes.
        pose: (B, K) int, rows of `poses`; None: all of them.

    Returns:
        (B, K or P, 25) int8 classes, in the order of MiniGrid's `obs["image"].reshape(25, 3)`.
    """
    batch, size = grids.shape[:2]
    cells = seen_cells(size) if pose is None else seen_cells(size)[pose]
    walled = np.concatenate([grids.reshape(batch, -1), np.full((batch, 1), WALL, np.int8)], 1)  # index -1
    if pose is None:
        view = walled[:, cells]
    else:
        view = np.take_along_axis(walled, (cells % (size * size + 1)).reshape(batch, -1), 1).reshape(cells.shape)
    view = np.where(is_lit(view == WALL), view, np.int8(UNSEEN))
    view[..., HERE] = EMPTY
    return view


def targets_of(grids: np.ndarray) -> np.ndarray:
    """(B, P, 3) int, the pose to which each action leads; a step into a wall stays."""
    size = grids.shape[1]
    every = poses(size)
    targets = np.empty((len(grids), len(every), N_ACTIONS), np.int64)
    for action in range(N_ACTIONS):
        x, y, heading = moved(every, action).T
        targets[..., action] = pose_index(size, x, y, heading)
    blocked = grids[:, y, x] == WALL  # of the last action, FORWARD
    targets[..., FORWARD] = np.where(blocked, np.arange(len(every)), targets[..., FORWARD])
    return targets


def distances_to(targets: np.ndarray, end: int) -> np.ndarray:
    """(P,) int, the fewest actions from each pose to the pose `end`, by the (P, 3) targets of one room; -1: no way."""
    actions = np.full(len(targets), len(targets))
    actions[end] = 0
    while True:  # relax every move at once until nothing gets nearer
        nearer = np.minimum(actions, actions[targets].min(1) + 1)
        if (nearer == actions).all():
            return np.where(actions < len(targets), actions, -1)
        actions = nearer


def steps_to(free: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The fewest actions from each free pose to an end, in many rooms at once.

    Args:
        free: (B, P) bool, poses on floor.
        ends: (B,) int, a free pose of each room.

    Returns:
        (B, P) int16, -1 for poses that are not free and where there is no way.
    """
    batch, inside = len(free), math.isqrt(free.shape[1] // N_HEADINGS)
    floor = free.reshape(batch, inside, inside, N_HEADINGS)
    # Headings first, with a border of nothing around the cells: a step is then a shift of whole arrays.
    left = np.zeros((N_HEADINGS, batch, inside + 2, inside + 2), bool)
    left[:, :, 1:-1, 1:-1] = floor.transpose(3, 0, 1, 2)
    cell, heading = np.divmod(ends, N_HEADINGS)
    rim = np.zeros_like(left)
    rim[heading, np.arange(batch), 1 + cell // inside, 1 + cell % inside] = True
    reached, waited = left & rim, np.zeros(left.shape, np.int16)
    left &= ~rim
    while rim.any():
        waited += left
        back = rim[[1, 2, 3, 0]] | rim[[3, 0, 1, 2]]  # by a turn
        for at, (x, y) in enumerate(AHEAD.tolist()):  # by a step forward
            back[at] |= np.roll(rim[at], (-y, -x), (1, 2))
        rim = back & left
        left &= ~rim
        reached |= rim
    steps = np.where(reached, waited, -1)[:, :, 1:-1, 1:-1]
    return steps.transpose(1, 2, 3, 0).reshape(batch, -1)


def free_poses(grids: np.ndarray) -> np.ndarray:
    """(B, P) bool, poses on floor."""
    x, y, _ = poses(grids.shape[1]).T
    return grids[:, y, x] != WALL


def sight(grids: np.ndarray, views: np.ndarray) -> np.ndarray:
    """(B, P, size * size) bool, the cells whose class each pose sees; its own is not among them.

    Args:
        grids: (B, size, size) int8 classes.
        views: (B, P, 25), of all poses.
    """
    return unpacked(sight_bits(grids.shape[1], views), grids[0].size)


def sight_bits(size: int, views: np.ndarray) -> np.ndarray:
    """(W, B, P) uint64, the same as `sight`: a bit for each cell, see `packed`; of views (B, P, 25)."""
    shown = views.reshape(*views.shape[:-1], VIEW, VIEW) != UNSEEN
    bit = (1 << np.arange(VIEW, dtype=np.uint8))[:, None]
    rows = (shown * bit).sum(-2, dtype=np.uint8)  # (B, P, 5), the cells of each distance
    table = _sight_table(size)
    pose = np.arange(views.shape[1])
    found = table[0, :, pose, rows[..., 0]]
    for j in range(1, VIEW):
        found |= table[j, :, pose, rows[..., j]]
    return np.ascontiguousarray(np.moveaxis(found, -1, 0))


@lru_cache
def _sight_table(size: int) -> np.ndarray:
    """(5, W, P, 32) uint64, for the cells that are shown at a distance, as bits: those of the room that they are."""
    cells = seen_cells(size).copy()  # (P, 25)
    cells[:, HERE] = -1
    cells = cells.reshape(-1, VIEW, VIEW)
    combos = np.arange(2**VIEW)[:, None] >> np.arange(VIEW) & 1  # (32, 5)
    mask = np.zeros((VIEW, len(cells), 2**VIEW, size * size + 1), bool)  # last column: off the grid, and the own cell
    for j in range(VIEW):
        where = np.broadcast_to(cells[:, None, :, j], (len(cells), *combos.shape))
        np.put_along_axis(mask[j], where % (size * size + 1), combos[None] > 0, 2)
    mask[..., -1] = False
    return np.moveaxis(packed(mask[..., :-1]), 0, 1)


def packed(mask: np.ndarray) -> np.ndarray:
    """(W, ...) uint64, the last axis of a mask in words of 64 bits."""
    rows = np.packbits(mask, -1)
    padded = np.zeros((*rows.shape[:-1], -(-rows.shape[-1] // 8) * 8), np.uint8)
    padded[..., : rows.shape[-1]] = rows
    return np.moveaxis(padded.view(np.uint64), -1, 0).copy()


def unpacked(words: np.ndarray, n: int) -> np.ndarray:
    """(..., n) bool, the mask of which `packed` made words (W, ...)."""
    rows = np.ascontiguousarray(np.moveaxis(words, 0, -1)).view(np.uint8)
    return np.unpackbits(rows, axis=-1, count=n).view(bool)


def is_unique(views: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(B, P) bool, free poses whose view no other free pose of the room has."""
    weights = np.random.default_rng(0).integers(1, 2**44, N_CELLS).astype(float)
    code = (views.reshape(-1, N_CELLS).astype(float) @ weights).reshape(free.shape)  # a hash, exact below 2**53
    code = np.where(free, code, -1.0 - np.arange(code.shape[1]))
    order = code.argsort(1)
    ordered = np.take_along_axis(code, order, 1)
    same = ordered[:, 1:] == ordered[:, :-1]
    alone = ~(np.pad(same, ((0, 0), (1, 0))) | np.pad(same, ((0, 0), (0, 1))))
    unique = np.empty_like(free)
    np.put_along_axis(unique, order, alone, 1)
    return unique & free


@lru_cache
def _light() -> tuple[np.ndarray, np.ndarray]:
    """How light passes a row of a view, as tables over (lit cells, opaque cells), both as bits.

    Returns:
        Two (32, 32) uint8: the cells of the row that are lit in the end, and the cells of the next row that it lights.
    """
    row, beyond = np.zeros((2, 2**VIEW, 2**VIEW), np.uint8)
    for lit in range(2**VIEW):
        for opaque in range(2**VIEW):
            here, further = lit, 0
            for cells, step in ((range(VIEW - 1), 1), (range(VIEW - 1, 0, -1), -1)):
                for i in cells:
                    if here >> i & 1 and not opaque >> i & 1:
                        here |= 1 << i + step
                        further |= 1 << i + step | 1 << i
            row[lit, opaque], beyond[lit, opaque] = here, further
    return row, beyond


def is_lit(opaque: np.ndarray) -> np.ndarray:
    """(..., 25) bool, which cells light reaches from the agent, as in MiniGrid's `process_vis`."""
    bit = (1 << np.arange(VIEW, dtype=np.uint8))[:, None]
    rows = (opaque.reshape(*opaque.shape[:-1], VIEW, VIEW) * bit).sum(-2, dtype=np.uint8)  # of each distance
    row, beyond = _light()
    lit = np.empty_like(rows)
    incoming = np.full(rows.shape[:-1], 1 << VIEW // 2, np.uint8)
    for j in reversed(range(VIEW)):
        lit[..., j] = row[incoming, rows[..., j]]
        incoming = beyond[incoming, rows[..., j]]
    return (lit[..., None, :] & bit > 0).reshape(opaque.shape)
