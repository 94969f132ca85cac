"""Where to go when there is something to find out (paper: section "Exploration in Novel Environments").

There are two rules. "uncertainty" is the paper's: take the move with the highest score, or look ahead if all moves from
here are certain. "frontier" is ours: go to the nearest place not visited yet and, of several, to the least open one,
which would be the hardest to visit later. "frontier-unordered" takes any of these. Of views, "frontier" means to go
where one sees most that is new for each move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Protocol

import numpy as np

from eswm_gym.agents.places import Place
from eswm_gym.agents.planning import UNKNOWN, TransitionTable, search

RULES = ("frontier", "frontier-unordered", "uncertainty")
NEWS = 0.1  # of a cell: a move that is expected to show no more than this shows nothing new
# What each neighbour of an unvisited place adds to its openness; the least open place is visited first. A place between
# visited ones and the rim becomes a dead end unless it is visited in passing (as in Warnsdorff's rule for the knight's
# tour). A place next to a wall is likely to be wall too. Chosen in rooms that no table uses, for an explorer that knew
# the lattice.
OPENNESS = {Place.OUTSIDE: -2.0, Place.VISITED: -1.0, Place.FRONTIER: 0.5, Place.WALL: 1.0}


def curiosity(table: TransitionTable, confidence: float, beta: float, gamma: float) -> np.ndarray:
    """(K, A) float, the paper's score of each uncertain move, -inf for moves of which the model is sure.

    Args:
        table: what the model imagines.
        confidence: an outcome of at most this probability is uncertain.
        beta, gamma: weights of the entropy (paper: algorithm "Explore Function").
    """
    score = np.where(table.end == UNKNOWN, 1 - beta * table.entropy, gamma * table.entropy)
    return np.where((table.end == UNKNOWN) | (table.probability <= confidence), score, -np.inf)


def most_uncertain(table: TransitionTable, score: np.ndarray, state: int, rng: np.random.Generator) -> int | None:
    """The move from here with the highest score, else the first one to the nearest state that has a scored move.

    Args:
        table: what the model imagines.
        score: (K, A) float, -inf where there is nothing to find out.
        state: where the agent is.
        rng: breaks ties.
    """
    here = score[table.row(state)]
    if np.isfinite(here).any():
        return int(rng.choice(np.flatnonzero(here == here.max())))
    goals = table.states[np.isfinite(score).any(1)]
    found = [plan for plan in (search(table, state, int(goal)) for goal in goals if goal != state) if plan.found]
    return min(found, key=lambda plan: (len(plan), -plan.probability)).actions[0] if found else None


class Ends(Protocol):
    """What says where moves end."""

    def ends_of(self, state: int) -> list[int]:
        """(A,) the state or place where each move from a state or place ends, UNKNOWN if it is not known."""


def nearest_frontier(
    table: Ends,
    places: Mapping[int, Place],
    state: int,
    actions: Collection[int],
    rng: np.random.Generator,
    ordered: bool = True,
) -> int | None:
    """The first move of the shortest way to a place not visited yet, None if no way is known.

    A place next to a wall counts as one step farther than it is: walls and rims go on, and a bump costs a step.

    Args:
        table: what the agent knows and the model imagines, named places included.
        places: what each named place is.
        state: where the agent is.
        actions: what it may choose from here.
        rng: breaks ties.
        ordered: whether walls and `OPENNESS` count, and not the distance alone.
    """

    def around(place: int) -> list[Place]:
        """What lies next to a place, if that counts."""
        ends = (end for end in table.ends_of(place) if end not in (UNKNOWN, place)) if ordered else ()
        return [places.get(end, Place.VISITED) for end in ends]

    # Breadth first: the moves that first reach each place, ring by ring.
    first: dict[int, int] = {state: UNKNOWN}
    ring, risky = [state], list[tuple[float, float, int]]()
    while ring or risky:
        found, risky, following = risky, [], []
        for here in ring:
            ends = table.ends_of(here)
            for action in actions if here == state else range(len(ends)):
                end = ends[action]
                step = action if here == state else first[here]
                kind = Place.FRONTIER if end == UNKNOWN else places.get(end, Place.VISITED)
                if end in first or kind in (Place.WALL, Place.OUTSIDE):
                    continue
                if kind is Place.FRONTIER:
                    kinds = around(end)
                    candidate = sum(OPENNESS[kind] for kind in kinds), rng.random(), step
                    (risky if Place.WALL in kinds else found).append(candidate)
                else:
                    following.append(end)
                if end != UNKNOWN:
                    first[end] = step
        if found:
            return int(min(found)[2])
        ring = following
    return None


def most_news(table: TransitionTable, state: int, actions: Collection[int], rng: np.random.Generator) -> int | None:
    """The first move of the way on which one sees most cells for the first time, for each move that it takes.

    Args:
        table: with `new`. What a move is expected to show counts beside what the moves on the way to it show.
        state: where the agent is.
        actions: what it may choose from here.
        rng: breaks ties.

    Returns:
        An action, None if nothing new is expected anywhere.
    """
    assert table.new is not None
    # Breadth first: the shortest way to each state, how many moves it takes, what it shows, and its first move.
    reached: dict[int, tuple[int, float, int]] = {state: (0, 0.0, UNKNOWN)}
    queue, best = deque([state]), (0.0, 0.0, UNKNOWN)
    while queue:
        here = queue.popleft()
        moves, shown, first = reached[here]
        for action in actions if here == state else range(table.end.shape[1]):
            row = table.row(here)
            end, news = (UNKNOWN, 0.0) if row is None else (int(table.end[row, action]), float(table.new[row, action]))
            step = action if here == state else first
            if news > NEWS:
                best = max(best, ((shown + news) / (moves + 1), rng.random(), step))
            if end != UNKNOWN and end not in reached:
                reached[end] = moves + 1, shown + news, step
                queue.append(end)
    return None if best[2] == UNKNOWN else int(best[2])
