"""Queries about MiniGrid's rooms (paper: "Query Selection"), and which of them the bank determines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.rooms.grid.banks import OVERLAP, GridBanks, GridRooms, rows_of
from eswm_gym.rooms.grid.views import FORWARD, N_ACTIONS
from eswm_gym.rooms.lattice.queries import Kind, draw_weighted
from eswm_gym.rooms.transitions import ACTION, END, SOURCE

UNDECIDED = -1  # kind of queries that are neither determined nor without any hint
HIDDEN = 3  # so many unknown floor cells in the masked view make a query unsolvable
MIX = (0.6, 0.15, 0.25)  # shares of determined unseen, seen, and of all others


@dataclass(frozen=True, eq=False)
class GridQueries:
    """Q queries for each of B rooms.

    Attributes:
        transitions: (B, Q, 51) int64, the whole true transitions.
        masked: (B, Q) int, which component is hidden: 0 source, 1 action, 2 end.
        kind: (B, Q) int of Kind, or UNDECIDED. The right answer to an unsolvable query is "I don't know".
    """

    transitions: np.ndarray
    masked: np.ndarray
    kind: np.ndarray

    @property
    def unknown(self) -> np.ndarray:
        """(B, Q) int64, 1: "I don't know" is right, 0: it is not, -1: it is neither right nor wrong."""
        return np.where(self.kind == UNDECIDED, -1, self.kind == Kind.UNSOLVABLE)


def move_kinds(banks: GridBanks) -> np.ndarray:
    """(B, P, 3, 3) int of Kind for each move (pose, action) and masked component; UNDECIDED for neither.

    A bank determines the masked component (UNSEEN, or SEEN if it holds the transition) if

    - each given view can be placed: it shares six floor cells with what the bank shows, and no other pose of the
      room has the same view;
    - a masked view shows nothing but cells that the bank or the given view shows;
    - nothing else completes the query: as to the source of a step ahead, where the agent may have been blocked or
      not, and as to an action that another one would have the same effect as.

    A masked view with three floor cells or more that neither shows is UNSOLVABLE.
    """
    rooms, known = banks.rooms, banks.known()
    room = np.arange(len(rooms))[:, None, None]
    end = rooms.targets
    floor = rooms.floor[:, None]
    placed = rooms.unique & ((rooms.sight & (known[:, None] & floor)).sum(2) >= OVERLAP)
    # How many cells of the masked view neither the bank nor the given view shows, and how many of them are floor.
    unknown = rooms.sight & ~known[:, None]
    hidden = [unknown[:, :, None] & ~rooms.sight[room, end], unknown[room, end] & ~rooms.sight[:, :, None]]
    hides = [cells.any(3) for cells in hidden]
    hides_floor = [(cells & floor[:, None]).sum(3) >= HIDDEN for cells in hidden]
    clear = _is_clear_source(rooms)
    solved = np.stack(
        [placed[room, end] & ~hides[0] & clear, _is_clear_action(rooms), placed[:, :, None] & ~hides[1]], 3
    )
    solved[..., ACTION] &= placed[:, :, None] & placed[room, end]
    kind = np.full(solved.shape, UNDECIDED, np.int8)
    kind[..., SOURCE][hides_floor[0]] = Kind.UNSOLVABLE
    kind[..., END][hides_floor[1]] = Kind.UNSOLVABLE
    kind[solved] = Kind.UNSEEN
    held = np.zeros((*solved.shape[:3], 1), bool)
    b, n = np.nonzero(banks.pose >= 0)
    held[b, banks.pose[b, n], banks.action[b, n]] = True
    kind[solved & held] = Kind.SEEN
    kind[~rooms.free] = UNDECIDED
    return kind


def draw_queries(rng: np.random.Generator, banks: GridBanks, n: int, mix: tuple[float, ...] = MIX) -> GridQueries:
    """Draw n queries for each bank, each with one component masked.

    Args:
        rng: source of randomness.
        banks: B banks.
        n: queries for each bank.
        mix: shares of unseen, seen and all other moves from free poses; what a room lacks leaves its share to others.
    """
    rooms = banks.rooms
    batch = len(rooms)
    kind = move_kinds(banks).reshape(batch, -1)
    free = np.repeat(rooms.free, N_ACTIONS * 3, 1)
    weight = np.zeros(kind.shape)
    for share, of_kind in zip(
        mix, (kind == Kind.UNSEEN, kind == Kind.SEEN, (kind < 0) | (kind == Kind.UNSOLVABLE)), strict=True
    ):
        of_kind = of_kind & free
        weight += of_kind * (share / np.maximum(of_kind.sum(1, keepdims=True), 1))
    query = draw_weighted(rng, weight, n)
    move, masked = np.divmod(query, 3)
    pose, action = np.divmod(move, N_ACTIONS)
    return GridQueries(rows_of(rooms, pose, action), masked, np.take_along_axis(kind, query, 1))


def _is_clear_source(rooms: GridRooms) -> np.ndarray:
    """(B, P, 3) bool, moves whose start follows from the end: not if a step ahead may have been a step into a wall."""
    room, pose = np.arange(len(rooms))[:, None], np.arange(rooms.free.shape[1])
    clear = np.ones(rooms.targets.shape, bool)
    end = rooms.targets[..., FORWARD]
    blocked_there = rooms.targets[room, end, FORWARD] == end
    # A step came from behind; it could have been a bump if a wall is ahead. A bump could have been a step if
    # the cell behind is free.
    turned = rooms.targets[room, rooms.targets[..., 0], 0]  # the pose that looks back
    free_behind = rooms.targets[room, turned, FORWARD] != turned
    clear[..., FORWARD] = np.where(end == pose, ~free_behind, ~blocked_there)
    return clear


def _is_clear_action(rooms: GridRooms) -> np.ndarray:
    """(B, P, 3) bool, moves whose effect on the view no other move from there has."""
    room = np.arange(len(rooms))[:, None, None]
    ends = rooms.views[room, rooms.targets]
    same = (ends[:, :, :, None] == ends[:, :, None]).all(-1)
    return same.sum(3) == 1
