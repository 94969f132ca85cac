"""Navigation with minimal spanning memory banks in rooms never seen (paper: sections "Navigating with Minimal
Spanning Episodic Memories" and "Planning by Guided Imagination").

Every method walks from the same starts to the same goals in the same rooms:
  random            a random walk: the floor
  memory-graph      Dijkstra over the bank's own transitions and their reverses
  path-integration  knows the lattice: the ceiling
  epn               walked the room for 200 steps before, and remembers them
  eswm-dijkstra     the paper's: every transition imagined, the plan carried out open loop
  eswm-astar        the same, A* guided by distances in the latent space
  eswm-greedy       the same, straight down those distances
  eswm-uncertainty  the same with Dijkstra, a move costing -log p: what the model is sure of comes first
  eswm-untrained, eswm-memories-alone, eswm-model-alone  the agent in parts: with random weights (one in 30
                    episodes); with a look-up of its memories in place of the model; with the model alone, every
                    transition imagined
  rules             the agent with the rules of the lattice in place of the model
  eswm              the agent: what the bank holds is fact, the rest imagined, a new plan where reality differs

In MiniGrid, where states are views, goals are poses and a turn is a move, also:
  memory-graph      the bank's transitions and the reverses of its turns
  overlap-only      the agent with constants in place of what the model learned, and MiniGrid's rule of light
  map-only          the agent with a map of its memories and nothing learned in place of the model
  map-votes         the same with constants for views with errors: the given view is one more vote
  oracle            knows the layout and its pose
`minigrid-noise`: one in twenty cells of each view is wrong or unseen, in the bank, the goal and while acting.

`eswm-astar-euclidean` only plans: A* guided by straight distances in the latent space. A detour is a way that a wall
makes longer. `latent_r2` is of latent distances against shortest paths.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from common.cli import BySize, agent_parser, finish, room_seeds
from common.intervals import Estimate, mean, rate, ratio
from common.models import agents_in_part, find_hex_model, share_of, view_models
from common.progress import progress
from common.rows import Row, Test
from common.tests import compare, t_test

from eswm_gym.agents import Agent, ESWMAgent, latent_maps, search
from eswm_gym.agents.baselines import (
    EPNAgent,
    GridOracle,
    MemoryGraphAgent,
    PathIntegrationAgent,
    RandomAgent,
    ViewGraphAgent,
)
from eswm_gym.agents.episodes import Episode, Setup, optimality, run
from eswm_gym.agents.states import state_of
from eswm_gym.wrappers import ViewErrors

# Setting, environment.
SETTINGS = {"random-wall-19": "ESWM-RandomWall19-v0", "random-wall-37": "ESWM-RandomWall-v0"}
MINIGRID = "ESWM-MiniGrid-v0"
WRONG_CELLS = 0.05
SHARE = {"minigrid": 3, "minigrid-noise": 8}  # one in so many episodes: views take long
ONE_IN = {"eswm-untrained": 45, "eswm-t": 8}  # of those: where each step is a surprise, an episode takes long
# EPN's figures follow from "outperforming EPN by 18% and 21%".
PAPER = {
    ("random-wall-19", "eswm-dijkstra", "success_rate"): 0.968,
    ("random-wall-19", "eswm-dijkstra", "path_optimality"): 0.992,
    ("random-wall-19", "epn", "success_rate"): 0.82,
    ("random-wall-19", "epn", "path_optimality"): 0.82,
    ("random-wall-37", "eswm-greedy", "detour_success_rate"): 0.70,
    ("random-wall-37", "eswm-astar", "expansions_saved"): 0.57,
    ("random-wall-37", "eswm", "latent_r2"): 0.89,
}


class OpenLoop(ESWMAgent):
    """The paper's navigator: one plan at the start, then its actions whatever happens."""

    def __init__(self, model, **options) -> None:
        super().__init__(model, **{**options, "trust_memory": False})

    def reset(self, obs, info) -> None:
        super().reset(obs, info)
        self.actions: list[int] | None = None

    @staticmethod
    def prepare(agents, observations, infos=None) -> None:
        new = [
            (a, state_of(obs["state"]), obs) for a, obs in zip(agents, observations, strict=True) if a.actions is None
        ]
        if new:
            every = [agent.knowledge for agent, *_ in new]
            every[0].imagine(every, [state for _, state, _ in new])
        guided = [agent for agent, *_ in new if agent.config.algorithm != "dijkstra"]
        for agent, latent in zip(guided, latent_maps(agents[0].model, [agent.memory for agent in guided]), strict=True):
            agent.knowledge.latent = latent
        for agent, state, obs in new:
            agent.actions = list(agent.plan(state, state_of(obs["goal"])).actions)

    def act(self, obs, info) -> int:
        return self.actions.pop(0) if self.actions else -1

    def observe(self, obs, action, next_obs, info) -> None:
        return None


def rows_of(setting: str, method: str, episodes: list[Episode], seed: int) -> list[Row]:
    """Success and path optimality (shortest over actual length, of the successful), in all and by path length."""
    rows = []

    def add(metric: str, found: Estimate, length: int | None) -> None:
        if length is None:
            rows.append(Row(setting, method, metric, *found, paper=PAPER.get((setting, method, metric))))
        else:
            rows.append(Row(setting, method, metric, *found, along="length", at=length))

    for length in [None, *sorted({episode.shortest for episode in episodes})]:
        some = [episode for episode in episodes if length is None or episode.shortest == length]
        add("success_rate", rate([episode.success for episode in some]), length)
        if arrived := optimality(some):
            add("path_optimality", mean(arrived, seed), length)
    if detours := [episode.success for episode in episodes if episode.shortest > episode.straight]:
        add("detour_success_rate", rate(detours), None)
    return rows


def guided_rows(setting: str, episodes: list[Episode], seed: int) -> list[Row]:
    """What the latent map is worth: states expanded, and how it fits the shortest paths.

    Args:
        setting: name in the table.
        episodes: finished ones of `eswm-astar`, whose agents hold the banks and the maps.
        seed: of the intervals.
    """
    expanded: dict[str, list[int]] = {"eswm-dijkstra": [], "eswm-astar": [], "eswm-astar-euclidean": []}
    euclidean_optimality, latent, true = [], [], []
    for episode in episodes:
        planner: ESWMAgent = episode.agent  # type: ignore[assignment]
        where, room = planner.latent_map(), episode.env.unwrapped.room
        start, goal = (int(room.states[i]) for i in (episode.path[0], episode.env.unwrapped.goal))
        straight = where.distances_to(goal, where.euclidean())
        plans = {
            "eswm-dijkstra": planner.plan(start, goal, "dijkstra"),
            "eswm-astar": planner.plan(start, goal, "astar"),
            "eswm-astar-euclidean": search(planner.imagined(start), start, goal, distance=straight),
        }
        for method, plan in plans.items():
            expanded[method].append(plan.expanded)
        if plans["eswm-astar-euclidean"].found:
            euclidean_optimality.append(episode.shortest / len(plans["eswm-astar-euclidean"]))
        distance = where.distances_to(goal, where.geodesic(planner.model.latent_radius))[start]
        if np.isfinite(distance):
            latent.append(distance)
            true.append(episode.shortest)
    rows = [Row(setting, method, "states_expanded", *mean(counts, seed)) for method, counts in expanded.items()]
    for method in ("eswm-astar", "eswm-astar-euclidean"):
        spent = ratio(expanded[method], expanded["eswm-dijkstra"], seed)
        saved = 1 - spent.value, spent.ci95 and (1 - spent.ci95[1], 1 - spent.ci95[0]), spent.n
        figure = PAPER.get((setting, method, "expansions_saved"))
        rows.append(Row(setting, method, "expansions_saved", *saved, paper=figure))
    rows.append(Row(setting, "eswm-astar-euclidean", "planned_optimality", *mean(euclidean_optimality, seed)))
    r2 = float(np.corrcoef(latent, true)[0, 1] ** 2)
    rows.append(Row(setting, "eswm", "latent_r2", r2, n=len(true), paper=PAPER.get((setting, "eswm", "latent_r2"))))
    return rows


def minigrid_rows(setting: str, seeds: range, seed: int, device: str) -> tuple[list[Row], list[Test]]:
    """Rows of MiniGrid's methods, with views as they are or, in `minigrid-noise`, with errors."""
    errs = setting == "minigrid-noise"
    setups = [Setup(noisy_minigrid if errs else MINIGRID, s) for s in seeds]
    methods: dict[str, Agent] = {"random": RandomAgent(n_actions=3), "memory-graph": ViewGraphAgent()}
    # Where views have errors, nothing that was seen is a fact.
    methods |= {name: ESWMAgent(model, trust_memory=not errs) for name, model in view_models(device).items()}
    methods["oracle"] = GridOracle()
    shares = {m: some for m in methods if (some := setups[: len(setups) // ONE_IN.get(m, 1)])}
    found = {m: run(shares[m], methods[m]) for m in progress(shares, setting)}
    rows = [row for method, episodes in found.items() for row in rows_of(setting, method, episodes, seed)]
    success = {method: [float(e.success) for e in episodes] for method, episodes in found.items()}
    return rows, compare(setting, "success_rate", success, "eswm")


def noisy_minigrid() -> gym.Env:
    return ViewErrors(gym.make(MINIGRID), WRONG_CELLS)


def main(argv: list[str] | None = None) -> list[Row]:
    options = agent_parser(__doc__, BySize(0.7, 3, 9), (60, 400, 1200), "in all, a third of them in each setting")
    options.add_argument("--by-length", action="store_true", help="print the rows of each path length too")
    args = options.parse_args(argv)
    per_setting = max(1, args.episodes // (len(SETTINGS) + 1))
    eswm = ESWMAgent(find_hex_model(args.model, args.device))
    epn = EPNAgent.from_pretrained(device=args.device)
    methods: dict[str, Agent] = {
        "random": RandomAgent(),
        "memory-graph": MemoryGraphAgent(),
        "path-integration": PathIntegrationAgent(),
        "epn": epn,
        "eswm-dijkstra": OpenLoop(eswm.model),
        "eswm-astar": OpenLoop(eswm.model, algorithm="astar"),
        "eswm-greedy": OpenLoop(eswm.model, algorithm="greedy"),
        "eswm-uncertainty": OpenLoop(eswm.model, cost="uncertainty"),
        **agents_in_part(eswm.model),
        "eswm": eswm,
    }
    if eswm.model.latent_radius is None:
        print("without eswm-astar and eswm-greedy: the model has no latent radius, see eswm_gym.agents.latent_radius")
        del methods["eswm-astar"], methods["eswm-greedy"]
    seeds = room_seeds(args.seed, per_setting)
    rows: list[Row] = []
    tests: list[Test] = []
    for setting, env_id in SETTINGS.items():
        setups = [Setup(env_id, seed) for seed in seeds]
        found: dict[str, list[Episode]] = {}
        for method, agent in progress(methods.items(), setting):
            memories = None
            if method == "epn":
                memories = epn.fill_memories([e.env.unwrapped.room for e in found["random"]], seed=args.seed)
            found[method] = run(share_of(method, setups), agent, memories)
            rows += rows_of(setting, method, found[method], args.seed)
        if "eswm-astar" in found:
            rows += guided_rows(setting, found["eswm-astar"], args.seed)
        success = {method: [float(e.success) for e in episodes] for method, episodes in found.items()}
        tests += compare(setting, "success_rate", success, "eswm")
        for method in ("eswm-dijkstra", "eswm"):
            ours, theirs = optimality(found[method]), optimality(found["epn"])
            if min(len(ours), len(theirs)) > 1:
                tests.append(t_test(setting, "path_optimality", method, ours, "epn", theirs, alternative="greater"))
    for setting, share in SHARE.items():
        some = seeds[: 4 if args.quick else max(1, per_setting // share)]
        found = minigrid_rows(setting, some, args.seed, args.device)
        rows, tests = rows + found[0], tests + found[1]
    shown = [row for row in rows if args.by_length or row.along is None]
    replay = f"--env {SETTINGS['random-wall-37']} --seed {seeds[0]}"
    return finish(args, "navigate", rows, tests, shown=shown, replay=replay)


if __name__ == "__main__":
    main()
