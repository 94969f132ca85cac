"""Where each method breaks: navigation in rooms of 37 locations where one thing goes wrong, from not at all to badly.

Every method walks from the same starts to the same goals in the same rooms, with twice the usual step limit (60).
`level` says how bad it is:
  slip         share of moves that are another allowed move, drawn evenly
  wrong-state  share of observations that show the state of another location
  walls-drift  share of steps after which one wall location has moved elsewhere
  aliasing     how many locations show one state, in place of one each; neither start nor goal
  stale        share of the memory bank that is from before the wall moved to where it is
  bank-size    length of the memory bank, in minimal spanning banks: some of one, or further transitions
  shape        wall locations, scattered so that they do not split the room; training has one wall of 3 to 5
Methods:
  random            a random walk: the floor
  memory-graph      Dijkstra over remembered transitions and their reverses
  path-integration  knows the lattice, keeps coordinates and marks where it was blocked
  epn               walked the room for 200 steps before, when nothing went wrong, and remembers them
  cscg              a clone-structured graph (George et al., 2021), only for `aliasing`: it walked the room for 3,000
                    steps before, saw states as they are shown, and fitted a graph to that walk
  eswm              the agent
  rules             the agent with the rules of the lattice in place of the model
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from common.cli import BySize, agent_parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import agents_in_part, find_hex_model
from common.plots import by_setting, draw_curves
from common.progress import progress
from common.rows import Row, Test
from common.tests import compare

from eswm_gym.agents import Agent, ESWMAgent
from eswm_gym.agents.baselines import CSCGAgent, EPNAgent, MemoryGraphAgent, PathIntegrationAgent, RandomAgent
from eswm_gym.agents.baselines.cscg import fit
from eswm_gym.agents.episodes import Episode, Setup, optimality, run, run_in_step
from eswm_gym.rooms import Room, RoomConfig
from eswm_gym.wrappers import MovingWalls, SharedState, Slips, WrongStates

ENV_ID = "ESWM-RandomWall-v0"
STEPS = 60
WALKED = 3000  # moves
ROOMS = RoomConfig.random_wall(3)


class Begun(NamedTuple):
    """How an episode begins, and the memory bank that agents get; None for that of the environment."""

    setup: Setup
    bank: np.ndarray | None = None


def disturbed(wrapper: Callable[..., gym.Env], level: float) -> gym.Env:
    return wrapper(gym.make(ENV_ID, max_episode_steps=STEPS), level)


def wrapped(wrapper: Callable[..., gym.Env], level: float, seed: int) -> Begun:
    return Begun(Setup(partial(disturbed, wrapper, level), seed))


def drawn(seed: int) -> tuple[Room, int, int]:
    """The room, start and goal that a seed of the environment stands for."""
    env = gym.make(ENV_ID).unwrapped
    env.reset(seed=seed)
    return env.room.copy(), env.place, env.goal


def stale(level: float, seed: int) -> Begun:
    """A share of the rows is of a bank of the same room with its wall elsewhere."""
    rng = np.random.default_rng([seed, 4])
    room, start, goal = drawn(seed)
    before = Room(room.lattice, room.states, Room.generate(rng, ROOMS).walls)
    old, now = before.memory_bank(rng), room.memory_bank(rng)
    n = round(level * len(now))
    bank = np.concatenate([old[:n], now[: len(now) - n]])
    return Begun(Setup(ENV_ID, seed, STEPS, {"room": room, "start": start, "goal": goal}), bank)


def sized(level: float, seed: int) -> Begun:
    """Some rows of a minimal bank, or one with more."""
    rng = np.random.default_rng([seed, 5])
    room, start, goal = drawn(seed)
    bank = room.memory_bank(rng)
    n = round(level * len(bank))
    bank = bank[:n] if level <= 1 else room.memory_bank(rng, n - len(bank))
    return Begun(Setup(ENV_ID, seed, STEPS, {"room": room, "start": start, "goal": goal}), bank)


def shaped(level: float, seed: int) -> Begun:
    """Walls anywhere that leave what is free in one piece."""
    rng = np.random.default_rng([seed, 6])
    while True:
        states = rng.permutation(ROOMS.n_locations)
        room = Room(ROOMS.lattice, states, rng.choice(ROOMS.n_locations, int(level), replace=False))
        free = np.flatnonzero(~room.walls)
        if (room.distances_from(free[0])[free] >= 0).all():
            break
    start, goal = rng.choice(free, 2, replace=False).tolist()
    return Begun(Setup(ENV_ID, seed, STEPS, {"room": room, "start": start, "goal": goal}))


# How an episode of a level and a seed begins, and the levels.
FACTORS: Mapping[str, tuple[Callable[[float, int], Begun], tuple[float, ...]]] = {
    "slip": (partial(wrapped, Slips), (0, 0.05, 0.1, 0.2, 0.3)),
    "wrong-state": (partial(wrapped, WrongStates), (0, 0.02, 0.05, 0.1, 0.2)),
    "walls-drift": (partial(wrapped, MovingWalls), (0, 0.1, 0.25, 0.5, 1)),
    "aliasing": (lambda level, seed: wrapped(SharedState, int(level), seed), (1, 2, 3, 4, 6, 8)),
    "stale": (stale, (0, 0.17, 0.33, 0.67, 1)),
    "bank-size": (sized, (0.1, 0.25, 0.5, 1, 2, 3)),
    "shape": (shaped, (0, 4, 8, 12, 16)),
}


def rows_of(factor: str, methods: Mapping[str, Agent], seeds: Sequence[int], seed: int) -> tuple[list[Row], list[Test]]:
    """Success and path optimality of all methods at all levels, and tests at the worst level."""
    begin, levels = FACTORS[factor]
    rows, tests, rooms, walked = list[Row](), list[Test](), list[Room](), list[np.ndarray]()
    for level in progress(levels, factor):
        begun = [begin(level, s) for s in seeds]
        setups, banks = [b.setup for b in begun], [b.bank for b in begun if b.bank is not None]
        found = {}
        for method, agent in methods.items():
            remembered = banks or None
            if isinstance(agent, EPNAgent):
                old, rooms = rooms, list(map(room_of, setups))
                if rooms != old:  # most factors leave the rooms as they are
                    walked = agent.fill_memories(rooms, seed=10**9 + seed)
                remembered = walked
            found[method] = run(setups, agent, remembered)
        if factor == "aliasing":
            found["cscg"] = run_clones(setups, seed)
        at = {"along": "level", "at": level}
        for method, episodes in found.items():
            rows.append(Row(factor, method, "success_rate", *rate([e.success for e in episodes]), **at))
            if arrived := optimality(episodes):
                rows.append(Row(factor, method, "path_optimality", *mean(arrived, seed), **at))
        if level == levels[-1]:
            success = {method: [float(e.success) for e in episodes] for method, episodes in found.items()}
            tests = compare(factor, f"success_rate, level {level:g}", success, "eswm")
    return rows, tests


def room_of(setup: Setup) -> Room:
    return Episode(setup, RandomAgent()).env.unwrapped.room


def run_clones(setups: Sequence[Setup], seed: int, together: int = 20) -> list[Episode]:
    """Episodes of agents that walked the rooms before, some rooms at a time: their graphs are large."""
    episodes: list[Episode] = []
    for first in range(0, len(setups), together):
        some = setups[first : first + together]
        walks = np.array([walk(setup, np.random.default_rng([setup.seed, 7])) for setup in some])
        graphs = fit(walks, ROOMS.n_locations, seed=seed)
        agents = [CSCGAgent(graph, setup.seed) for graph, setup in zip(graphs, some, strict=True)]
        episodes += run_in_step([Episode(setup, agent) for setup, agent in zip(some, agents, strict=True)])
    return episodes


def walk(setup: Setup, rng: np.random.Generator) -> np.ndarray:
    """(WALKED, 3) int, a random walk through the room, with states as they are shown."""
    env = Episode(setup, RandomAgent()).env
    room, moves = env.unwrapped.room, []
    here = int(rng.choice(np.flatnonzero(~room.walls)))
    for _ in range(WALKED):
        action = int(rng.choice(np.flatnonzero(room.on_lattice[here])))
        moves.append((here, action, here := int(room.targets[here, action])))
    source, action, end = np.array(moves).T
    shown = env.get_wrapper_attr("shown")
    return np.stack([shown(room.states[source]), action, shown(room.states[end])], 1)


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draw FOLDER/robust-METRIC.png and .svg, a panel for each factor."""
    for metric in ("success_rate", "path_optimality"):
        some = [row for row in rows if row.metric == metric]
        draw_curves(some, folder, f"robust-{metric}", panel=by_setting, across=4)


def main(argv: list[str] | None = None) -> list[Row]:
    options = agent_parser(__doc__, BySize(1, 4, 27), (4, 15, 100), "at each level of each factor")
    options.add_settings(FACTORS)
    args = options.parse_args(argv)
    seeds = room_seeds(args.seed, args.episodes)
    eswm = ESWMAgent(find_hex_model(args.model, args.device))
    methods: dict[str, Agent] = {
        "random": RandomAgent(),
        "memory-graph": MemoryGraphAgent(),
        "path-integration": PathIntegrationAgent(),
        "epn": EPNAgent.from_pretrained(device=args.device),
        "eswm": eswm,
        "rules": agents_in_part(eswm.model)["rules"],
    }
    rows: list[Row] = []
    tests: list[Test] = []
    for factor in args.settings:
        more_rows, more_tests = rows_of(factor, methods, seeds, args.seed)
        rows, tests = rows + more_rows, tests + more_tests
    return finish(args, "robust", rows, tests, draw=partial(draw, rows))


if __name__ == "__main__":
    main()
