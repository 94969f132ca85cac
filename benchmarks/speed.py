"""How fast the parts are, each beside something familiar in the same run.

Figures of different machines do not compare; the ratios of one run do. Everything runs on one thread; --device is that
of hexagonal rooms' tables and of training. EnvPool, xland-minigrid and navix stand beside our environments where they
are installed: `pip install envpool xminigrid navix`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import torch
from common.cli import BySize, Parser, finish
from common.plots import draw_bars
from common.progress import progress
from common.rows import Row
from common.timing import seconds_per_call
from minigrid.minigrid_env import MiniGridEnv
from speed_models import act_rows, memory_rows, planning_rows, table_rows, training_rows, view_table_rows
from speed_peers import envpool_rates, jax_rates, networkx_bank

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.rooms import RoomConfig, draw_queries, generate_rooms, spanning_banks
from eswm_gym.rooms.grid import (
    SIZE,
    GridBatch,
    GridConfig,
    free_poses,
    generate_grids,
    poses,
    targets_of,
    views_of,
)

ROOM_BATCH, QUERIES = 512, 48
VECTOR_ROOMS, SYNC_ROOMS = 1024, 64
VIEW_ROOMS = 256
# What is wanted of one core.
BESIDE = """
rooms: at least 15,000 a second are wanted
vector-environments: at least 1,000,000 steps a second of hexagonal rooms are wanted, 300,000 of MiniGrid rooms
environments: at least as many steps as Taxi are wanted while exploring
views: at least 50 times MiniGrid's own rate is wanted
imagined-table: 0.008 s is wanted; act: 0.010 s in the median, 0.030 s at the 99th percentile
training: at least 15,000 pairs a second are wanted"""


def room_rows(rng: np.random.Generator, budget: float) -> list[Row]:
    """Rooms with banks (and queries) a second at radius 3."""
    config = RoomConfig.random_wall(3)

    def batch() -> None:
        banks = spanning_banks(rng, generate_rooms(rng, ROOM_BATCH, config))
        banks.transitions()
        draw_queries(rng, banks, QUERIES)

    plain_rng = random.Random(int(rng.integers(2**31)))

    def one_by_one() -> None:
        for _ in range(100):
            networkx_bank(plain_rng, config)

    seconds = seconds_per_call({"batch": batch, "one by one": one_by_one}, budget)
    ours, plain = ROOM_BATCH / seconds["batch"], 100 / seconds["one by one"]
    return [
        Row("random-wall-37", "numpy-batched", "rooms_per_second", ours),
        Row("random-wall-37", "networkx-without-queries", "rooms_per_second", plain),
        Row("random-wall-37", "numpy-batched/networkx", "ratio", ours / plain),
    ]


def environment_rows(seed: int, budget: float) -> list[Row]:
    """Steps a second with random actions, resets included."""
    taxi = max(id for id in gym.registry if id.startswith("Taxi-v"))
    calls: dict[str, Callable[[], object]] = {}
    n_steps = 1000
    ours = ("ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0", "ESWM-MiniGrid-v0")
    for env_id in (*ours, taxi, "MiniGrid-Empty-8x8-v0"):
        env = gym.make(env_id)
        env.reset(seed=seed)
        actions = np.random.default_rng(seed).integers(env.action_space.n, size=n_steps)  # type: ignore[attr-defined]

        def steps(env=env, actions=actions) -> None:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

        calls[env_id] = steps
    rates = {env_id: n_steps / seconds for env_id, seconds in seconds_per_call(calls, budget).items()}
    rows = [Row("environments", env_id, "steps_per_second", value) for env_id, value in rates.items()]
    return rows + [
        Row("environments", f"{ours}/{theirs}", "ratio", rates[ours] / rates[theirs])
        for ours, theirs in (
            ("ESWM-RandomWall-v0", taxi),
            ("ESWM-RandomWallExplore-v0", taxi),
            ("ESWM-MiniGrid-v0", "MiniGrid-Empty-8x8-v0"),
        )
    ]


def vector_rows(seed: int, budget: float) -> list[Row]:
    """Steps a second of many rooms with random actions, resets included, beside Gymnasium's vector environment.

    Many steps are one call, since our rooms draw several episodes at a time. The steps of a `SyncVectorEnv` take as
    long in few rooms as in many.
    """
    n_steps = 600 if budget >= 1 else 40
    rows = []
    for env_id in ("ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0", "ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0"):
        calls: dict[str, Callable[[], object]] = {}
        taken: dict[str, int] = {}
        for kind, mode, n_rooms in (("rooms", "vector_entry_point", VECTOR_ROOMS), ("sync", "sync", SYNC_ROOMS)):
            envs = gym.make_vec(env_id, n_rooms, mode)
            envs.reset(seed=seed)
            steps = n_steps if mode == "vector_entry_point" else 40
            actions = np.random.default_rng(seed).integers(envs.single_action_space.n, size=(steps, n_rooms))

            def walk(envs=envs, actions=actions) -> None:
                for action in actions:
                    envs.step(action)

            calls[f"{kind}-{n_rooms}"], taken[f"{kind}-{n_rooms}"] = walk, actions.size
        rates = {name: taken[name] / seconds for name, seconds in seconds_per_call(calls, budget).items()}
        rows += [Row("vector-environments", f"{env_id}-{name}", "steps_per_second", rates[name]) for name in rates]
        ours, theirs = rates.values()
        rows.append(Row("vector-environments", f"{env_id}-{'/'.join(rates)}", "ratio", ours / theirs))
    return rows


def view_rows(seed: int, budget: float) -> list[Row]:
    """MiniGrid's views: new layouts, where each action leads and what each pose shows, beside the views alone."""
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    env.reset(seed=seed)
    room = GridBatch.of(env.grid_classes[None])
    where = poses(SIZE)[room.free[0]].tolist()

    def ours() -> GridBatch:
        grids = generate_grids(np.random.default_rng(seed), VIEW_ROOMS, GridConfig())
        views_of(grids), targets_of(grids)
        return grids

    def theirs() -> None:
        for x, y, env.agent_dir in where:
            env.agent_pos = x, y
            MiniGridEnv.gen_obs(env)

    times = seconds_per_call({"batched": ours, "minigrid-gen-obs": theirs}, budget)
    floor = int(free_poses(ours()).sum())
    rates = {"batched": floor / times["batched"], "minigrid-gen-obs": len(where) / times["minigrid-gen-obs"]}
    rows = [Row("views", method, "views_per_second", value) for method, value in rates.items()]
    faster = rates["batched"] / rates["minigrid-gen-obs"]
    return [*rows, Row("views", "batched/minigrid-gen-obs", "ratio", faster)]


def peer_rows(rows: list[Row], seed: int, budget: float) -> list[Row]:
    """Environments that others wrote, and how much faster ours are; `rows` are those of `vector_rows`."""
    rates = envpool_rates(seed, budget) | jax_rates(seed, budget)
    found = [Row("vector-environments", name, "steps_per_second", rate) for name, rate in rates.items()]
    fastest = {row.method: row.value for row in rows if row.metric == "steps_per_second"}
    native = {"ESWM-MiniGrid-v0-native": fastest[f"ESWM-MiniGrid-v0-rooms-{VECTOR_ROOMS}"]}
    native["ESWM-RandomWall-v0-native"] = fastest[f"ESWM-RandomWall-v0-rooms-{VECTOR_ROOMS}"]
    found += [Row("vector-environments", name, "steps_per_second", rate) for name, rate in native.items()]
    for ours, theirs, short in (
        ("ESWM-MiniGrid-v0-native", "envpool-MiniGrid-FourRooms-v0", "envpool"),
        ("ESWM-MiniGrid-v0-native", "xminigrid", "xminigrid"),
        ("ESWM-MiniGrid-v0-native", "navix", "navix"),
        ("ESWM-RandomWall-v0-native", "envpool-Taxi-v3", "envpool-taxi"),
    ):
        if theirs in rates:
            found.append(Row("vector-environments", f"{ours}/{short}", "ratio", native[ours] / rates[theirs]))
    return found


def main(argv: list[str] | None = None) -> list[Row]:
    args = Parser(__doc__, BySize(0.3, 2, 5)).parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    budget = BySize(0.1, 1, 3).of(args)
    seed, rng = args.seed, np.random.default_rng
    parts: dict[str, Callable[[], list[Row]]] = {
        "rooms": lambda: room_rows(rng(seed), budget),
        "environments": lambda: environment_rows(seed, budget),
        "vector environments": lambda: vector_rows(seed, budget),
        "views": lambda: view_rows(seed, budget),
        "tables": lambda: table_rows(seed, args.device, budget),
        "tables of views": lambda: view_table_rows(seed, budget),
        "planning": lambda: planning_rows(seed, budget),
        "steps of the agent": lambda: act_rows(seed, 1 if args.quick else 20),
    }
    if not args.quick:
        parts |= {"training": lambda: training_rows(seed, args.device, budget), "memory": memory_rows}
    rows: list[Row] = []
    for name in progress(parts, "speed"):
        rows += parts[name]()
        if name == "vector environments" and not args.quick:
            rows += peer_rows(rows, seed, budget)
    ratios = {"ratio": [row for row in rows if row.metric == "ratio"]}
    finish(args, "speed", rows, draw=lambda folder: draw_bars(ratios, folder, "speed"))
    print(BESIDE)
    return rows


if __name__ == "__main__":
    main()
