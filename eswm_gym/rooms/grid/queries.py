"""Queries about MiniGrid's rooms (paper: "Query Selection"), and which of them the bank determines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.rooms.grid.banks import OVERLAP, GridBankBatch, GridBatch, rows_of, with_errors
from eswm_gym.rooms.grid.views import FORWARD, LEFT, N_ACTIONS
from eswm_gym.rooms.transitions import ACTION, END, SOURCE, Kind, draw_weighted, parts

UNDECIDED = -1  # kind of the queries that the bank does not determine, but of which it tells something
KNOWN = -2  # kind of a look: the view is given
PARTLY = -3  # kind of the queries whose masked view shows cells that are not known, but too few to be unsolvable
LOOK = N_ACTIONS  # stands for an action that changes nothing
UNKNOWN_FLOOR = 3  # so many unknown floor cells in the masked view make a query unsolvable
MIX = (0.55, 0.15, 0.1, 0.2)  # shares of unseen queries, of seen ones, of unsolvable ones and of all others


@dataclass(frozen=True, eq=False)
class GridQueryBatch:
    """Q queries for each of B rooms.

    Attributes:
        transitions: (B, Q, 51) int64, the whole true transitions.
        masked: (B, Q) int, the masked component: SOURCE, ACTION or END.
        kind: (B, Q) int of Kind, or UNDECIDED. The right answer to an unsolvable query is "I don't know".
        shown: (B, Q, 51) int64, the transitions as the agent saw them, with the errors of its views.
    """

    transitions: np.ndarray
    masked: np.ndarray
    kind: np.ndarray
    shown: np.ndarray

    @property
    def unknown(self) -> np.ndarray:
        """(B, Q) int64, 1: "I don't know" is right, 0: it is not, -1: it is neither right nor wrong."""
        return np.where(self.kind == UNDECIDED, -1, (self.kind == Kind.UNSOLVABLE) | (self.kind == PARTLY))


def move_kinds(banks: GridBankBatch) -> np.ndarray:
    """(B, P, 3, 3) int of Kind for each move (pose, action) and masked component; PARTLY or UNDECIDED for neither.

    A bank determines the masked component (UNSEEN, or SEEN if it holds the transition) if

    - each given view can be placed: it shares six floor cells with what the bank shows, and no other pose of the
      room has the same view;
    - a masked view shows nothing but cells that the bank or the given view shows;
    - nothing else completes the query: a masked action has an effect that no other action has, and where the source of
      a step ahead is masked, it is clear whether the agent was blocked.

    A masked view is UNSOLVABLE if it has three floor cells or more that neither the bank nor the given view shows, and
    PARTLY known if it has fewer of them, or walls. "I don't know" is right then as well, but no figure counts it.
    """
    rooms, known = banks.rooms, banks.known()
    room = np.arange(len(rooms))[:, None, None]
    end = rooms.targets
    floor = rooms.floor[:, None]
    placed = rooms.unique & ((rooms.sight & (known[:, None] & floor)).sum(2) >= OVERLAP)
    # The cells of the masked view, at the source or at the end, that neither the bank nor the given view shows.
    not_in_bank = rooms.sight & ~known[:, None]
    unknown = [not_in_bank[:, :, None] & ~rooms.sight[room, end], not_in_bank[room, end] & ~rooms.sight[:, :, None]]
    all_known = [~cells.any(3) for cells in unknown]
    too_little = [(cells & floor[:, None]).sum(3) >= UNKNOWN_FLOOR for cells in unknown]
    source = placed[room, end] & all_known[0] & _is_clear_source(rooms)
    solved = np.stack([source, _is_clear_action(rooms), placed[:, :, None] & all_known[1]], 3)
    solved[..., ACTION] &= placed[:, :, None] & placed[room, end]
    kind = np.full(solved.shape, UNDECIDED, np.int8)
    kind[..., SOURCE][~all_known[0]] = PARTLY
    kind[..., END][~all_known[1]] = PARTLY
    kind[..., SOURCE][too_little[0]] = Kind.UNSOLVABLE
    kind[..., END][too_little[1]] = Kind.UNSOLVABLE
    kind[solved] = Kind.UNSEEN
    held = np.zeros((*solved.shape[:3], 1), bool)
    b, n = np.nonzero(banks.pose >= 0)
    held[b, banks.pose[b, n], banks.action[b, n]] = True
    kind[solved & held] = Kind.SEEN
    kind[~rooms.free] = UNDECIDED
    return kind


def draw_queries(
    rng: np.random.Generator, banks: GridBankBatch, n: int, mix: tuple[float, ...] = MIX, looks: float = 0.0
) -> GridQueryBatch:
    """Draw n queries for each bank, each with one component masked.

    Args:
        rng: source of randomness.
        banks: B banks.
        n: queries for each bank.
        mix: shares of unseen, of seen, of unsolvable and of all other moves from free poses; the share of what a room
            lacks goes to the others.
        looks: share of queries in place of these that ask for the given view itself, without errors: they have the
            action LOOK, and their source is their end.
    """
    rooms = banks.rooms
    batch = len(rooms)
    kind = move_kinds(banks).reshape(batch, -1)
    free = np.repeat(rooms.free, N_ACTIONS * 3, 1)
    weight = np.zeros(kind.shape)
    for share, of_kind in zip(
        mix, (kind == Kind.UNSEEN, kind == Kind.SEEN, kind == Kind.UNSOLVABLE, kind < 0), strict=True
    ):
        of_kind = of_kind & free
        weight += of_kind * (share / np.maximum(of_kind.sum(1, keepdims=True), 1))
    query = draw_weighted(rng, weight, n)
    move, masked = np.divmod(query, 3)
    pose, action = np.divmod(move, N_ACTIONS)
    rows, kind = rows_of(rooms, pose, action), np.take_along_axis(kind, query, 1)
    look = rng.random(query.shape) < looks
    source, acted, end = parts(rows)
    end[look], acted[look] = source[look], LOOK
    masked, kind = np.where(look, END, masked), np.where(look, KNOWN, kind)
    return GridQueryBatch(rows, masked, kind, with_errors(rng, rows, banks.wrong_cells))


def _is_clear_source(rooms: GridBatch) -> np.ndarray:
    """(B, P, 3) bool, moves whose source follows from the end: not where a step ahead may have been a bump, or a bump
    a step."""
    room, pose = np.arange(len(rooms))[:, None], np.arange(rooms.free.shape[1])
    clear = np.ones(rooms.targets.shape, bool)
    end = rooms.targets[..., FORWARD]
    blocked_there = rooms.targets[room, end, FORWARD] == end
    # A step may have been a bump if there is a wall ahead of its end; a bump may have been a step if the cell behind it
    # is free.
    turned = rooms.targets[room, rooms.targets[..., LEFT], LEFT]  # the pose that looks back
    free_behind = rooms.targets[room, turned, FORWARD] != turned
    clear[..., FORWARD] = np.where(end == pose, ~free_behind, ~blocked_there)
    return clear


def _is_clear_action(rooms: GridBatch) -> np.ndarray:
    """(B, P, 3) bool, moves after which the view differs from that after every other move from the same pose."""
    room = np.arange(len(rooms))[:, None, None]
    ends = rooms.views[room, rooms.targets]
    same = (ends[:, :, :, None] == ends[:, :, None]).all(-1)
    return same.sum(3) == 1
