"""Memory banks of MiniGrid's rooms (paper: "Generating Memory Banks").

A bank holds either transitions from all over the room, whose views overlap and together show it, or those of a walk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.rooms.grid.layouts import N_CLASSES, UNSEEN, WALL
from eswm_gym.rooms.grid.views import (
    FORWARD,
    HERE,
    LEFT,
    N_ACTIONS,
    N_CELLS,
    RIGHT,
    free_poses,
    is_unique,
    packed,
    sight_bits,
    targets_of,
    unpacked,
    views_of,
)
from eswm_gym.rooms.transitions import Moves, pack, parts

# Two views that share so many floor cells tell how they lie to each other: with seven kinds of floor, six cells agree
# by chance once in 100,000.
OVERLAP = 6
COVER_BANK_SIZE = 24  # most transitions of a cover bank
ROW = 2 * N_CELLS + 1  # a transition: the cells of s_s, the action, the cells of s_e


@dataclass(frozen=True, eq=False)
class GridBatch:
    """B layouts with P poses each, and what follows from them.

    Attributes:
        grids: (B, size, size) int8 classes.
        views: (B, P, 25) int8, what each pose shows.
        targets: (B, P, 3) int, where each action leads.
        free: (B, P) bool, poses on floor.
        sight: (B, P, size * size) bool, the cells whose class each pose sees.
        unique: (B, P) bool, free poses with a view of their own.
        sight_bits: (W, B, P) uint64, `sight` as bits.
    """

    grids: np.ndarray
    views: np.ndarray
    targets: np.ndarray
    free: np.ndarray
    sight: np.ndarray
    unique: np.ndarray
    sight_bits: np.ndarray

    @staticmethod
    def of(grids: np.ndarray) -> GridBatch:
        views, free = views_of(grids), free_poses(grids)
        bits = sight_bits(grids.shape[1], views)
        sight = unpacked(bits, grids[0].size)
        return GridBatch(grids, views, targets_of(grids), free, sight, is_unique(views, free), bits)

    def __len__(self) -> int:
        return len(self.grids)

    @property
    def floor(self) -> np.ndarray:
        """(B, size * size) bool."""
        return (self.grids != WALL).reshape(len(self), -1)

    @property
    def visible(self) -> np.ndarray:
        """(B, size * size) bool, the cells that can be seen from somewhere."""
        seen = np.bitwise_or.reduce(np.where(self.free, self.sight_bits, np.uint64(0)), 2)
        return unpacked(seen, self.sight.shape[2])


@dataclass(frozen=True, eq=False)
class GridBankBatch:
    """A memory bank for each of B rooms.

    Attributes:
        rooms: the rooms.
        pose: (B, N) int, where each transition starts, -1 for padding.
        action: (B, N) int, -1 for padding.
        wrong_cells: (B,) or one number, share of the cells of a view that are wrong or unseen; see `with_errors`.
        seed: of the errors.
    """

    rooms: GridBatch
    pose: np.ndarray
    action: np.ndarray
    wrong_cells: np.ndarray | float = 0.0
    seed: int = 0

    def transitions(self) -> np.ndarray:
        """(B, N, 51) int64 rows: the cells of s_s, the action, the cells of s_e; -1 for padding."""
        rng = np.random.default_rng(self.seed)
        return with_errors(rng, rows_of(self.rooms, self.pose, self.action), self.wrong_cells)

    def known(self) -> np.ndarray:
        """(B, size * size) bool, the cells whose class the bank shows."""
        rooms, room = self.rooms, np.arange(len(self.rooms))[:, None]
        seen = rooms.sight[room, self.pose] | rooms.sight[room, rooms.targets[room, self.pose, self.action]]
        return (seen & (self.pose >= 0)[..., None]).any(1)

    def moves(self) -> Moves:
        """All moves from poses on the floor, whether the bank shows them or not."""
        rooms, room = self.rooms, np.arange(len(self.rooms))[:, None]
        start, action = pack(np.repeat(rooms.free[..., None], N_ACTIONS, 2))
        end = rooms.targets[room, start, action]
        rows = rows_of(rooms, np.maximum(start, 0), action)
        return Moves(start, end, rows, rooms.free.shape[1])


def rows_of(rooms: GridBatch, pose: np.ndarray, action: np.ndarray) -> np.ndarray:
    """(B, N, 51) int64 rows of the moves (B, N) from poses; rows of -1 where the pose is -1."""
    room = np.arange(len(rooms))[:, None]
    end = rooms.targets[room, pose, action]
    rows = np.concatenate([rooms.views[room, pose], action[..., None], rooms.views[room, end]], 2).astype(np.int64)
    rows[pose < 0] = -1
    return rows


def with_errors(rng: np.random.Generator, rows: np.ndarray, share: np.ndarray | float) -> np.ndarray:
    """The same transitions (B, N, 51) or views (B, N, 25) with errors: half of them another class, half UNSEEN.

    Args:
        rng: source of randomness.
        rows: classes; -1 stays as it is.
        share: (B,) or one number, the probability that a cell is wrong or unseen; the agent's own cell never is.
    """
    if not np.any(share):
        return rows
    shown = rows.copy()
    for view in parts(shown)[::2] if rows.shape[-1] == ROW else [shown]:
        draw = rng.random(view.shape)
        share_of = np.reshape(share, (-1, 1, 1))
        other = 1 + (view - 1 + rng.integers(1, N_CLASSES - 1, view.shape)) % (N_CLASSES - 1)
        other = np.where(view == UNSEEN, rng.integers(1, N_CLASSES, view.shape), other)
        noisy = np.where(draw < share_of / 2, other, np.where(draw < share_of, UNSEEN, view))
        noisy[..., HERE] = view[..., HERE]
        view[...] = np.where(view < 0, view, noisy)
    return shown


def cover_banks(rng: np.random.Generator, rooms: GridBatch, share: np.ndarray | float = 1.0) -> GridBankBatch:
    """Draw transitions that together show the room: each new one overlaps what is seen and shows something new.

    Args:
        rng: source of randomness.
        rooms: B rooms.
        share: (B,) or one number, the share of the visible cells that a bank shows; the rest is the unobserved region.
    """
    batch, n_poses = rooms.free.shape
    visible = rooms.visible
    wanted = np.ceil(np.asarray(share) * visible.sum(1))
    # A transition shows what both of its ends show; steps into walls show nothing more. Cells are bits from here on.
    sight, floor = rooms.sight_bits, packed(rooms.floor)[:, :, None]  # (W, B, P) and (W, B, 1)
    shows = (sight[..., None] | sight[:, np.arange(batch)[:, None, None], rooms.targets]).reshape(len(sight), batch, -1)
    allowed = (rooms.free[..., None] & (rooms.targets != np.arange(n_poses)[:, None])).reshape(batch, -1)
    seen = np.zeros_like(floor)
    chosen = np.full((batch, COVER_BANK_SIZE), -1)
    going = np.flatnonzero(wanted > 0)  # the rooms whose banks show too little as yet
    for i in range(COVER_BANK_SIZE):
        here, known = shows[:, going], seen[:, going]
        new = _count(here & ~known)
        # Begin with a transition that shows much of the floor.
        shared = _count(here & floor[:, going] & (known if i else ~known))
        fits = allowed[going] & (new > 0) & (shared >= (OVERLAP if i else 2 * OVERLAP))
        goes_on = fits.any(1)
        if not goes_on.any():
            break
        # Draw one with a probability in proportion to the new cells that it shows: the greatest key wins.
        with np.errstate(divide="ignore"):  # of a draw of 0
            key = np.log(rng.random(allowed.shape)[going]) / np.maximum(new, 1)
        best = np.where(fits, key, -np.inf).argmax(1)
        going, best = going[goes_on], best[goes_on]
        chosen[going, i] = best
        seen[:, going] |= shows[:, going, best][..., None]
        going = going[_count(seen[:, going])[:, 0] < wanted[going]]
    pose, action = np.divmod(chosen, N_ACTIONS)
    return GridBankBatch(rooms, np.where(chosen < 0, -1, pose), np.where(chosen < 0, -1, action))


def _count(bits: np.ndarray) -> np.ndarray:
    """(...) uint16, how many bits are set in words (W, ...)."""
    return np.bitwise_count(bits).sum(0, dtype=np.uint16)


def cover_bank(grid: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(24, 51) int64, the bank of one (size, size) layout, rows of -1 at the end; see `cover_banks`."""
    return cover_banks(rng, GridBatch.of(grid[None])).transitions()[0]


def walk_banks(rng: np.random.Generator, rooms: GridBatch, steps: np.ndarray, onward: float = 0.75) -> GridBankBatch:
    """Walk through the rooms from a random pose; the bank holds each different move once.

    Args:
        rng: source of randomness.
        rooms: B rooms.
        steps: (B,) int, how many moves each walk has.
        onward: probability of a step ahead where nothing is in the way; else the agent turns, mostly the same way as
            before.
    """
    batch = len(rooms)
    room = np.arange(batch)
    pose = np.where(rooms.free, rng.random(rooms.free.shape), -1).argmax(1)
    longest = int(steps.max(initial=0))
    moves = np.full((batch, longest), -1)
    turn = rng.integers(LEFT, RIGHT + 1, batch)
    for i in range(longest):
        turn = np.where(rng.random(batch) < 0.2, LEFT + RIGHT - turn, turn)
        blocked = rooms.targets[room, pose, FORWARD] == pose
        # A bump now and then, since agents try whether a wall is still there.
        ahead = rng.random(batch) < np.where(blocked, 0.03, onward)
        action = np.where(ahead, FORWARD, turn)
        move = pose * N_ACTIONS + action
        new = (i < steps) & ~(moves[:, :i] == move[:, None]).any(1)
        moves[new, i] = move[new]
        pose = rooms.targets[room, pose, action]
    kept, action = np.divmod(moves, N_ACTIONS)
    return GridBankBatch(rooms, np.where(moves < 0, -1, kept), np.where(moves < 0, -1, action))
