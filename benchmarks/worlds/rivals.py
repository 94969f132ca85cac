"""Rivals that know which moves undo each other, or where each leads: they say what follows from the facts of a bank.

A fact is a transition (s_s, a, s_e), and a query is answered by a fact that completes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from eswm_gym.rooms import Lattice, move_numbers
from eswm_gym.rooms.lattice.shapes import DIAGONAL_MOVES, HEADINGS
from eswm_gym.rooms.transitions import MASKED, Problems
from eswm_gym.world_model import Answer

Fact = tuple[int, int, int]
Facts = set[Fact]
Rival = Callable[[Facts], Facts]  # all that follows from a bank, the bank among it
Place = tuple[int, ...]
Step = Callable[[Place, int, int], Place]  # where an action leads from a place (1), or from where it leads there (-1)

STEPS = dict(zip(move_numbers(DIAGONAL_MOVES).tolist(), DIAGONAL_MOVES.values(), strict=True))
LEFT, RIGHT, FORWARD = move_numbers(("turn left", "turn right", "forward")).tolist()
TURNS = {LEFT: -1, RIGHT: 1}
UNDOES = {a: {b} for a, (x, y) in STEPS.items() for b in STEPS if STEPS[b] == (-x, -y)} | {LEFT: {RIGHT}, RIGHT: {LEFT}}


def answers(rival: Rival, problems: Problems) -> Answer:
    """What a rival answers: "I don't know" where no fact completes a query."""
    found = np.full(problems.masked.shape, MASKED)
    for bank, queries, answer in zip(problems.memories, problems.query.tolist(), found, strict=True):
        facts = rival({(s, a, t) for s, a, t in bank.tolist() if s >= 0})
        known = {}
        for s, a, t in facts:
            known |= {(MASKED, a, t): s, (s, MASKED, t): a, (s, a, MASKED): t}
        answer[:] = [known.get(tuple(query), MASKED) for query in queries]
    return Answer(found[..., None], found, found < 0)


def remember(facts: Facts, undoes: Mapping[int, Iterable[int]] | None = None) -> Facts:
    """The facts and their reverses.

    Args:
        facts: of a bank.
        undoes: the actions that undo each action. None: those that did so once, since what leads back from one place
            does so from every place.
    """
    if undoes is None:
        undoes = defaultdict(set)
        ahead = {(s, t): a for s, a, t in facts if s != t}
        for s, a, t in facts:
            if (t, s) in ahead:
                undoes[a].add(ahead[t, s])
                undoes[ahead[t, s]].add(a)
    return facts | {(t, b, s) for s, a, t in facts if s != t for b in undoes.get(a, ())}


def lay_out(facts: Facts, step: Step, start: Place) -> dict[int, tuple[int, Place]]:
    """The place of each state, and the first state of the cluster that moves join it to, which lies at `start`."""
    around: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for s, a, t in sorted(facts):
        around[s].append((t, a, 1))
        around[t].append((s, a, -1))
    places: dict[int, tuple[int, Place]] = {}
    for first in around:
        if first not in places:
            places[first] = first, start
            queue = [first]
            for here in queue:
                for there, action, sign in around[here]:
                    if there not in places:
                        places[there] = first, step(places[here][1], action, sign)
                        queue.append(there)
    return places


def read_off(
    facts: Facts,
    places: Mapping[int, tuple[int, Place]],
    actions: Iterable[int],
    step: Step,
    cell: Callable[[Place], Place] = lambda place: place,
) -> Facts:
    """The facts and all other moves on a map: to the place of a state, or into a wall that a bump showed.

    Args:
        facts: of a bank.
        places: the map, see `lay_out`.
        actions: those that there are.
        step: where each leads.
        cell: the part of a place that is a wall as a whole.
    """
    at = {place: state for state, place in places.items()}
    walls = {(places[s][0], cell(step(places[s][1], a, 1))) for s, a, t in facts if s == t}
    found = set(facts)
    for state, (cluster, place) in places.items():
        for action in actions:
            ahead = step(place, action, 1)
            if (cluster, ahead) in at:
                found.add((state, action, at[cluster, ahead]))
            elif (cluster, cell(ahead)) in walls:
                found.add((state, action, state))
    return found


def integrate_paths(facts: Facts, actions: Iterable[int], size: tuple[int, int] | None = None) -> Facts:
    """All moves on a map by x, y and heading.

    Args:
        facts: of a bank.
        actions: numbers of the moves that there are.
        size: width and height after which the world begins again. None: it never does.
    """
    step = partial(step_by_name, size=size)
    return read_off(facts, lay_out(facts, step, (0, 0, 0)), actions, step, cell=lambda place: place[:2])


def step_by_name(place: Place, action: int, sign: int, size: tuple[int, int] | None = None) -> Place:
    """The place (x, y, heading) where a named move leads (1), or from where it leads here (-1)."""
    x, y, heading = place
    if action in TURNS:
        return x, y, (heading + sign * TURNS[action]) % len(HEADINGS)
    dx, dy = STEPS.get(action, HEADINGS[heading])
    x, y = x + sign * dx, y + sign * dy
    return (x, y, heading) if size is None else (x % size[0], y % size[1], heading)


def told(lattice: Lattice, size: tuple[int, int] | None = None) -> Rival:
    """The path integrator that is told the moves of a lattice and, on a torus, its size."""
    return partial(integrate_paths, actions=move_numbers(lattice.actions).tolist(), size=size)
