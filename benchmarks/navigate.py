"""Navigation with minimal spanning memory banks in rooms never seen (paper: section "Navigating with Minimal
Spanning Episodic Memories").

Every method walks from the same starts to the same goals in the same rooms:
  random            a random walk: the floor
  memory-graph      Dijkstra over the bank's own transitions and their reverses
  path-integration  knows the lattice: the ceiling
  eswm-dijkstra     the paper's: every transition imagined, the plan carried out open loop
  eswm              the agent: what the bank holds is fact, the rest imagined, a new plan where reality differs
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gymnasium as gym
from report import Row, mean, parser, print_table, rate, write_json
from tqdm import tqdm

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import Agent, ESWMAgent
from eswm_gym.agents.baselines import MemoryGraphAgent, PathIntegrationAgent, RandomAgent

# Setting, environment; the paper's figures are for 19 locations.
SETTINGS = {"random-wall-19": "ESWM-RandomWall19-v0", "random-wall-37": "ESWM-RandomWall-v0"}
PAPER = {("random-wall-19", "success_rate"): 0.968, ("random-wall-19", "path_optimality"): 0.992}
TOGETHER = 200  # episodes that share the passes of the model


class OpenLoop(ESWMAgent):
    """The paper's navigator: one plan at the start, then its actions whatever happens."""

    def __init__(self, model, **options) -> None:
        super().__init__(model, **{**options, "trust_memory": False})

    def spawn(self, seed: int | None = None) -> OpenLoop:
        return OpenLoop(self.model, seed=seed)

    def reset(self, obs, info) -> None:
        super().reset(obs, info)
        self._planned = False

    def act(self, obs, info) -> int:
        if not self._planned:
            self._planned = True
            action = super().act(obs, info)
            self._left = [step for step, _ in self._ahead]
            self._ahead = []
            if not self._left:
                self._left = [action]
        return self._left.pop(0) if self._left else -1

    def observe(self, obs, action, next_obs, info) -> None:
        return None


class Episode:
    """One episode of one method."""

    def __init__(self, env_id: str, agent: Agent, seed: int) -> None:
        self.env, self.agent = gym.make(env_id), agent
        self.obs, self.info = self.env.reset(seed=seed)
        self.shortest, self.steps = self.info["shortest_path_length"], 0
        self.done = self.success = False
        agent.reset(self.obs, self.info)

    def step(self) -> None:
        action = self.agent.act(self.obs, self.info)
        if action < 0:  # an open-loop plan has run out
            self.done = True
            return
        obs, _, terminated, truncated, info = self.env.step(action)
        self.agent.observe(self.obs, action, obs, info)
        self.obs, self.info = obs, info
        self.steps += 1
        self.success, self.done = terminated, terminated or truncated


def run(env_id: str, agent: Agent, seeds: Sequence[int]) -> list[Episode]:
    """Run an episode for each seed, in step, so that agents with a model share its passes."""
    finished = []
    for first in range(0, len(seeds), TOGETHER):
        batch = [Episode(env_id, agent.spawn(seed), seed) for seed in seeds[first : first + TOGETHER]]
        running = batch
        while running:
            agent.prepare([episode.agent for episode in running], [episode.obs for episode in running])
            for episode in running:
                episode.step()
            running = [episode for episode in running if not episode.done]
        finished += batch
    return finished


def rows_of(setting: str, method: str, episodes: list[Episode], seed: int) -> list[Row]:
    """Success and path optimality (shortest over actual length, of the successful), in all and by path length."""
    paper = PAPER if method == "eswm-dijkstra" else {}
    lengths = sorted({episode.shortest for episode in episodes})
    rows = []
    for name, some in [("", episodes)] + [
        (f"/length-{length}", [e for e in episodes if e.shortest == length]) for length in lengths
    ]:
        figure = None if name else paper.get((setting, "success_rate"))
        rows.append(rate(setting, method, f"success_rate{name}", [e.success for e in some], figure))
        arrived = [e.shortest / e.steps for e in some if e.success]
        if arrived:
            figure = None if name else paper.get((setting, "path_optimality"))
            rows.append(mean(setting, method, f"path_optimality{name}", arrived, seed, figure))
    return rows


def plot(rows: list[Row], folder: Path) -> None:
    """Draw success and optimality by path length."""
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharex=True)
        for axis, metric in zip(axes, ("success_rate", "path_optimality"), strict=True):
            for method in dict.fromkeys(row.method for row in rows):
                curve = [
                    (int(row.metric.rsplit("-", 1)[1]), row.value)
                    for row in rows
                    if (row.setting, row.method) == (setting, method) and row.metric.startswith(f"{metric}/")
                ]
                if curve:
                    axis.plot(*zip(*curve, strict=True), marker="o", markersize=3, label=method)
            axis.set(xlabel="shortest path length", ylabel=metric.replace("_", " "), ylim=(-0.03, 1.03))
        axes[1].legend(fontsize=8)
        figure.suptitle(setting)
        figure.tight_layout()
        for suffix in ("png", "svg"):
            figure.savefig(folder / f"navigate-{setting}.{suffix}", dpi=150)
        plt.close(figure)


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--episodes", type=int, default=2400, help="in all, half of them in each setting")
    options.add_argument("--model", default="random-wall", help="name of a pretrained model")
    options.add_argument("--by-length", action="store_true", help="print the rows of each path length too")
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    args = options.parse_args(argv)
    per_setting = 20 if args.quick else max(1, args.episodes // len(SETTINGS))
    eswm = ESWMAgent.from_pretrained(args.model, args.device)
    methods: dict[str, Agent] = {
        "random": RandomAgent(),
        "memory-graph": MemoryGraphAgent(),
        "path-integration": PathIntegrationAgent(),
        "eswm-dijkstra": OpenLoop(eswm.model),
        "eswm": eswm,
    }
    seeds = range(args.seed * 10**6, args.seed * 10**6 + per_setting)
    rows: list[Row] = []
    with tqdm(total=len(SETTINGS) * len(methods), disable=None, unit="method") as bar:
        for setting, env_id in SETTINGS.items():
            for method, agent in methods.items():
                bar.set_postfix_str(f"{setting} {method}")
                rows += rows_of(setting, method, run(env_id, agent, seeds), args.seed)
                bar.update()
    print_table(row for row in rows if args.by_length or "/" not in row.metric)
    if args.json:
        write_json(args.json, "navigate", args.seed, rows)
    if args.plot:
        plot(rows, args.plot)
    return rows


if __name__ == "__main__":
    main()
