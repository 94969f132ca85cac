"""Worlds of about a thousand to ten thousand locations, a tenth of them walls in runs of 3 to 5, mapped from a minimal
memory bank: `eswm_gym.agents.LargeMap`, which asks the model about windows of 19 states.

Settings: LATTICE-LOCATIONS. Methods:
  eswm              windows of the shipped `lattices`, or another --model, until nothing is new
  eswm-closed       then `LargeMap.close` as well, for moves that no window spans
  memory-graph      the bank and its reverses; it is told which moves undo each other
  path-integration  is told where each move leads: it keeps coordinates, and is exact here
Measures:
  cpu_seconds       of one core, to map the world
  recall            share of the moves to other locations which the bank does not hold that are on the map
  precision         share of the moves on the map, those of the bank aside, that are true
  success_rate      the goal is reached; what turns out to be wrong becomes a fact, and there is a new plan
  path_ratio        steps over the shortest path, of those
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from common.cli import Parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import find_model
from common.progress import progress
from common.rows import Row

from eswm_gym.agents import LargeMap, Plan
from eswm_gym.rooms import Lattice, lattice_of, move_numbers
from eswm_gym.world_model import ESWM, NumberedActions
from large.worlds import Fact, World, draw_world

SETTINGS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "hexagon-1027": ("hexagon", (18,)),
    "hexagon-2977": ("hexagon", (31,)),
    "hexagon-9919": ("hexagon", (57,)),
    "square-1024": ("square", (32, 32)),
    "square-10000": ("square", (100, 100)),
}
PATIENCE = 20  # an agent gives up after so many times the shortest path


class Map(Protocol):
    """What a method has to be able to do."""

    def correct(self, source: int, action: int, end: int) -> None:
        """Learn that a move ends elsewhere than the map says."""

    def plan(self, start: int, goal: int) -> Plan: ...

    def moves(self) -> dict[tuple[int, int], int]:
        """Where each move ends that the map knows."""


class Windows(LargeMap):
    """The model's map. What goes with a move that turns out to be wrong is imagined anew."""

    def correct(self, source: int, action: int, end: int) -> None:
        self.add(source, action, end)
        self.imagine()

    def moves(self) -> dict[tuple[int, int], int]:
        return {(move.source, move.action): move.end for move in self.transitions()}  # type: ignore[misc]


class Graph:
    """Facts, and what follows from them by hand; facts that come later count more."""

    def __init__(self, ends: dict[tuple[int, int], int], n_actions: int) -> None:
        self.ends, self.n_actions = ends, n_actions

    def correct(self, source: int, action: int, end: int) -> None:
        self.ends[source, action] = end

    def moves(self) -> dict[tuple[int, int], int]:
        return self.ends

    def plan(self, start: int, goal: int) -> Plan:
        came, queue = {start: (start, -1)}, deque([start])
        while queue and goal not in came:
            here = queue.popleft()
            for action in range(self.n_actions):
                end = self.ends.get((here, action), here)
                if end not in came:
                    came[end] = here, action
                    queue.append(end)
        if goal not in came:
            return Plan()
        states, actions = [goal], list[int]()
        while states[-1] != start:
            before, action = came[states[-1]]
            states.append(before)
            actions.append(action)
        return Plan(tuple(states[::-1]), tuple(actions[::-1]), 1.0)


def map_with_model(bank: list[Fact], lattice: Lattice, model: ESWM, closes: bool = False) -> Windows:
    world = Windows(NumberedActions(model, move_numbers(lattice.actions).tolist()))
    for fact in bank:
        world.add(*fact)
    world.imagine()
    if closes:
        world.close()
        world.imagine()
    return world


def remember(bank: list[Fact], lattice: Lattice) -> Graph:
    back = {(end, int(lattice.reverse[action])): source for source, action, end in bank if source != end}
    return Graph(back | {(source, action): end for source, action, end in bank}, lattice.n_actions)


def integrate_paths(bank: list[Fact], lattice: Lattice) -> Graph:
    """All moves between states whose coordinates say that they are neighbours."""
    steps = [tuple(step) for step in lattice.displacements.tolist()]  # type: ignore[union-attr]
    known = remember(bank, lattice).ends
    place, queue = {bank[0][0]: (0, 0)}, deque([bank[0][0]])
    while queue:
        here = queue.popleft()
        x, y = place[here]
        for action, (dx, dy) in enumerate(steps):
            there = known.get((here, action), here)
            if there not in place:
                place[there] = x + dx, y + dy
                queue.append(there)
    at = {xy: state for state, xy in place.items()}
    ends = {
        (state, action): at[x + dx, y + dy]
        for state, (x, y) in place.items()
        for action, (dx, dy) in enumerate(steps)
        if (x + dx, y + dy) in at
    }
    return Graph(ends | known, lattice.n_actions)


def quality(world: World, found: dict[tuple[int, int], int]) -> tuple[float, float | None]:
    """Recall and precision of what a map adds to the bank; no precision where it adds nothing."""
    held = {(source, action) for source, action, _ in world.bank}
    wanted = [key for key in world.moves if key not in held]
    added = {key: end for key, end in found.items() if key not in held}
    right = sum(world.moves.get(key) == end for key, end in added.items())
    return right / len(wanted), right / len(added) if added else None


def walk(world: World, found: Map, start: int, goal: int, shortest: int) -> float | None:
    """Steps over the shortest path to a goal; None if it is not reached."""
    here, steps = start, 0
    while here != goal:
        plan = found.plan(here, goal)
        if not plan.found:
            return None
        for action, expected in zip(plan.actions, plan.states[1:], strict=True):
            source, here, steps = here, world.moves.get((here, action), here), steps + 1
            if here != expected:
                found.correct(source, action, here)
                break
        if steps > PATIENCE * shortest:
            return None
    return steps / shortest


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__)
    options.add_argument("settings", nargs="*", metavar="SETTING", help="only these (default: all)")
    options.add_argument("--pairs", type=int, default=200, help="starts and goals in each world (default 200)")
    options.add_argument("--model", default="lattices", metavar="NAME|FILE", help="pretrained or saved (%(default)s)")
    args = options.parse_args(argv)
    if unknown := set(args.settings) - set(SETTINGS):
        options.error(f"no setting {', '.join(sorted(unknown))}; there are {', '.join(SETTINGS)}")
    settings = {name: SETTINGS[name] for name in args.settings or SETTINGS}
    if args.quick:
        settings, args.pairs = {"hexagon-91": ("hexagon", (5,))}, 5
    model, seed = find_model(args.model, args.device), room_seeds(args.seed, 1)[0]
    methods: dict[str, Callable[[list[Fact], Lattice], Map]] = {
        "memory-graph": remember,
        "path-integration": integrate_paths,
        "eswm": partial(map_with_model, model=model),
        "eswm-closed": partial(map_with_model, model=model, closes=True),
    }
    rows = []
    for name in progress(list(settings), "large"):
        world = draw_world(*settings[name], seed)
        pairs = world.pairs(args.pairs, seed)
        for method, make in methods.items():
            begun = time.process_time()
            found = make(world.bank, lattice_of(*world.lattice))
            rows.append(Row(name, method, "cpu_seconds", value=time.process_time() - begun))
            recall, precision = quality(world, found.moves())
            rows.append(Row(name, method, "recall", value=recall))
            if precision is not None:
                rows.append(Row(name, method, "precision", value=precision))
            ratios = [walk(world, found, *pair) for pair in pairs]
            rows.append(Row(name, method, "success_rate", *rate([ratio is not None for ratio in ratios])))
            if reached := [ratio for ratio in ratios if ratio is not None]:
                rows.append(Row(name, method, "path_ratio", *mean(reached, args.seed)))
    return finish(args, "large", rows)
