"""Transitions, banks and problems as rows of integers, whatever a state is.

A state is C cells of K classes: a symbol is one cell, an egocentric view 25. A transition is a row of 2 C + 1 integers:
the cells of the source, the action, the cells of the end state. So rows of symbols have 3 integers, rows of views 51.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, Protocol

import numpy as np

SOURCE, ACTION, END = 0, 1, 2
COMPONENTS = ("source", "action", "end")
MASKED = -1  # stands for the masked component of a query, and fills padding rows of a bank


def parts(rows: Any) -> tuple[Any, Any, Any]:
    """Source (..., C), action (..., 1) and end (..., C) of transitions (..., 2 C + 1): views of the array or tensor."""
    cells = rows.shape[-1] // 2
    return rows[..., :cells], rows[..., cells : cells + 1], rows[..., cells + 1 :]


def mask(transitions: np.ndarray, masked: np.ndarray) -> np.ndarray:
    """(B, Q, W) int, queries: transitions (B, Q, W) without the component that is masked (B, Q), which becomes -1."""
    query = transitions.copy()
    for component, part in enumerate(parts(query)):
        part[masked == component] = MASKED
    return query


def pad(banks: Sequence[np.ndarray] | np.ndarray, length: int | None = None) -> np.ndarray:
    """(B, length, W) int64: B banks of (n, W) rows, of one width W, with rows of -1 below them.

    Args:
        banks: at least one.
        length: rows of each; None: as many as the longest bank has, and at least one.

    Raises:
        ValueError: if a bank is longer.
    """
    longest = max(map(len, banks))
    length = max(1, longest) if length is None else length
    if longest > length:
        raise ValueError(f"a bank of {longest} transitions does not fit into {length} rows")
    padded = np.full((len(banks), length, banks[0].shape[1]), MASKED)
    for rows, bank in zip(padded, banks, strict=True):
        rows[: len(bank)] = bank
    return padded


class Kind(IntEnum):
    """What a query asks about."""

    UNSEEN = 0
    SEEN = 1
    UNSOLVABLE = 2
    OFF_LATTICE = 3


def draw_weighted(rng: np.random.Generator, weight: np.ndarray, n: int) -> np.ndarray:
    """Draw n columns for each row of (B, M) weights, in proportion to them, by inverting the distribution function.

    Returns:
        (B, n) int.
    """
    batch, columns = weight.shape
    cdf = weight.cumsum(1) / np.maximum(weight.sum(1, keepdims=True), 1e-9)
    rows = np.arange(batch)[:, None]
    # The distribution of row i occupies the interval (i, i + 1].
    draw = rows + 1.0 - rng.random((batch, n))
    drawn = np.searchsorted((np.minimum(cdf, 1) + rows).ravel(), draw.ravel()).reshape(batch, n)
    return np.clip(drawn - rows * columns, 0, columns - 1)


class Moves(NamedTuple):
    """Q moves in each of B rooms; a room that has fewer is filled up with any moves, whose start is given as -1.

    Attributes:
        start: (B, Q) int, the place where each move starts.
        end: (B, Q) int, the place where it ends.
        transitions: (B, Q, W) int64, what an agent observes of it.
        n_places: places of a room, L.
    """

    start: np.ndarray
    end: np.ndarray
    transitions: np.ndarray
    n_places: int


class Banks(Protocol):
    """Memory banks of B rooms, of a kind of world."""

    def transitions(self) -> np.ndarray:
        """(B, N, W) int, rows of -1 fill up."""

    def moves(self) -> Moves:
        """All moves of each room that one may ask a model about."""


class Queries(Protocol):
    """Q queries about each of B banks."""

    @property
    def transitions(self) -> np.ndarray:
        """(B, Q, W) int, the whole true transitions."""

    @property
    def shown(self) -> np.ndarray:
        """(B, Q, W) int, the transitions as an agent sees them, with errors where it makes some."""

    @property
    def masked(self) -> np.ndarray:
        """(B, Q) int, which component is masked: SOURCE, ACTION or END."""

    @property
    def kind(self) -> np.ndarray:
        """(B, Q) int of Kind, negative for queries of no kind."""

    @property
    def unknown(self) -> np.ndarray:
        """(B, Q) int, 1: "I don't know" is right, 0: it is not, -1: it is neither right nor wrong."""


class Problems(NamedTuple):
    """Q queries about each of B banks, and what is true: NumPy arrays, or the same as torch tensors, all of int64.

    Attributes:
        memories: (B, N, W), rows of -1 fill up.
        query: (B, Q, W), the masked component -1.
        truth: (B, Q, W), the whole transitions.
        masked: (B, Q), which component is masked.
        unknown: (B, Q), 1: "I don't know" is right, 0: it is not, -1: it is neither right nor wrong.
    """

    memories: Any
    query: Any
    truth: Any
    masked: Any
    unknown: Any


def to_problems(banks: Banks, queries: Queries, capacity: int | None = None) -> Problems:
    """Pad the banks to `capacity` rows, or to the longest, and mask the queries.

    Raises:
        ValueError: if a bank has more rows than the capacity.
    """
    truth = queries.transitions
    memories = pad(banks.transitions(), capacity)
    return Problems(memories, mask(queries.shown, queries.masked), truth, queries.masked, queries.unknown)


class Source(Protocol):
    """Draws problems of one kind: rooms, a memory bank of each, and queries about it.

    Attributes:
        cells: C, cells of a state.
        n_actions: number of actions.
        share: how often it is drawn in a mixture, relative to the other sources.
        capacity: rows of the padded banks.
    """

    @property
    def cells(self) -> int: ...

    @property
    def n_actions(self) -> int: ...

    @property
    def share(self) -> float: ...

    @property
    def capacity(self) -> int: ...

    def draw_banks(self, rng: np.random.Generator, n: int) -> Any:
        """n rooms with a bank each: `Banks`."""

    def ask(self, rng: np.random.Generator, banks: Any, n: int) -> Any:
        """n queries about each bank: `Queries`."""

    def draw(self, rng: np.random.Generator, n_rooms: int, n_queries: int) -> Problems:
        """A batch for training."""

    def is_true(self, banks: Any, transitions: np.ndarray) -> np.ndarray | None:
        """(B, Q) bool, which transitions (B, Q, W) happen in the rooms of the banks; None if that is not measured."""


def pack(wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of moves from a table of them.

    Args:
        wanted: (B, L, A) bool, by room, place and action.

    Returns:
        (B, Q) int place and (B, Q) int action of the moves that are wanted, in order; place -1 and action 0 fill up.
    """
    count = wanted.sum((1, 2))
    room, place, action = np.nonzero(wanted)
    slot = np.arange(len(room)) - np.repeat(np.cumsum(count) - count, count)
    packed = np.full((2, len(wanted), max(1, count.max(initial=0))), -1)
    packed[:, room, slot] = place, action
    return packed[0], np.maximum(packed[1], 0)
