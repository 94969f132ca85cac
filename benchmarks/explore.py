"""Exploration from an empty memory bank in rooms never seen (paper: section "Exploration in Novel Environments").

Every method starts at the same place in the same rooms and has 15 steps with 19 locations, 25 with 37:
  random              a random walk
  epn                 trained to find goals: it looks for one that it has not seen
  lattice-frontier    knows the lattice and its place on it; goes to the nearest location not visited
  lattice-frontier-ordered  the same, the least open first, as `eswm`
  blind-frontier      knows the lattice and its radius, and infers from its bumps where on it it may be; with
                      `-no-radius` it counts on no rim
  eswm-uncertainty    the paper's rule: moves that the model is not sure of, here or ahead
  eswm-unordered      the agent's default without its order: the nearest place not visited, any of several
  eswm-untrained, eswm-memories-alone, eswm-model-alone, rules  the agent in parts, as in `navigate.py`
  eswm                the agent's default: the nearest place not visited, the least open first
  oracle              knows the walls: networkx's travelling salesman, an approximation for a round trip
  bound               what nobody can exceed: the steps, or the locations that can be reached

In `random-wall-19-no-mask` and `random-wall-37-no-mask` nobody is told which moves leave the lattice: they bump into
its rim as into a wall. The explorers that know the lattice know from it all the same.

In MiniGrid, `coverage` along `steps` is the share of what can be seen that has been seen after so many moves. The
oracle goes each time where it sees most that is new for the moves that it takes.

With `eswm` also: how many of the reachable locations it has visited when its memory bank is as long as a minimal
spanning one, and how well the model predicts from that bank, relative to a generated one, moves that are in neither
bank and whose states the explored one holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from common.cli import BySize, agent_parser, finish, room_seeds
from common.intervals import mean, ratio
from common.models import PARTS, agents_in_part, find_hex_model, share_of
from common.plots import draw_settings, save_figure
from common.progress import progress
from common.rows import Row
from common.tests import compare

from eswm_gym.agents import Agent, ESWMAgent, MemoryBank
from eswm_gym.agents.baselines import (
    BlindFrontierAgent,
    EPNAgent,
    GridOracleExplorer,
    LatticeFrontierAgent,
    MapOnly,
    OracleExplorer,
    RandomAgent,
)
from eswm_gym.agents.episodes import Episode, Setup, run
from eswm_gym.rooms import N_ACTIONS, Room
from eswm_gym.rooms.grid import GridBatch, pose_index
from eswm_gym.rooms.transitions import COMPONENTS
from eswm_gym.world_model import ESWM, MASKED

# Setting: environment, radius, steps.
SETTINGS = {
    "random-wall-19": ("ESWM-RandomWall19Explore-v0", 2, 15),
    "random-wall-37": ("ESWM-RandomWallExplore-v0", 3, 25),
}
LENGTH = {2: 18, 3: 36}  # of a minimal spanning bank, by radius; 15 and 25 steps do not fill it
MINIGRID = "ESWM-MiniGridExplore-v0"
MINIGRID_STEPS = (10, 20, 30, 60)
# With --quick, methods that take long meet few rooms, and without a mask all agents with a model do.
FEW = (*PARTS, "eswm-unordered")
FEW_WITHOUT_MASK = ("eswm-uncertainty", "eswm-unordered", "eswm")
PAPER = {"oracle_ratio": 0.9648, "epn_ratio": 1.168, "coverage": 0.91}
PAPER_RELATIVE = {"source": 0.97, "action": 0.93, "end": 0.98}


def visited(episode: Episode, steps: int | None = None) -> int:
    """Unique locations in so many steps, the start among them."""
    return len(set(episode.path if steps is None else episode.path[: steps + 1]))


def reachable(room: Room, location: int) -> int:
    """Locations that can be reached, the start among them."""
    return int((room.distances_from(location) >= 0).sum())


def moves_to_ask(room: Room, explored: MemoryBank, generated: MemoryBank) -> np.ndarray:
    """(Q, 3) true moves on the lattice that neither bank holds, between places that the explored bank has seen."""
    walls = {room.lattice.neighbors[room.location_of(s), a] for s, a, e in explored if s == e}
    asked = []
    for state in explored.states:
        here = room.location_of(state)
        for action in range(N_ACTIONS):
            there = int(room.lattice.neighbors[here, action])
            if there < 0 or not (there in walls or int(room.states[there]) in explored.states):
                continue
            move = state, action, room.next_state(state, action)
            if move not in explored and move not in generated:
                asked.append(move)
    return np.array(asked, np.int64).reshape(-1, 3)


@torch.inference_mode()
def accuracies(model: ESWM, bank: MemoryBank, moves: np.ndarray) -> dict[str, np.ndarray]:
    """For each component (Q,) bool, whether the model fills it in as it was when it is masked."""
    encoded = model.encode(torch.from_numpy(bank.to_numpy())[None].to(model.device))
    right = {}
    for component, name in enumerate(COMPONENTS):
        query = moves.copy()
        query[:, component] = MASKED
        answer = model.predict(encoded, torch.from_numpy(query)[None].to(model.device)).head(component)[0].argmax(-1)
        right[name] = answer.cpu().numpy() == moves[:, component]
    return right


def mapping_rows(setting: str, episodes: list[Episode], seed: int) -> list[Row]:
    """Coverage and relative accuracy of agents whose bank is as long as a minimal spanning one."""
    share, right = [], {name: ([], []) for name in COMPONENTS}
    for episode in episodes:
        agent: ESWMAgent = episode.agent  # type: ignore[assignment]
        room, explored = episode.env.unwrapped.room, agent.memory
        share.append(visited(episode) / reachable(room, episode.path[0]))
        generated = MemoryBank(room.memory_bank(np.random.default_rng([episode.setup.seed, 1])))
        moves = moves_to_ask(room, explored, generated)
        if len(moves):
            of_both = accuracies(agent.model, explored, moves), accuracies(agent.model, generated, moves)
            for name in COMPONENTS:
                for of, found in zip(of_both, right[name], strict=True):
                    found.append(of[name].mean())
    rows = [Row(setting, "eswm", "coverage", *mean(share, seed), paper=PAPER["coverage"])]
    for name, (explored_right, generated_right) in right.items():
        metric = f"relative_accuracy/{name}"
        found = ratio(explored_right, generated_right, seed)
        rows.append(Row(setting, "eswm", metric, *found, paper=PAPER_RELATIVE[name]))
    return rows


def minigrid_rows(seeds: range, seed: int, device: str) -> list[Row]:
    """How much of MiniGrid's rooms each method has seen after so many moves."""
    methods: dict[str, Agent] = {
        "random": RandomAgent(n_actions=3),
        # It expects to see too much, as no wall that it has not seen stops light: the nearest serves it better.
        "map-only": ESWMAgent(MapOnly().to(device), exploration="frontier-unordered"),
        "eswm": ESWMAgent.from_pretrained("minigrid", device),
        "oracle": GridOracleExplorer(),
    }
    setups = [Setup(MINIGRID, s) for s in seeds]
    rows, coverage = [], {}
    for method in progress(methods, "minigrid"):
        coverage[method] = np.array([seen_by_step(episode) for episode in run(setups, methods[method])])
        rows += [
            Row("minigrid", method, "coverage", *mean(coverage[method][:, n], seed), along="steps", at=n)
            for n in MINIGRID_STEPS
        ]
    for n in MINIGRID_STEPS:
        found = ratio(coverage["eswm"][:, n], coverage["oracle"][:, n], seed)
        rows.append(Row("minigrid", "eswm", "oracle_ratio", *found, along="steps", at=n))
    return rows


def seen_by_step(episode: Episode) -> list[float]:
    """Share of the cells that can be seen which were seen after each number of moves; the last one goes on."""
    grid = episode.env.unwrapped.grid_classes
    room = GridBatch.of(grid[None])
    sight = room.sight[0, [pose_index(len(grid), *pose) for pose in episode.path]]
    share = np.logical_or.accumulate(sight).sum(1) / room.visible.sum()
    return [*share.tolist(), *[float(share[-1])] * (max(MINIGRID_STEPS) + 1 - len(share))]


def draw_paths(episodes: dict[str, dict[str, list[Episode]]], folder: Path, n: int = 4) -> None:
    """Draw the first paths of each method."""
    import matplotlib.pyplot as plt

    for setting, by_method in episodes.items():
        figure, axes = plt.subplots(len(by_method), n, figsize=(2.4 * n, 2.4 * len(by_method)), squeeze=False)
        for row, (method, some) in zip(axes, by_method.items(), strict=True):
            for axis, episode in zip(row, some[:n], strict=False):
                path = episode.path[: SETTINGS[setting][2] + 1]
                room = episode.env.unwrapped.room
                x, y = room.lattice.xy.T
                axis.scatter(x, -y, s=160, marker="h", c=np.where(room.walls, "0.25", "0.88"), linewidths=0)
                way = room.lattice.xy[path]
                axis.plot(way[:, 0], -way[:, 1], color="tab:blue", linewidth=1.5)
                axis.scatter(way[0, 0], -way[0, 1], s=30, color="tab:green", zorder=3)
                axis.scatter(way[-1, 0], -way[-1, 1], s=30, color="tab:red", zorder=3)
                axis.set(xticks=[], yticks=[], aspect="equal")
                axis.set_title(f"{len(set(path))} locations", fontsize=8)
                axis.spines[:].set_visible(False)
            row[0].set_ylabel(method)
        figure.suptitle(f"{setting}: paths from green to red")
        save_figure(figure, folder, f"explore-{setting}")


class NoActionMask(gym.Wrapper):
    """Hides `info["action_mask"]`, so that a move off the lattice is a move that one has to try."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        del info["action_mask"]
        return obs, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        *outcome, info = self.env.step(action)
        del info["action_mask"]
        return *outcome, info  # type: ignore[return-value]


def setups_of(env_id: str, steps: int, seeds: Sequence[int], mask: bool) -> list[Setup]:
    """Episodes of so many steps."""
    env = env_id if mask else lambda: NoActionMask(gym.make(env_id, max_episode_steps=steps))
    return [Setup(env, seed, max_steps=steps) for seed in seeds]


def explore(
    setting: str, methods: dict[str, Agent], seeds: Sequence[int], mask: bool, few: Collection[str] = ()
) -> dict[str, list[Episode]]:
    """The episodes of each method; the methods in `few` meet few rooms."""
    env_id, radius, steps = SETTINGS[setting]
    name = setting if mask else f"{setting}-no-mask"
    found: dict[str, list[Episode]] = {}
    for method, agent in progress(methods.items(), name):
        if method == "eswm" and mask:  # goes on until its bank is as long as a minimal spanning one
            setups = setups_of(env_id, 10 * steps, seeds, mask)
            found[method] = run(setups, agent, until=lambda e: len(e.agent.memory) >= LENGTH[radius])  # type: ignore[attr-defined]
        else:
            found[method] = run(share_of(method, setups_of(env_id, steps, seeds, mask), few), agent)
    return found


def main(argv: list[str] | None = None) -> list[Row]:
    options = agent_parser(__doc__, BySize(1, 4, 15), (8, 40, 150), "rooms of each setting")
    args = options.parse_args(argv)
    n = args.episodes
    few, few_without_mask = (FEW, FEW_WITHOUT_MASK) if args.quick else ((), ())
    eswm = ESWMAgent(find_hex_model(args.model, args.device))
    epn = EPNAgent.from_pretrained(device=args.device)
    seeds = room_seeds(args.seed, n)
    rows: list[Row] = []
    tests, drawn = [], {}
    for setting, (_, radius, steps) in SETTINGS.items():
        with_and_without_mask: dict[str, Agent] = {
            "blind-frontier": BlindFrontierAgent([radius]),
            "blind-frontier-no-radius": BlindFrontierAgent(),
            "lattice-frontier": LatticeFrontierAgent(radius),
            "lattice-frontier-ordered": LatticeFrontierAgent(radius, ordered=True),
            "eswm-uncertainty": ESWMAgent(eswm.model, exploration="uncertainty"),
            "eswm-unordered": ESWMAgent(eswm.model, exploration="frontier-unordered"),
            "eswm": eswm,
        }
        methods: dict[str, Agent] = {
            "random": RandomAgent(),
            "epn": epn,
            **agents_in_part(eswm.model),
            **with_and_without_mask,
            "oracle": OracleExplorer(steps),
        }
        found = explore(setting, methods, seeds, mask=True, few=few)
        count = {method: [visited(episode, steps) for episode in some] for method, some in found.items()}
        bound = [min(reachable(e.env.unwrapped.room, e.path[0]), steps + 1) for e in found["random"]]
        for method, values in {**count, "bound": bound}.items():
            rows.append(Row(setting, method, "unique_locations", *mean(values, args.seed)))
        for method in ("eswm-uncertainty", "eswm"):
            ours = method == "eswm-uncertainty"  # the paper's figures are of the paper's rule
            for metric, other in (("oracle_ratio", "oracle"), ("epn_ratio", "epn")):
                figure = PAPER[metric] if ours and setting == "random-wall-19" else None
                found_ratio = ratio(count[method], count[other], args.seed)
                rows.append(Row(setting, method, metric, *found_ratio, paper=figure))
        rows += mapping_rows(setting, found["eswm"], args.seed)
        tests += compare(setting, "unique_locations", count, "eswm")
        drawn[setting] = found
        unmasked = explore(setting, with_and_without_mask, seeds, mask=False, few=few_without_mask)
        for method, some in unmasked.items():
            counted = mean([visited(episode, steps) for episode in some], args.seed)
            rows.append(Row(f"{setting}-no-mask", method, "unique_locations", *counted))
    rows += minigrid_rows(seeds if args.quick else seeds[: max(10, n // 5)], args.seed, args.device)

    def draw(folder: Path) -> None:
        draw_paths(drawn, folder)
        draw_settings(rows, folder, "explore")

    replay = f"--env {SETTINGS['random-wall-37'][0]} --seed {seeds[0]}"
    return finish(args, "explore", rows, tests, draw, replay=replay)


if __name__ == "__main__":
    main()
