"""Where to go when there is something to find out (paper: section "Exploration in Novel Environments").

Two rules. "uncertainty" is the paper's: score the moves at hand, look ahead where all of them are certain. "frontier"
is ours: go to the nearest place not visited yet and, of several, to the one that leaves least behind it; with
"frontier-unordered", to any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from eswm_gym.agents.places import Place
from eswm_gym.agents.planning import UNKNOWN, TransitionTable, search

RULES = ("frontier", "frontier-unordered", "uncertainty")
# How much each neighbour of an unvisited place speaks for leaving it for later. Places hemmed in by visited ones and
# by the rim become dead ends unless they are taken in passing (as in Warnsdorff's rule for the knight's tour); places
# beside a wall are likely to be wall themselves. Chosen on rooms of their own by an explorer that knew the lattice.
OPENNESS = {Place.OUTSIDE: -2.0, Place.VISITED: -1.0, Place.FRONTIER: 0.5, Place.WALL: 1.0}


def curiosity(table: TransitionTable, confidence: float, beta: float, gamma: float) -> np.ndarray:
    """(K, 6) float, the paper's score of each uncertain move, -inf for those the model is sure of.

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
        score: (K, 6) float, -inf where there is nothing to find out.
        state: where the agent is.
        rng: breaks ties.
    """
    here = score[table.row(state)]
    if np.isfinite(here).any():
        return int(rng.choice(np.flatnonzero(here == here.max())))
    goals = table.states[np.isfinite(score).any(1)]
    found = [plan for plan in (search(table, state, int(goal)) for goal in goals if goal != state) if plan.found]
    return min(found, key=lambda plan: (len(plan), -plan.probability)).actions[0] if found else None


def nearest_frontier(
    table: TransitionTable,
    places: Mapping[int, Place],
    state: int,
    actions: Collection[int],
    rng: np.random.Generator,
    ordered: bool = True,
) -> int | None:
    """The first move of the shortest way to a place not visited yet, None if no way is known.

    A place beside a wall counts as one step farther than it is: walls and rims go on, and a bump costs a step.

    Args:
        table: what the model imagines, named places included.
        places: what each named place is.
        state: where the agent is.
        actions: what it may choose from here.
        rng: breaks ties.
        ordered: whether walls and `OPENNESS` count, and not the distance alone.
    """
    n_actions = table.end.shape[1]
    ends = {int(s): row for s, row in zip(table.states, table.end.tolist(), strict=True)}

    def around(place: int) -> list[Place]:
        """What lies beside a place."""
        beside = (end for end in ends.get(place, ()) if end not in (UNKNOWN, place)) if ordered else ()
        return [places.get(end, Place.VISITED) for end in beside]

    # Breadth first: the moves that first reach each place, ring by ring.
    first: dict[int, int] = {state: UNKNOWN}
    ring, risky = [state], list[tuple[float, float, int]]()
    while ring or risky:
        found, risky, following = risky, [], []
        for here in ring:
            for action in actions if here == state else range(n_actions):
                end = ends.get(here, [UNKNOWN] * n_actions)[action]
                step = action if here == state else first[here]
                kind = Place.FRONTIER if end == UNKNOWN else places.get(end, Place.VISITED)
                if end in first or kind in (Place.WALL, Place.OUTSIDE):
                    continue
                if kind is Place.FRONTIER:
                    beside = around(end)
                    candidate = sum(OPENNESS[what] for what in beside), rng.random(), step
                    (risky if Place.WALL in beside else found).append(candidate)
                else:
                    following.append(end)
                if end != UNKNOWN:
                    first[end] = step
        if found:
            return int(min(found)[2])
        ring = following
    return None
