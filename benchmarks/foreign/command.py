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

Methods:
  eswm            the agent with the shipped `lattices`, or another --model; it is told what its moves are called
  eswm-unknown    the same, but told nothing of its actions
  memory-graph    knows its moves and, by their names, their reverses; explores the nearest move not made yet
  rules           is told the lattice: keeps coordinates, and counts what it has not seen as free
  q-learning      tabular, optimistic
  ppo             stable-baselines3's, one-hot states
  random, shortest-path
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import networkx as nx
from common.cli import Parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import find_model
from common.progress import progress
from common.rows import Row

from eswm_gym.agents import ESWMAgent
from eswm_gym.rooms import CODES
from foreign.measures import from_bank, from_nothing, ppo_from_nothing
from foreign.rivals import MemoryGraph, QLearning, Random, Rules
from foreign.worlds import WORLDS, Table, table_of

WINDOW = 32  # poses of the window in FourRooms
WINDOWED = "minigrid-four-rooms-poses"
FEW = 20  # episodes of the agent that is told nothing
BUDGET, LONG_BUDGET = 1000, 10_000  # steps from nothing; of those that learn by reward


def main(argv: list[str] | None = None) -> list[Row]:
    options = Parser(__doc__)
    options.add_argument("settings", nargs="*", metavar="SETTING", help="only these (default: all)")
    options.add_argument("--episodes", type=int, default=60, help="from spanning banks (default 60)")
    options.add_argument("--runs", type=int, default=3, help="from nothing (default 3)")
    options.add_argument("--model", default="lattices", metavar="NAME|FILE", help="pretrained or saved (%(default)s)")
    args = options.parse_args(argv)
    if unknown := set(args.settings) - set(WORLDS):
        options.error(f"no setting {', '.join(sorted(unknown))}; there are {', '.join(WORLDS)}")
    there_are = [name for name in WORLDS if name != "popgym-labyrinth" or find_spec("popgym")]
    settings = args.settings or (["frozen-lake-4x4"] if args.quick else there_are)
    episodes, runs, learns = (3, 1, 500) if args.quick else (args.episodes, args.runs, LONG_BUDGET)
    model = find_model(args.model, args.device)

    def eswm(seed: int) -> ESWMAgent:
        return ESWMAgent(model, seed=seed)

    agents: dict[str, Callable[[int], Any]] = {
        "eswm": eswm, "eswm-unknown": eswm, "memory-graph": MemoryGraph, "rules": Rules, "random": Random,
    }  # fmt: skip
    rows: list[Row] = []
    for name in progress(settings, "foreign"):
        layouts = room_seeds(args.seed, runs)
        tables = [table_of(WORLDS[name](seed, True), seed) for seed in layouts]
        setting = f"{name}-{WINDOW}" if name == WINDOWED else name
        window = WINDOW if name == WINDOWED else None
        for method, make in agents.items():
            found = []
            some = FEW if method == "eswm-unknown" else episodes  # whatever happens surprises it, which takes long
            for i, seed in enumerate(room_seeds(args.seed, min(some, episodes))):
                table = tables[i % runs]
                if method == "eswm-unknown":
                    table = replace(table, actions=CODES[: table.n_actions])
                found.append(from_bank(make(seed), table, seed, window))
            rows += _plans(setting, method, found, args.seed)
        rows += _plans(setting, "shortest-path", [1.0] * episodes, args.seed)
        if window is None:
            learners = {"q-learning": QLearning, "ppo": None}
            for method, make in {k: v for k, v in {**agents, **learners}.items() if k != "eswm-unknown"}.items():
                budget = learns if method in ("q-learning", "ppo") else min(BUDGET, learns)
                steps = []
                for run, (seed, table) in enumerate(zip(layouts, tables, strict=True)):
                    env, shortest = WORLDS[name](seed, True), _shortest(table)
                    if make is None:
                        steps.append(ppo_from_nothing(env, seed, len(table.graph()), shortest, budget, run))
                    else:
                        steps.append(from_nothing(make(seed), env, seed, shortest, budget))
                for metric, values in zip(
                    ("steps_to_goal", "steps_to_best_path"), zip(*steps, strict=True), strict=True
                ):
                    rows.append(Row(setting, method, metric, *mean(values, args.seed)))
    return finish(args, "foreign", rows)


def _shortest(table: Table) -> int:
    lengths = nx.single_source_shortest_path_length(table.graph(), table.start)
    return min(lengths[goal] for goal in table.goals)


def _plans(setting: str, method: str, found: list[float], seed: int) -> list[Row]:
    """The rows of episodes from spanning banks; each found 0 or its optimality."""
    reached = [one for one in found if one > 0]
    rows = [Row(setting, method, "success_rate", *rate([one > 0 for one in found]))]
    if reached:
        rows.append(Row(setting, method, "path_optimality", *mean(reached, seed)))
    return rows
