"""Queries about batches of rooms (paper: "Query Selection")."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from eswm_gym.rooms.lattice.banks import BankBatch


class Kind(IntEnum):
    """What a query asks about."""

    UNSEEN = 0
    SEEN = 1
    UNSOLVABLE = 2
    OFF_LATTICE = 3


# Shares of unseen, seen, unsolvable and off-lattice queries.
PAPER_MIX = (0.68, 0.15, 0.17, 0.0)
TRAINING_MIX = (0.66, 0.12, 0.19, 0.03)


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Q queries for each of B rooms.

    Attributes:
        transitions: (B, Q, 3) int, the whole true transitions (s_s, a, s_e).
        masked: (B, Q) int, which component is hidden: 0 source, 1 action, 2 end.
        kind: (B, Q) int of Kind. The right answer to an unsolvable query is "I don't know".
        location, action: (B, Q) int, the moves asked about.
    """

    transitions: np.ndarray
    masked: np.ndarray
    kind: np.ndarray
    location: np.ndarray
    action: np.ndarray

    @property
    def unknown(self) -> np.ndarray:
        """(B, Q) int64, 1 where "I don't know" is right, else 0. It is right for queries of no kind, too."""
        return ((self.kind == Kind.UNSOLVABLE) | (self.kind < 0)).astype(np.int64)


def move_kinds(banks: BankBatch) -> np.ndarray:
    """(B, L, 6) int of Kind for each move, -1 for moves that are not asked about.

    A move is unsolvable if exactly one of its ends is observed and neither is a wall: asked where a move into
    an unobserved wall leads, the model sees the same question and owes the same answer.
    """
    rooms = banks.rooms
    around = rooms.lattice.neighbors
    free = ~rooms.walls
    observed = rooms.observed
    kind = np.full((*rooms.states.shape, around.shape[1]), -1, np.int8)
    on = rooms.lattice.on_lattice & free[:, :, None]
    here, there = observed[:, :, None], observed[:, around]
    kind[on & here & there] = Kind.UNSEEN
    kind[on & (here ^ there) & free[:, around]] = Kind.UNSOLVABLE
    kind[(observed & free)[:, :, None] & ~rooms.lattice.on_lattice] = Kind.OFF_LATTICE
    kind[banks.holds()] = Kind.SEEN
    return kind


def draw_queries(
    rng: np.random.Generator, banks: BankBatch, n: int, mix=PAPER_MIX, start: np.ndarray | None = None
) -> QueryBatch:
    """Draw n queries for each bank, each with one component masked.

    Args:
        rng: source of randomness.
        banks: B banks.
        n: queries for each bank.
        mix: shares of the kinds in the order of Kind; kinds that a room lacks leave their share to others.
        start: (B,) int, the location of each room where all its queries start. None: any.

    Raises:
        ValueError: if mix has not one share for each kind.
    """
    if len(mix) != len(Kind):
        raise ValueError(f"mix needs {len(Kind)} shares, got {len(mix)}")
    rooms = banks.rooms
    batch = len(rooms)
    kind = move_kinds(banks)
    if start is not None:
        kind[np.arange(kind.shape[1]) != start[:, None]] = -1
    kind = kind.reshape(batch, -1)
    # Inverse CDF: each move weighs the share of its kind over how many of that kind the room has.
    weight = np.zeros(kind.shape, np.float64)
    for k, share in enumerate(mix):
        of_kind = kind == k
        weight += of_kind * (share / np.maximum(of_kind.sum(1, keepdims=True), 1))
    empty = weight.sum(1) == 0
    weight[empty] = kind[empty] >= 0
    move = draw_weighted(rng, weight, n)
    rows = np.arange(batch)[:, None]
    location, action = np.divmod(move, rooms.lattice.neighbors.shape[1])
    end = rooms.targets()[rows, location, action]
    states = rooms.states
    return QueryBatch(
        transitions=np.stack([states[rows, location], action, states[rows, end]], axis=2),
        masked=rng.integers(3, size=(batch, n)),
        kind=kind[rows, move],
        location=location,
        action=action,
    )


def draw_weighted(rng: np.random.Generator, weight: np.ndarray, n: int) -> np.ndarray:
    """(B, n) columns of (B, M) weights, drawn for each row in proportion; inverse CDF, one search over all rows."""
    batch, columns = weight.shape
    cdf = weight.cumsum(1) / np.maximum(weight.sum(1, keepdims=True), 1e-9)
    rows = np.arange(batch)[:, None]
    # The distribution of row i occupies the interval (i, i + 1].
    draw = rows + 1.0 - rng.random((batch, n))
    drawn = np.searchsorted((np.minimum(cdf, 1) + rows).ravel(), draw.ravel()).reshape(batch, n)
    return np.clip(drawn - rows * columns, 0, columns - 1)
