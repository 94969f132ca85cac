"""Worlds of about a thousand to ten thousand locations, a tenth of them walls in runs of 3 to 5, for
`eswm_gym.agents.LargeMap`, which asks the model about windows of 19 states.

Settings: LATTICE-LOCATIONS; in permuted ones nothing is known of the actions, and the bank holds half of the moves.
Experiments:
  map     map the world from a minimal memory bank, then go from starts to goals
  online  see every location from nothing, then go from starts to goals
  wall    a wall of three locations appears half-way on each shortest path, after the world was mapped
  growth  map hexagonal worlds of 300 to 30,000 locations
Methods:
  eswm              windows of the shipped `lattices`, or another --model, until nothing is new; or an agent with them
  eswm-no-adapt     the agent, which then takes a move into the new wall for a false one, and no state for a wall
  memory-graph      facts and their reverses; it is told which moves undo each other
  path-integration  is told where each move leads: it keeps coordinates, and is exact here
  rules             finds out by linear algebra what actions do, where that is not known
Measures:
  cpu_seconds       of one core, to map the world
  megabytes         the most that the process had resident when the world was mapped, Python and PyTorch among it
  recall            share of the moves to other locations which the bank does not hold that are on the map
  precision         share of the moves on the map, those of the bank aside, that are true
  success_rate      the goal is reached; what turns out to be wrong becomes a fact, and there is a new plan
  path_ratio        steps over the shortest path, of those
  online_steps      until every location has been seen; online_path_ratio afterwards
  online_ms_per_step  CPU milliseconds; along `step`, of the thousand steps before
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from common.cli import BySize, Parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import find_model
from common.progress import progress
from common.rows import Row
from tqdm import tqdm
from worlds.rivals import UNDOES, Fact, Rival, remember, told
from worlds.rules import infer

from eswm_gym.agents import ESWMAgent, LargeMap
from eswm_gym.agents.exploration import nearest_frontier
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.rooms import CODES, Lattice, lattice_of, move_numbers
from eswm_gym.world_model import ESWM, NumberedActions
from large.online import Imagining, explore, explorers
from large.worlds import World, draw_world

Method = Callable[[list[Fact]], LargeMap]

SETTINGS: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "hexagon-91": ("hexagon", (5,)),
    "hexagon-1027": ("hexagon", (18,)),
    "hexagon-2977": ("hexagon", (31,)),
    "hexagon-9919": ("hexagon", (57,)),
    "square-1024": ("square", (32, 32)),
    "square-10000": ("square", (100, 100)),
    "permuted-square-1024": ("square", (32, 32)),
}
THOUSAND = ("hexagon-1027", "square-1024", "permuted-square-1024")
EXPERIMENTS = {"map": 2, "online": 4, "wall": 3, "growth": 1}  # and the weight of each in the time that all take
HELD = 0.5  # share of the moves in the bank where actions are unknown
RADII = (10, 18, 31, 57, 100)  # of the worlds that grow
WALL = 3  # locations of a new wall
WINDOW = 19  # states
STRETCH = 1000  # steps whose time is one figure
HEXAGON = move_numbers(lattice_of("hexagon", (1,)).actions).tolist()
PATIENCE = 20  # an agent gives up after so many times the shortest path


def map_of(facts: Iterable[Fact], model: ESWM) -> LargeMap:
    """A map of facts, of which nothing is imagined yet."""
    found = LargeMap(model)
    for fact in facts:
        found.add(*fact)
    return found


def imagine(bank: Iterable[Fact], model: ESWM) -> LargeMap:
    """What the model makes of a bank."""
    found = map_of(bank, model)
    found.imagine()
    return found


def follow(bank: Iterable[Fact], model: ESWM, lattice: Lattice, rival: Rival) -> LargeMap:
    """What follows from a bank by a rival, which knows moves by name."""
    names = move_numbers(lattice.actions).tolist()
    facts = rival({(s, names[a], t) for s, a, t in bank})
    return map_of(((s, names.index(a), t) for s, a, t in facts), model)


def deduce(bank: Sequence[Fact], model: ESWM) -> LargeMap:
    """What follows from a bank by the rules of a world that is the same everywhere."""
    return map_of(infer(set(bank), model.config.n_actions), model)


def quality(world: World, found: LargeMap) -> tuple[float, float | None]:
    """Recall and precision of the moves that a map adds to the bank; no precision where it adds none."""
    held = {(source, action) for source, action, _ in world.bank}
    wanted = [key for key in world.moves if key not in held]
    moves = {(move.source, move.action): move.end for move in found.transitions() if move.source != move.end}
    added = {key: end for key, end in moves.items() if key not in held}
    right = sum(world.moves.get(key) == end for key, end in added.items())  # type: ignore[call-overload]  # numbers
    return right / len(wanted), right / len(added) if added else None


class Known:
    """Where the moves of a map end."""

    def __init__(self, found: LargeMap) -> None:
        self.found = found

    def ends_of(self, state: int) -> list[int]:
        ends = [self.found.end_of(state, action) for action in range(self.found.model.config.n_actions)]
        return [UNKNOWN if end is None else end for end in ends]  # type: ignore[misc]  # states are numbers


def walk(
    world: World, found: LargeMap, start: int, goal: int, shortest: int, imagines: bool = False, walls: bool = False
) -> float | None:
    """Steps over the shortest path to a goal; None if it is not reached.

    Args:
        world: where to walk.
        found: the map, which learns where moves end otherwise than it says.
        start, goal, shortest: see `World.pairs`.
        imagines: whether what goes with a wrong move is imagined anew.
        walls: whether a state that a move is blocked on the way to is taken for a wall, and the nearest unknown move
            is tried where no way is known.
    """
    here, steps, known, rng = start, 0, Known(found), np.random.default_rng(0)
    while here != goal:
        plan = found.plan(here, goal)
        actions, expects = plan.actions, plan.states[1:]
        if not plan.found and walls:
            unknown = nearest_frontier(known, {}, here, range(found.model.config.n_actions), rng, ordered=False)
            actions, expects = () if unknown is None else (unknown,), (UNKNOWN,)
        if not actions:
            return None
        for action, expected in zip(actions, expects, strict=True):
            source, here, steps = here, world.moves.get((here, action), here), steps + 1
            if here != expected:
                if walls and here == source and expected in found and expected != goal:
                    found.forget(expected)
                found.add(source, action, here)
                if imagines:
                    found.imagine()
                break
        if steps > PATIENCE * shortest:
            return None
    return steps / shortest


def map_world(name: str, world: World, methods: Mapping[str, Method], n_pairs: int, seed: int) -> list[Row]:
    """Map a world by each method and go from starts to goals."""
    rows, pairs = list[Row](), world.pairs(n_pairs, seed)
    for method, make in methods.items():
        begun = time.process_time()
        found = make(world.bank)
        rows.append(Row(name, method, "cpu_seconds", value=time.process_time() - begun))
        recall, precision = quality(world, found)
        rows.append(Row(name, method, "recall", value=recall))
        if precision is not None:
            rows.append(Row(name, method, "precision", value=precision))
        ratios = [walk(world, found, *pair, imagines=method.startswith("eswm")) for pair in pairs]
        rows += outcomes(name, method, ratios, seed)
    return rows


def explore_world(name: str, world: World, agent: Callable[[], ESWMAgent], n_pairs: int, seed: int) -> list[Row]:
    """Explore a world by each method, then go from starts to goals."""
    rows, pairs = list[Row](), world.pairs(n_pairs, seed)
    for method, begin in explorers(world, agent, seed, pairs[0][0]).items():
        explorer = begin()
        steps, times = explore(world, explorer, pairs[0][0])
        rows.append(Row(name, method, "online_ms_per_step", value=float(np.mean(times)), n=len(times)))
        for first in range(0, len(times) - STRETCH + 1, STRETCH):
            value = float(np.mean(times[first : first + STRETCH]))
            rows.append(
                Row(name, method, "online_ms_per_step", along="step", at=first + STRETCH, value=value, n=STRETCH)
            )
        if steps is None:
            continue
        rows.append(Row(name, method, "online_steps", value=steps))
        if isinstance(explorer, Imagining):
            reached = [(explorer.go(world, start, goal, PATIENCE * far), far) for start, goal, far in pairs]
            ratios = [None if steps is None else steps / far for steps, far in reached]
        else:
            found = map_of(explorer.facts(), agent().model)
            ratios = [walk(world, found, *pair) for pair in pairs]
        rows += outcomes(name, method, ratios, seed, "online_")
    return rows


def wall_world(
    name: str, world: World, methods: Mapping[str, Method], agent: Callable[..., ESWMAgent], n_pairs: int, seed: int
) -> list[Row]:
    """Map a world, and go from each start to each goal after a wall of its own has appeared."""
    rng = np.random.default_rng(seed)
    drawn = [(start, goal, world.new_wall(start, goal, WALL, rng)) for start, goal, _ in world.pairs(n_pairs, seed)]
    walls = [(start, goal, *changed) for start, goal, changed in drawn if changed is not None]
    names = move_numbers(lattice_of(*world.lattice).actions).tolist()
    numbered, rows = NumberedActions(agent().model, names), list[Row]()
    for method in ("memory-graph", "path-integration"):
        found = methods[method](world.bank).to_dict()
        ratios = []
        for start, goal, changed, far in walls:
            mapped = map_of((), numbered)
            mapped.load_dict(found)
            ratios.append(walk(changed, mapped, start, goal, far, walls=True))
        rows += outcomes(name, method, ratios, seed, "wall_")
    for method, adapt in (("eswm", True), ("eswm-no-adapt", False)):
        imagining = Imagining(agent(adapt=adapt), names, world.bank)
        imagining.agent.plan(*world.pairs(1, seed)[0][:2])  # it imagines the whole bank
        known, ratios = imagining.agent.knowledge.to_dict(), []
        for start, goal, changed, far in walls:
            imagining = Imagining(agent(adapt=adapt), names)
            imagining.agent.knowledge.load_dict(known)
            steps = imagining.go(changed, start, goal, PATIENCE * far)
            ratios.append(None if steps is None else steps / far)
        rows += outcomes(name, method, ratios, seed, "wall_")
    return rows


def grow(radii: Iterable[int], model: ESWM, n_pairs: int, seed: int) -> list[Row]:
    """Map hexagonal worlds of these radii."""
    rows = []
    for radius in radii:
        world = draw_world("hexagon", (radius,), seed)
        at = lattice_of("hexagon", (radius,)).n_locations
        begun = time.process_time()
        found = imagine(world.bank, NumberedActions(model, HEXAGON))
        seconds = time.process_time() - begun
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
        ratios = [walk(world, found, *pair) for pair in world.pairs(n_pairs, seed)]
        for metric, value in (("cpu_seconds", seconds), ("megabytes", megabytes), ("recall", quality(world, found)[0])):
            rows.append(Row("hexagon", "eswm", metric, along="locations", at=at, value=value))
        reached = [ratio for ratio in ratios if ratio is not None]
        rows.append(Row("hexagon", "eswm", "path_ratio", *mean(reached, seed), along="locations", at=at))  # type: ignore[misc]
        tqdm.write(f"{at} locations: {seconds:.0f} CPU seconds, {megabytes:.0f} MB")
    return rows


def outcomes(name: str, method: str, ratios: Sequence[float | None], seed: int, prefix: str = "") -> list[Row]:
    """Success and, of what reached the goal, steps over the shortest path."""
    rows = [Row(name, method, f"{prefix}success_rate", *rate([ratio is not None for ratio in ratios]))]
    if reached := [ratio for ratio in ratios if ratio is not None]:
        rows.append(Row(name, method, f"{prefix}path_ratio", *mean(reached, seed)))
    return rows


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.3, 3, 160))
    options.add_settings(SETTINGS, quick=("hexagon-91",), usual=THOUSAND, weight=lambda name: int(name.split("-")[-1]))
    options.add_parts("--experiments", EXPERIMENTS)
    options.add_count("--pairs", (5, 50, 200), "starts and goals in each world")
    options.add_argument("--model", default="lattices", metavar="NAME|FILE", help="pretrained or saved (%(default)s)")
    args = options.parse_args(argv)
    only_growth = args.experiments == ["growth"]
    if only_growth and args.chosen:
        options.error("growth has worlds of its own; name no setting beside it")
    radii = (2, 3) if args.quick else RADII if args.full else RADII[:2]
    model, seed = find_model(args.model, args.device), room_seeds(args.seed, 1)[0]
    rows = []
    for name in progress(() if only_growth else args.settings, "large"):
        permuted = name.startswith("permuted")
        world = draw_world(*SETTINGS[name], seed, HELD if permuted else 0.0)
        lattice = lattice_of(*world.lattice)
        names = move_numbers(lattice.actions).tolist()
        numbered = NumberedActions(model, CODES[: lattice.n_actions] if permuted else names)
        methods = {
            "memory-graph": partial(follow, model=numbered, lattice=lattice, rival=partial(remember, undoes=UNDOES)),
            "path-integration": partial(follow, model=numbered, lattice=lattice, rival=told(lattice)),
            "eswm": partial(imagine, model=numbered),
        }
        if permuted:
            del methods["path-integration"]
            methods["rules"] = partial(deduce, model=numbered)
        agent = partial(ESWMAgent, model, seed=seed, window=WINDOW)
        if "map" in args.experiments:
            rows += map_world(name, world, methods, args.pairs, seed)
        if "online" in args.experiments and not permuted:
            rows += explore_world(name, world, agent, args.pairs, seed)
        if "wall" in args.experiments and not permuted:
            rows += wall_world(name, world, methods, agent, args.pairs, seed)
    if "growth" in args.experiments and not args.chosen:
        rows += grow(radii, model, args.pairs, seed)
    return finish(args, "large", rows, shown=[row for row in rows if row.along != "step"])
