"""Memory banks and queries in houses (paper: "ProcThor Experiments", "Generating Memory Banks").

A bank is a tree over some of a pool's views, each of its branches a transition in one of the directions that one action
can take: as the minimal spanning banks of hexagonal rooms, but over views that together show the house.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from eswm_gym.rooms.indoor.pools import Pool
from eswm_gym.rooms.indoor.space import RAYS
from eswm_gym.rooms.transitions import ACTION, END, SOURCE

MAX_MEMORIES = 32
ENOUGH = 0.95  # of what the pool's views show, and a bank grows no more
KNOWN, UNKNOWN = 0.7, 0.1  # a view is known that a bank shows so much of, and not known where it shows less than that


class Asked(IntEnum):
    """What a query is about."""

    FREE = 0  # views that the bank does not hold
    BANK = 1  # views of the bank, and a move that it does not hold
    UNKNOWN = 2  # the answer is "I don't know"


@dataclass(frozen=True)
class IndoorQueries:
    """Q queries about a bank.

    Attributes:
        start, end: (Q,) int, rows of the pool.
        masked: (Q,) int, the component to complete.
        asked: (Q,) int, see `Asked`.
        overlap: (Q,) bool, whether the two views show some of the same walls.
    """

    start: np.ndarray
    end: np.ndarray
    masked: np.ndarray
    asked: np.ndarray
    overlap: np.ndarray


def draw_bank(
    rng: np.random.Generator, pool: Pool, max_memories: int = MAX_MEMORIES, enough: float = ENOUGH
) -> np.ndarray:
    """Grow a tree by the view that shows most that is new, from a pose drawn at random, until all was shown twice.

    What was shown once counts half as much as what was not.

    Args:
        max_memories: it holds at most so many transitions.
        enough: it stops once it shows so much of what all views of the pool show, twice.

    Returns:
        (N, 2) int, the poses where transitions start and end, in the order in which they were added: any first part of
        it is a bank as well.

    Raises:
        ValueError: if no action leads from any pose of the pool to another.
    """
    n = len(pool.poses)
    near = pool.moves | pool.moves.T
    joined = np.zeros(n, bool)
    if not near.any():
        raise ValueError("no action leads from any pose of the pool to another")
    first = rng.choice(np.flatnonzero(near.any(1)))
    joined[first] = True
    once, twice = pool.sees[first], np.zeros(n, np.uint32)
    transitions: list[tuple[int, int]] = []
    while len(transitions) < max_memories and np.bitwise_count(twice).mean() / RAYS < enough:
        edge = np.flatnonzero(near[joined].any(0) & ~joined)
        if not len(edge):
            break
        new = sum(np.bitwise_count(pool.sees[edge] & ~shown).sum(1, dtype=int) for shown in (once, twice))
        following = int(rng.choice(edge[new == new.max()]))
        other = int(rng.choice(np.flatnonzero(near[following] & joined)))
        ways = [way for way in ((other, following), (following, other)) if pool.moves[way]]
        transitions.append(ways[rng.integers(len(ways))])
        joined[following] = True
        twice = twice | (once & pool.sees[following])
        once = once | pool.sees[following]
    return np.array(transitions, np.int64).reshape(-1, 2)


def draw_queries(
    rng: np.random.Generator, pool: Pool, bank: np.ndarray, n: int, components: tuple[int, ...] = (SOURCE, ACTION, END)
) -> IndoorQueries:
    """Ask n questions about moves that a bank does not hold: most of them about views that the bank does not hold."""
    kinds = {component: query_kinds(pool, bank, component) for component in components}
    masked = rng.choice(components, n)
    start, end, asked = (np.zeros(n, np.int64) for _ in range(3))
    for component, kind in kinds.items():
        rows = np.flatnonzero(masked == component)
        there = [value for value in Asked if (kind == value).any()]
        if not there:
            continue
        weight = np.array([{Asked.FREE: 0.6, Asked.BANK: 0.25, Asked.UNKNOWN: 0.15}[value] for value in there])
        asked[rows] = rng.choice(there, len(rows), p=weight / weight.sum())
        for value in there:
            some = rows[asked[rows] == value]
            start[some], end[some] = np.argwhere(kind == value)[rng.integers((kind == value).sum(), size=len(some))].T
    return IndoorQueries(start, end, masked, asked, pool.overlap[start, end])


def query_kinds(pool: Pool, bank: np.ndarray, component: int) -> np.ndarray:
    """(P, P) int, what a query about the move from pose i to pose j asks, -1 where it asks nothing of interest.

    An action is known where the two views overlap, or the bank shows much of both; a view where the bank and the view
    that is given show much of it. It is not known where that is next to nothing, and in between nothing is asked.
    """
    n = len(pool.poses)
    held = np.zeros(n, bool)
    held[bank] = True
    in_bank = np.zeros((n, n), bool)
    in_bank[bank[:, 0], bank[:, 1]] = in_bank[bank[:, 1], bank[:, 0]] = True
    shown = np.bitwise_or.reduce(pool.sees[held], axis=0, initial=0)
    cover = np.bitwise_count(shown) / RAYS  # (P,)
    if component == ACTION:
        both = np.minimum(cover[:, None], cover[None])
        known, unknown = pool.overlap | (both >= KNOWN), ~pool.overlap & (both <= UNKNOWN)
    else:
        # Of the view at pose j what the bank or the view at pose i shows: the query gives one and asks for the other.
        with_given = np.bitwise_count(pool.sees | shown) / RAYS
        with_given = with_given if component == END else with_given.T
        of_given = np.broadcast_to(cover[:, None] if component == END else cover[None], (n, n))
        known, unknown = (with_given >= KNOWN) & ((of_given >= KNOWN) | pool.overlap), with_given <= UNKNOWN
    kind = np.full((n, n), -1)
    kind[known & ~held[:, None] & ~held[None]] = Asked.FREE
    kind[held[:, None] & held[None] & ~in_bank] = Asked.BANK
    kind[unknown & ~(held[:, None] & held[None])] = Asked.UNKNOWN
    return np.where(pool.moves, kind, -1)
