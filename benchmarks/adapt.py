"""Adaptation: navigation after the room has changed (paper: section "ESWM Enables Fast Adaptation to Changes").

Each agent knows the room as it was. Then 0 to 5 contiguous locations turn into wall (fewer where there is no space),
and it has to get to a goal within 15 steps, 30 in rooms of 37 locations. All methods get the same rooms, walls, starts
and goals. Where a new wall cuts the goal off, the episode is left out: of long walls what is left is mostly easy, and
`detour_success_rate` is of the episodes whose shortest way the new wall made longer.
  memory-graph      Dijkstra over the bank's transitions and their reverses, and what it bumps into
  path-integration  knows the lattice, keeps its coordinates and marks where it was blocked
  epn               remembers 200 transitions of the room as it was
  a2c-lstm          trained in one room: compared only there
  eswm-untrained, eswm-memories-alone, eswm-model-alone, rules  the agent in parts, as in `navigate.py`, with three
                    new walls
  eswm-no-editing   keeps outdated memories beside what it bumps into
  eswm              deletes the memories that a change made outdated, keeps the place on its map, plans again

`random-wall-19` and `random-wall-37` are a new room in each episode, `trained-room` is the one room that A2C-LSTM was
trained in. `wall-removed`: a memory bank with a wall, which is gone, and a way that it made longer or cut off.
`minigrid`: on the way, after two moves, a cell in the middle of the shortest way from the start turns into a wall, for
all methods the same; path optimality is then of the moves so far and the shortest way from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gymnasium as gym
import networkx as nx
import numpy as np
from common.cli import BySize, agent_parser, finish, room_seeds
from common.intervals import mean, rate
from common.models import PARTS, agents_in_part, find_hex_model, share_of
from common.progress import progress
from common.rows import Row, Test
from common.tests import compare

from eswm_gym.agents import Agent, ESWMAgent
from eswm_gym.agents.baselines import (
    A2CLSTMAgent,
    EPNAgent,
    MapOnly,
    MemoryGraphAgent,
    PathIntegrationAgent,
    RandomAgent,
    ViewGraphAgent,
)
from eswm_gym.agents.baselines.grid_agents import pose_graph
from eswm_gym.agents.episodes import Episode, Setup, optimality, run
from eswm_gym.rooms import N_ACTIONS, Room
from eswm_gym.rooms.grid import SIZE, pose_index, poses

ENV_ID = "ESWM-RandomWall19-v0"
FULL = 5
PARTS_MEET = (0, 3)  # so many new walls
QUICK_MEET = (0, 3, FULL)  # with --quick
STRAIGHTNESS = 0.8  # how often a new wall goes straight on
MINIGRID, AFTER = "ESWM-MiniGrid-v0", 2
PAPER = {"eswm": 0.93, "epn": 0.72, "a2c-lstm": 0.56}


def new_wall(room: Room, length: int, rng: np.random.Generator, keep: set[int]) -> list[int]:
    """Contiguous free locations for a wall to come, mostly in a line; shorter if the room leaves no space for it."""
    free = [i for i in range(room.n_locations) if not room.walls[i] and i not in keep]
    best: list[int] = []
    for _ in range(50):
        wall, heading = [int(rng.choice(free))], int(rng.integers(N_ACTIONS))
        while len(wall) < length:
            turn = 0 if rng.random() < STRAIGHTNESS else int(rng.choice([-1, 1]))
            heading = (heading + turn) % N_ACTIONS
            following = int(room.lattice.neighbors[wall[-1], heading])
            if following not in free or following in wall:
                break
            wall.append(following)
        best = max(best, wall, key=len)
        if len(best) == length:
            break
    return best


def setups_of(seeds: Sequence[int], room: Room | None = None, env_id: str = ENV_ID) -> tuple[list[Setup], list[Room]]:
    """Episodes with the full new wall, and their rooms as they were before it."""
    env = gym.make(env_id).unwrapped
    setups, rooms = [], []
    for seed in seeds:
        options = {} if room is None else {"room": room}
        env.reset(seed=seed, options=options)
        rooms.append(env.room.copy())
        wall = new_wall(env.room, FULL, np.random.default_rng([seed, 1]), {env.location, env.goal})
        setups.append(Setup(env_id, seed, options=options, new_walls=tuple(wall)))
    return setups, rooms


def with_walls(setups: Sequence[Setup], n: int) -> list[Setup]:
    """The same episodes with the first n of the new wall locations."""
    return [replace(setup, new_walls=setup.new_walls[:n]) for setup in setups]


def rows_of(
    setting: str, method: str, n_walls: int, episodes: list[Episode], longer: list[Episode], seed: int
) -> list[Row]:
    """Success and path optimality where the goal was not cut off, and success where the way has become longer."""
    found = {}
    if episodes:
        found["success_rate"] = rate([episode.success for episode in episodes])
    if longer:
        found["detour_success_rate"] = rate([episode.success for episode in longer])
    if arrived := optimality(episodes):
        found["path_optimality"] = mean(arrived, seed)
    paper = {"success_rate": PAPER.get(method)} if n_walls == FULL else {}
    return [
        Row(setting, method, metric, *estimate, paper=paper.get(metric), along="new_walls", at=n_walls)
        for metric, estimate in found.items()
    ]


def rows_of_changes(
    setting: str,
    methods: dict[str, Agent],
    seeds: Sequence[int],
    seed: int,
    room: Room | None = None,
    env_id: str = ENV_ID,
    quick: bool = False,
) -> tuple[list[Row], list[Test]]:
    """Rows for 0 to 5 new walls, or for those of `QUICK_MEET`; of the agent in parts for `PARTS_MEET`."""
    setups, rooms = setups_of(seeds, room, env_id)
    # Starts and goals of these walks are none of the episodes'.
    memories = {}
    if "epn" in methods:
        memories["epn"] = methods["epn"].fill_memories(rooms, seed=10**9 + seed)  # type: ignore[attr-defined]
    rows = []
    meet = QUICK_MEET if quick else range(FULL + 1)
    success: dict[str, dict[str, list[float]]] = {"success_rate": {}, "detour_success_rate": {}}
    for method, agent in progress(methods.items(), setting):
        for n_walls in PARTS_MEET if method in PARTS else meet:
            episodes = run(
                share_of(method, with_walls(setups, n_walls), least=1 if quick else 2), agent, memories.get(method)
            )
            if n_walls == 0:
                shortest = [episode.shortest for episode in episodes]
            counted = [episode for episode in episodes if episode.shortest > 0]
            longer = [episode for episode, before in zip(episodes, shortest, strict=True) if episode.shortest > before]
            rows += rows_of(setting, method, n_walls, counted, longer, seed)
            if n_walls == FULL:
                for metric, some in zip(success, (counted, longer), strict=True):
                    success[metric][method] = [float(episode.success) for episode in some]
    tests = [compare(setting, f"{metric}, new_walls {FULL}", found, "eswm") for metric, found in success.items()]
    return rows, [test for some in tests for test in some]


def rows_of_removals(methods: dict[str, Agent], seeds: Sequence[int], seed: int) -> list[Row]:
    """Rows for memories of a wall that is gone, on ways that it made longer or cut off."""
    env = gym.make(ENV_ID).unwrapped
    setups, memories = [], []
    for s in seeds:
        env.reset(seed=s)
        before, rng = env.room.copy(), np.random.default_rng([s, 2])
        now = before.copy()
        now.remove_walls(np.flatnonzero(before.walls).tolist())
        free = np.flatnonzero(~before.walls)
        longer = [(i, j) for i in free for j in free if before.distances_from(i)[j] != now.distances_from(i)[j]]
        if longer:
            start, goal = rng.choice(longer)
            setups.append(Setup(ENV_ID, s, options={"room": now, "start": int(start), "goal": int(goal)}))
            memories.append(before.memory_bank(rng))
    rows = []
    for method, agent in methods.items():
        episodes = run(setups, agent, memories)
        rows += success_rows("wall-removed", method, episodes, seed)
    return rows


def success_rows(setting: str, method: str, episodes: list[Episode], seed: int) -> list[Row]:
    """Success and path optimality."""
    return [
        Row(setting, method, "success_rate", *rate([episode.success for episode in episodes])),
        Row(setting, method, "path_optimality", *mean(optimality(episodes), seed)),
    ]


class WalledEpisode(Episode):
    """An episode in MiniGrid in which a wall appears in the middle of the shortest way from the start.

    It appears after `AFTER` moves, or as soon as the agent does not stand there, if it leaves a way to the goal.

    Attributes:
        wall: cell of the wall, the same for every method; None if any cell would cut the goal off.
        walled: whether it appeared.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        world = self.env.unwrapped
        graph = pose_graph(world.grid_classes)
        way = nx.shortest_path(graph, *(pose_index(SIZE, *pose) for pose in (world.pose, world.goal)))
        cells = dict.fromkeys(tuple(poses(SIZE)[pose, :2].tolist()) for pose in way)
        between = [cell for cell in cells if cell not in (world.pose[:2], world.goal[:2])]
        half = len(between) // 2
        self.wall = next((cell for cell in between[half:] + between[:half] if self._leaves_a_way(cell)), None)
        self.walled = False

    def step(self) -> None:
        super().step()
        world = self.env.unwrapped
        waiting = self.wall is not None and not self.walled and self.steps >= AFTER and not self.done
        if waiting and world.pose[:2] != self.wall and self._leaves_a_way(self.wall):
            world.add_walls([self.wall])
            self.walled, self.shortest = True, self.steps + world.shortest_path_length

    def _leaves_a_way(self, cell: tuple[int, int]) -> bool:
        world = self.env.unwrapped
        world.add_walls([cell])
        found = world.shortest_path_length >= 0
        world.remove_walls([cell])
        return found


def rows_of_walls_on_the_way(seeds: Sequence[int], seed: int, device: str) -> list[Row]:
    """Rows for a wall put in the way while the agent walks; episodes without one are left out."""
    eswm = ESWMAgent.from_pretrained("minigrid", device)
    methods: dict[str, Agent] = {
        "random": RandomAgent(n_actions=3),
        "memory-graph": ViewGraphAgent(),
        "map-only": ESWMAgent(MapOnly().to(device)),
        "eswm-no-editing": ESWMAgent(eswm.model, adapt=False),
        "eswm": eswm,
    }
    rows = []
    for method in progress(methods, "minigrid"):
        episodes = run([Setup(MINIGRID, s) for s in seeds], methods[method], kind=WalledEpisode)
        walled = [episode for episode in episodes if episode.walled]  # type: ignore[attr-defined]
        rows += success_rows("minigrid", method, walled, seed)
    return rows


def main(argv: list[str] | None = None) -> list[Row]:
    options = agent_parser(__doc__, BySize(0.6, 3.5, 9), (10, 80, 200), "in each setting, for each number of new walls")
    args = options.parse_args(argv)
    n = args.episodes
    eswm = ESWMAgent(find_hex_model(args.model, args.device))
    a2c = A2CLSTMAgent.from_pretrained(device=args.device)
    untaught: dict[str, Agent] = {"memory-graph": MemoryGraphAgent(), "path-integration": PathIntegrationAgent()}
    epn = {"epn": EPNAgent.from_pretrained(device=args.device)}
    eswms: dict[str, Agent] = {"eswm-no-editing": ESWMAgent(eswm.model, adapt=False), "eswm": eswm}
    parts = agents_in_part(eswm.model)
    seeds = room_seeds(args.seed, n)
    some, fewer = seeds[: 5 if args.quick else max(10, n // 3)], seeds[: max(2, n // 3)]
    everyone = {**untaught, **epn, **parts, **eswms}
    rows, tests = rows_of_changes("random-wall-19", everyone, seeds, args.seed, quick=args.quick)
    for setting, methods, chosen, room, env_id in (
        ("random-wall-37", {**untaught, **parts, **eswms}, fewer, None, "ESWM-RandomWall-v0"),
        ("trained-room", {**untaught, **epn, "a2c-lstm": a2c, **eswms}, seeds, a2c.room, ENV_ID),
    ):
        more_rows, more_tests = rows_of_changes(setting, methods, chosen, args.seed, room, env_id, args.quick)
        rows, tests = rows + more_rows, tests + more_tests
    rows += rows_of_removals({"memory-graph": untaught["memory-graph"], **eswms}, seeds, args.seed)
    rows += rows_of_walls_on_the_way(some, args.seed, args.device)
    return finish(args, "adapt", rows, tests, replay=f"--env {ENV_ID} --seed {seeds[0]} --wall-at 1")


if __name__ == "__main__":
    main()
