"""Queries about batches of rooms (paper: "Query Selection")."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from eswm_gym.rooms.lattice.banks import BankBatch
from eswm_gym.rooms.transitions import Kind, draw_weighted

# Shares of unseen, seen, unsolvable and off-lattice queries.
PAPER_MIX = (0.68, 0.15, 0.17, 0.0)
TRAINING_MIX = (0.66, 0.12, 0.19, 0.03)
UNSEEN_ONLY = (1.0, 0.0, 0.0, 0.0)
SEEN_ONLY = (0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class QueryBatch:
    """Q queries for each of B rooms.

    Attributes:
        transitions: (B, Q, 3) int, the whole true transitions (s_s, a, s_e).
        masked: (B, Q) int, the masked component: SOURCE, ACTION or END.
        kind: (B, Q) int of Kind. The right answer to an unsolvable query is "I don't know".
        location, action: (B, Q) int, the moves asked about.
    """

    transitions: np.ndarray
    masked: np.ndarray
    kind: np.ndarray
    location: np.ndarray
    action: np.ndarray

    def beside(self, other: QueryBatch) -> QueryBatch:
        """These queries and others about the same banks."""
        both = {f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)], 1) for f in fields(self)}
        return QueryBatch(**both)

    @property
    def shown(self) -> np.ndarray:
        """(B, Q, 3) int64, the transitions as an agent sees them: without errors."""
        return self.transitions

    @property
    def unknown(self) -> np.ndarray:
        """(B, Q) int64, 1 where "I don't know" is right, else 0. It is right for queries of no kind, too."""
        return ((self.kind == Kind.UNSOLVABLE) | (self.kind < 0)).astype(np.int64)


def move_kinds(banks: BankBatch) -> np.ndarray:
    """(B, L, A) int of Kind for each move, -1 for moves that are not asked about.

    A move is unsolvable if exactly one of its ends is observed and neither is a wall. Moves into an unobserved wall
    are not asked about: to the model, they look like unsolvable ones. Of clusters that a bank does not join, what lies
    in another one counts as unobserved.
    """
    rooms = banks.rooms
    around = rooms.lattice.neighbors
    free = ~rooms.walls
    passable = rooms.passable
    observed = rooms.observed
    kind = np.full((*rooms.states.shape, rooms.lattice.n_actions), -1, np.int8)
    on = rooms.lattice.on_lattice & passable[:, :, None]
    here, there = observed[:, :, None], observed[:, around]
    if banks.cluster is not None and banks.joined is not None:
        apart = banks.cluster[:, around] != banks.cluster[:, :, None]
        there = there & ~(apart & here & ~banks.joined[:, None, None])
    kind[on & here & there] = Kind.UNSEEN
    kind[on & (here ^ there) & free[:, around]] = Kind.UNSOLVABLE
    kind[(observed & passable)[:, :, None] & ~rooms.lattice.on_lattice] = Kind.OFF_LATTICE
    kind[banks.holds()] = Kind.SEEN
    return kind


def draw_queries(
    rng: np.random.Generator, banks: BankBatch, n: int, mix=PAPER_MIX, among: np.ndarray | None = None
) -> QueryBatch:
    """Draw n queries for each bank, each with one component masked.

    Args:
        rng: source of randomness.
        banks: B banks.
        n: queries for each bank.
        mix: shares of the kinds in the order of Kind; the share of a kind that a room lacks goes to the others.
        among: (B, L, A) bool, the moves that may be asked about, if there is anything to ask of them. None: all.

    Raises:
        ValueError: if mix does not have one share for each kind.
    """
    if len(mix) != len(Kind):
        raise ValueError(f"mix needs {len(Kind)} shares, got {len(mix)}")
    rooms = banks.rooms
    batch = len(rooms)
    kind = move_kinds(banks)
    if among is not None:
        kind[~among] = -1
    kind = kind.reshape(batch, -1)
    # A move weighs the share of its kind, divided by the number of moves of that kind in the room.
    weight = np.zeros(kind.shape, np.float64)
    for k, share in enumerate(mix):
        of_kind = kind == k
        weight += of_kind * (share / np.maximum(of_kind.sum(1, keepdims=True), 1))
    empty = weight.sum(1) == 0
    weight[empty] = kind[empty] >= 0
    move = draw_weighted(rng, weight, n)
    rows = np.arange(batch)[:, None]
    location, action = np.divmod(move, rooms.lattice.n_actions)
    end = rooms.targets()[rows, location, action]
    states = rooms.states
    return QueryBatch(
        transitions=np.stack([states[rows, location], rooms.numbered(action), states[rows, end]], axis=2),
        masked=rng.integers(3, size=(batch, n)),
        kind=kind[rows, move],
        location=location,
        action=action,
    )
