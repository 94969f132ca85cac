"""Environments that other people wrote, as they come: FrozenLake (not slippery), CliffWalking, MiniGrid as cells with
four moves, and as poses; and, with the extra `foreign`, POPGym's labyrinth. The agent was trained on none of them, and
its options are the same in all.

From a spanning memory bank, one episode each: a tree over the states, one move into each state where an episode ends,
and 30 % of the bumps. In `minigrid-four-rooms-poses-32` the bank spans 32 poses, with start and goal among them.
  success_rate       the goal is reached within 100 steps
  path_optimality    of those: length of the shortest path over steps

From nothing, in episodes of one world, memories kept; what was not reached within the budget counts as the budget:
  steps_to_goal      steps until the goal is first reached
  steps_to_best_path until an episode is as short as it can be

MiniGrid's own ids as they are, in settings that end in `-views`: its views of 7 x 7 cells, its goals and time limits.
One episode each, from nothing, in rooms never seen, and other methods:
  success_rate, steps (its time limit where it fails), coverage (share of the cells inside that were seen)
  eswm              `MiniGridAgent` with the shipped `minigrid`
  map-only          the same agent with a map of its walk and MiniGrid's rule of light in place of the network
  odometry-frontier knows its pose, and goes to the nearest cell that it has not seen
  recurrent-ppo     sb3-contrib's, trained for as many steps as eswm took in all its episodes; -10x: ten times as many
  random, oracle

Methods in all other settings:
  eswm            the agent with the shipped `lattices`, or another --model; it is told what its moves are called
  eswm-windows    the same, which reads windows of 19 states in place of the whole bank
  eswm-unknown    the same, but told nothing of its actions: from banks, in worlds of at most 24 states
  memory-graph    knows its moves and, by their names, their reverses; explores the nearest move not made yet
  rules           is told the lattice: keeps coordinates, and counts what it has not seen as free
  q-learning      tabular, optimistic
  ppo             stable-baselines3's, one-hot states
  random, shortest-path
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import networkx as nx
from common.cli import BySize, Parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import find_model
from common.progress import progress
from common.rows import Row

from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import CODES
from foreign.measures import from_bank, from_nothing, ppo_from_nothing
from foreign.rivals import MemoryGraph, QLearning, Random, Rules
from foreign.stock import STOCK, rows_of
from foreign.worlds import WORLDS, Table, table_of

WINDOW = 32  # poses of the window in FourRooms
WINDOWED = "minigrid-four-rooms-poses"
STATES = 19  # in the windows of `eswm-windows`
FEW_STATES = 24  # a world may have so many where nothing is known of its actions: as many as the model was trained for
BUDGET, LEARNERS_BUDGET = 1000, 5000  # steps from nothing; of those that learn by reward


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__, BySize(0.3, 4, 25))
    options.add_settings({**WORLDS, **STOCK}, quick=("frozen-lake-4x4",))
    options.add_count("--episodes", (3, 8, 60), "from spanning banks")
    options.add_count("--runs", (1, 1, 3), "from nothing, and layouts")
    options.add_argument("--model", default="lattices", metavar="NAME|FILE", help="pretrained or saved (%(default)s)")
    args = options.parse_args(argv)
    model = find_model(args.model, args.device)

    def eswm(seed: int, window: int | None = None) -> ESWMAgent:
        return ESWMAgent(model, seed=seed, window=window)

    if not (args.chosen or find_spec("popgym")):
        args.settings = [name for name in args.settings if name != "popgym-labyrinth"]
    agents = {
        "eswm": eswm,
        "eswm-windows": partial(eswm, window=STATES),
        "memory-graph": MemoryGraph,
        "rules": Rules,
        "random": Random,
    }
    rows: list[Row] = []
    for name in progress(args.settings, "foreign"):
        if name in STOCK:
            rows += rows_of(name, room_seeds(args.seed, args.episodes), args.seed, args.device)
            continue
        layouts = room_seeds(args.seed, args.runs)
        tables = [table_of(WORLDS[name](seed, True), seed) for seed in layouts]
        rows += _from_banks(name, tables, agents, args)
        if name != WINDOWED:
            rows += _from_nothing(name, dict(zip(layouts, tables, strict=True)), agents, args)
    return finish(args, "foreign", rows)


def _from_banks(name: str, tables: list[Table], agents: dict[str, Callable[[int], Any]], args: Any) -> list[Row]:
    """Success and optimality of each agent, in every layout in turn."""
    setting, window = (f"{name}-{WINDOW}", WINDOW) if name == WINDOWED else (name, None)
    seeds = room_seeds(args.seed, args.episodes)

    def walk(make: Callable[[int], Any], some: list[Table]) -> list[float]:
        return [from_bank(make(seed), some[i % len(some)], seed, window) for i, seed in enumerate(seeds)]

    found = {method: walk(make, tables) for method, make in agents.items()}
    if max(len(table.graph()) for table in tables) <= FEW_STATES:
        unnamed = [replace(table, actions=CODES[: table.n_actions]) for table in tables]
        found["eswm-unknown"] = walk(agents["eswm"], unnamed)
    found["shortest-path"] = [1.0] * len(seeds)
    rows = []
    for method, optimality in found.items():
        reached = [one for one in optimality if one > 0]
        rows.append(Row(setting, method, "success_rate", *rate([one > 0 for one in optimality])))
        if reached:
            rows.append(Row(setting, method, "path_optimality", *mean(reached, args.seed)))
    return rows


def _from_nothing(name: str, tables: dict[int, Table], agents: dict[str, Callable[[int], Any]], args: Any) -> list[Row]:
    """Steps of each agent until it is first at the goal, and until it has walked the best path, in each layout."""
    rows = []
    learners: dict[str, Callable[[int], Any] | None] = {"q-learning": QLearning, "ppo": None}
    for method, make in {**agents, **learners}.items():
        budget = min(500 if args.quick else 10**9, LEARNERS_BUDGET if method in learners else BUDGET)
        steps = []
        for seed, table in tables.items():
            env, lengths = WORLDS[name](seed, True), nx.single_source_shortest_path_length(table.graph(), table.start)
            shortest = min(lengths[goal] for goal in table.goals)
            if make is None:
                steps.append(ppo_from_nothing(env, seed, len(table.graph()), shortest, budget))
            else:
                steps.append(from_nothing(make(seed), env, seed, shortest, budget))
        first, best = zip(*steps, strict=True)
        rows.append(Row(name, method, "steps_to_goal", *mean(first, args.seed)))
        rows.append(Row(name, method, "steps_to_best_path", *mean(best, args.seed)))
    return rows
