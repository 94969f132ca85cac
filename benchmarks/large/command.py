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
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from common.cli import Parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import find_model
from common.progress import progress
from common.rows import Row
from worlds.rivals import UNDOES, Fact, Rival, remember, told

from eswm_gym.agents import LargeMap
from eswm_gym.rooms import Lattice, lattice_of, move_numbers
from eswm_gym.world_model import ESWM, NumberedActions
from large.worlds import World, draw_world

SETTINGS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "hexagon-1027": ("hexagon", (18,)),
    "hexagon-2977": ("hexagon", (31,)),
    "hexagon-9919": ("hexagon", (57,)),
    "square-1024": ("square", (32, 32)),
    "square-10000": ("square", (100, 100)),
}
PATIENCE = 20  # an agent gives up after so many times the shortest path


def map_of(facts: Iterable[Fact], model: ESWM) -> LargeMap:
    """A map of facts, of which nothing is imagined yet."""
    found = LargeMap(model)
    for fact in facts:
        found.add(*fact)
    return found


def imagine(bank: Iterable[Fact], model: ESWM, closes: bool) -> LargeMap:
    """What the model makes of a bank."""
    found = map_of(bank, model)
    found.imagine()
    if closes:
        found.close()
        found.imagine()
    return found


def follow(bank: Iterable[Fact], model: ESWM, lattice: Lattice, rival: Rival) -> LargeMap:
    """What follows from a bank by a rival, which knows moves by name."""
    names = move_numbers(lattice.actions).tolist()
    facts = rival({(s, names[a], t) for s, a, t in bank})
    return map_of(((s, names.index(a), t) for s, a, t in facts), model)


def quality(world: World, found: LargeMap) -> tuple[float, float | None]:
    """Recall and precision of the moves that a map adds to the bank; no precision where it adds none."""
    held = {(source, action) for source, action, _ in world.bank}
    wanted = [key for key in world.moves if key not in held]
    moves = {(move.source, move.action): move.end for move in found.transitions() if move.source != move.end}
    added = {key: end for key, end in moves.items() if key not in held}
    right = sum(world.moves.get(key) == end for key, end in added.items())  # type: ignore[call-overload]  # numbers
    return right / len(wanted), right / len(added) if added else None


def walk(world: World, found: LargeMap, start: int, goal: int, shortest: int, imagines: bool = False) -> float | None:
    """Steps over the shortest path to a goal; None if it is not reached.

    Args:
        world: where to walk.
        found: the map, which learns where moves end otherwise than it says.
        start, goal, shortest: see `World.pairs`.
        imagines: whether what goes with a wrong move is imagined anew.
    """
    here, steps = start, 0
    while here != goal:
        plan = found.plan(here, goal)
        if not plan.found:
            return None
        for action, expected in zip(plan.actions, plan.states[1:], strict=True):
            source, here, steps = here, world.moves.get((here, action), here), steps + 1
            if here != expected:
                found.add(source, action, here)
                if imagines:
                    found.imagine()
                break
        if steps > PATIENCE * shortest:
            return None
    return steps / shortest


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__)
    options.add_settings(SETTINGS)
    options.add_argument("--pairs", type=int, default=200, help="starts and goals in each world (default 200)")
    options.add_argument("--model", default="lattices", metavar="NAME|FILE", help="pretrained or saved (%(default)s)")
    args = options.parse_args(argv)
    settings = {name: SETTINGS[name] for name in args.settings or SETTINGS}
    if args.quick:
        settings, args.pairs = {"hexagon-91": ("hexagon", (5,))}, 5
    model, seed = find_model(args.model, args.device), room_seeds(args.seed, 1)[0]
    rows = []
    for name in progress(list(settings), "large"):
        world = draw_world(*settings[name], seed)
        pairs = world.pairs(args.pairs, seed)
        lattice = lattice_of(*world.lattice)
        numbered = NumberedActions(model, move_numbers(lattice.actions).tolist())
        methods: dict[str, Callable[[list[Fact], ESWM], LargeMap]] = {
            "memory-graph": partial(follow, lattice=lattice, rival=partial(remember, undoes=UNDOES)),
            "path-integration": partial(follow, lattice=lattice, rival=told(lattice)),
            "eswm": partial(imagine, closes=False),
            "eswm-closed": partial(imagine, closes=True),
        }
        for method, make in methods.items():
            begun = time.process_time()
            found = make(world.bank, numbered)
            rows.append(Row(name, method, "cpu_seconds", value=time.process_time() - begun))
            recall, precision = quality(world, found)
            rows.append(Row(name, method, "recall", value=recall))
            if precision is not None:
                rows.append(Row(name, method, "precision", value=precision))
            ratios = [walk(world, found, *pair, imagines=method.startswith("eswm")) for pair in pairs]
            rows.append(Row(name, method, "success_rate", *rate([ratio is not None for ratio in ratios])))
            if reached := [ratio for ratio in ratios if ratio is not None]:
                rows.append(Row(name, method, "path_ratio", *mean(reached, args.seed)))
    return finish(args, "large", rows)
