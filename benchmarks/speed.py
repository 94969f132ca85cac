"""How fast the parts are, each beside something familiar in the same run.

Figures of different machines do not compare; the ratios of one run do. Everything runs on one thread unless --device
names a GPU for the model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import networkx as nx
import numpy as np
import torch
from common.cli import Parser, finish
from common.plots import draw_bars
from common.rows import Row
from minigrid.minigrid_env import MiniGridEnv

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.agents import MemoryBank
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.agents.states import ViewAlbum
from eswm_gym.agents.views import imagine_views
from eswm_gym.rooms import RoomConfig, draw_queries, generate_rooms, hex_lattice, spanning_banks
from eswm_gym.rooms.grid import (
    SIZE,
    GridBatch,
    GridConfig,
    cover_bank,
    free_poses,
    generate_grids,
    poses,
    targets_of,
    views_of,
)
from eswm_gym.world_model import MASKED, Transformer, ViewModel, load_pretrained
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.stream import ProblemStream, to_tensors

ROOM_BATCH, QUERIES = 512, 48
VECTOR_ROOMS, SYNC_ROOMS = 4096, 64
VIEW_ROOMS = 256
N_STATES, N_ACTIONS, N_MEMORIES = 32, 6, 35
# What a prototype took on one core of a similar machine, and what is wanted.
BESIDE = """
rooms: at least 15,000 a second are wanted
vector-environments: at least 1,000,000 steps a second are wanted
views: at least 50 times MiniGrid's own rate is wanted
imagined-table: a prototype of 6 layers took 0.016 s (cross), 0.347 s (joint-batched), 0.798 s (joint-one-by-one);
0.010 s is wanted"""


def seconds_per_call(calls: dict[str, Callable[[], object]], budget: float) -> dict[str, float]:
    """The fastest of several calls of each, after one to warm up, within a time budget for each.

    They take turns, so that what else the machine does slows all of them.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    while any(sum(taken) < budget for taken in times.values()):
        for name, call in calls.items():
            if sum(times[name]) < budget:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


def networkx_bank(rng: random.Random, config: RoomConfig) -> list[tuple[int, int, int]]:
    """The reference: one room and its minimal spanning bank, as plain Python and networkx would have it."""
    neighbors = _neighbors(config.radius)
    n = len(neighbors)
    states = rng.sample(config.states, n)
    wall = _plain_wall(rng, config, neighbors)
    hidden = _plain_region(rng, int(config.hidden * n), neighbors)
    free = set(range(n)) - wall - hidden
    graph = nx.Graph()
    graph.add_nodes_from(free)
    for source in free:
        for action, end in enumerate(neighbors[source][:3]):
            if end in free:
                graph.add_edge(source, end, weight=rng.random(), move=(source, action, end))
    bank = []
    for _, _, move in nx.minimum_spanning_edges(graph):
        source, action, end = move["move"]
        if rng.random() < 0.5:
            source, action, end = end, action + 3, source
        bank.append((states[source], action, states[end]))
    for location in wall - hidden:
        bumps = [(end, (action + 3) % 6) for action, end in enumerate(neighbors[location]) if end in free]
        if bumps:
            source, action = rng.choice(bumps)
            bank.append((states[source], action, states[source]))
    rng.shuffle(bank)
    return bank


@cache
def _neighbors(radius: int) -> list[list[int]]:
    return hex_lattice(radius).neighbors.tolist()


def _plain_wall(rng: random.Random, config: RoomConfig, neighbors: list[list[int]]) -> set[int]:
    """A mostly straight run of locations, grown from both ends, and anew if it does not fit."""
    if rng.random() < config.no_wall:
        return set()
    length = rng.randint(*config.wall_lengths)
    wall: set[int] = set()
    while len(wall) < length:
        tip, direction = rng.randrange(len(neighbors)), rng.randrange(6)
        wall, seed = {tip}, tip
        for side in (direction, direction + 3):
            tip = seed
            while len(wall) < length:
                turn = 0 if rng.random() < config.straightness else rng.choice((-1, 1))
                tip = neighbors[tip][(side + turn) % 6]
                if tip < 0 or tip in wall:
                    break
                wall.add(tip)
    return wall


def _plain_region(rng: random.Random, largest: int, neighbors: list[list[int]]) -> set[int]:
    """A connected region of random size, grown by a random location of its rim at a time."""
    region: set[int] = set()
    rim = [rng.randrange(len(neighbors))]
    for _ in range(rng.randint(0, largest)):
        region.add(rim.pop(rng.randrange(len(rim))))
        rim = list({end for location in region for end in neighbors[location] if end >= 0} - region)
    return region


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
    for env_id in ("ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0", taxi, "MiniGrid-Empty-8x8-v0"):
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
    ours = rates["ESWM-RandomWall-v0"]
    return rows + [
        Row("environments", f"ESWM-RandomWall-v0/{env_id}", "ratio", ours / rates[env_id])
        for env_id in (taxi, "MiniGrid-Empty-8x8-v0")
    ]


def vector_rows(seed: int, budget: float) -> list[Row]:
    """Steps a second of many rooms with random actions, resets included, beside Gymnasium's vector environment.

    Many steps are one call, since our rooms draw several episodes at a time. The steps of a `SyncVectorEnv` take as
    long in few rooms as in many.
    """
    n_steps = 600 if budget >= 1 else 40
    rows = []
    for env_id in ("ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0"):
        kinds = {
            f"rooms-{VECTOR_ROOMS}": ("vector_entry_point", VECTOR_ROOMS),
            f"sync-{SYNC_ROOMS}": ("sync", SYNC_ROOMS),
        }
        calls: dict[str, Callable[[], object]] = {}
        for name, (mode, n_rooms) in kinds.items():
            envs = gym.make_vec(env_id, n_rooms, mode)
            envs.reset(seed=seed)
            steps = n_steps if mode == "vector_entry_point" else 40
            actions = np.random.default_rng(seed).integers(N_ACTIONS, size=(steps, n_rooms))

            def walk(envs=envs, actions=actions) -> None:
                for action in actions:
                    envs.step(action)

            calls[name] = walk
            kinds[name] = (mode, actions.size)
        seconds = seconds_per_call(calls, budget)
        rates = {name: kinds[name][1] / seconds[name] for name in calls}
        rows += [Row("vector-environments", f"{env_id}-{name}", "steps_per_second", rates[name]) for name in rates]
        ours, theirs = rates.values()
        rows.append(Row("vector-environments", f"{env_id}-{'/'.join(rates)}", "ratio", ours / theirs))
    return rows


def view_rows(rng: np.random.Generator, budget: float) -> list[Row]:
    """MiniGrid's views: new layouts, where each action leads and what each pose shows, beside the views alone."""
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    env.reset(seed=0)
    room = GridBatch.of(env.grid_classes[None])
    where = poses(SIZE)[room.free[0]].tolist()

    def ours() -> None:
        grids = generate_grids(rng, VIEW_ROOMS, GridConfig())
        views_of(grids), targets_of(grids)

    def theirs() -> None:
        for x, y, env.agent_dir in where:
            env.agent_pos = x, y
            MiniGridEnv.gen_obs(env)

    times = seconds_per_call({"batched": ours, "minigrid-gen-obs": theirs}, budget)
    floor = int(free_poses(generate_grids(rng, VIEW_ROOMS, GridConfig())).sum())
    rates = {"batched": floor / times["batched"], "minigrid-gen-obs": len(where) / times["minigrid-gen-obs"]}
    rows = [Row("views", method, "views_per_second", value) for method, value in rates.items()]
    faster = rates["batched"] / rates["minigrid-gen-obs"]
    return [*rows, Row("views", "batched/minigrid-gen-obs", "ratio", faster)]


def table_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Seconds to imagine one room's whole table: 32 states times 6 actions, 35 memories, float32."""
    rng = np.random.default_rng(seed)
    bank = np.full((1, N_MEMORIES, 3), MASKED)
    while (bank[0, -1] < 0).any():
        found = spanning_banks(rng, generate_rooms(rng, 1, RoomConfig.random_wall(3, hidden=0.0))).transitions()
        bank[:, : found.shape[1]] = found[:, :N_MEMORIES]
    memories = torch.from_numpy(bank).to(device)
    source = torch.arange(N_STATES, device=device).repeat_interleave(N_ACTIONS)[None, :, None]
    action = torch.arange(N_ACTIONS, device=device).repeat(N_STATES)[None]
    config = PRESETS["random-wall"].model
    calls: dict[str, Callable[[], object]] = {}
    for attention in ("cross", "joint"):
        model = Transformer(replace(config, query_attention=attention)).eval().to(device)

        def whole(model=model) -> None:
            model.imagine(model.encode(memories), source, action).cells.cpu()

        calls[f"{attention}-batched"] = whole
        if attention == "cross":
            with torch.inference_mode():
                encoded = model.encode(memories)
            calls["cross-cached"] = lambda m=model, e=encoded: m.imagine(e, source, action).cells.cpu()
        else:

            def one_by_one(model=model) -> None:
                encoded = model.encode(memories)
                for i in range(source.shape[1]):
                    model.imagine(encoded, source[:, i : i + 1], action[:, i : i + 1]).cells.cpu()

            calls["joint-one-by-one"] = one_by_one
    with torch.inference_mode():
        times = seconds_per_call(calls, budget)
    rows = [Row("imagined-table", method, "seconds", value) for method, value in times.items()]
    for method in ("joint-batched", "joint-one-by-one"):
        rows.append(Row("imagined-table", f"{method}/cross-cached", "ratio", times[method] / times["cross-cached"]))
    return rows


def view_table_rows(seed: int, budget: float) -> list[Row]:
    """Seconds to read the bank of one of MiniGrid's rooms, and to read it and imagine the room's whole table."""
    bank = cover_bank(generate_grids(np.random.default_rng(seed), 1, GridConfig())[0], np.random.default_rng(seed))
    memories = torch.from_numpy(bank[None])
    models: dict[str, ViewModel] = {"eswm": load_pretrained("minigrid"), "map-only": MapOnly()}  # type: ignore[dict-item]
    calls: dict[str, Callable[[], object]] = {}
    for method, model in models.items():

        def table(model=model) -> None:
            album = ViewAlbum()
            imagine_views(model, [MemoryBank(album.transitions(bank))], [album])

        calls |= {f"minigrid-bank {method}": lambda m=model: m.encode(memories), f"minigrid-table {method}": table}
    with torch.inference_mode():
        times = seconds_per_call(calls, budget)
    rows = [Row(*name.split(), "seconds", value) for name, value in times.items()]
    for setting in ("minigrid-bank", "minigrid-table"):
        slower = times[f"{setting} eswm"] / times[f"{setting} map-only"]
        rows.append(Row(setting, "eswm/map-only", "ratio", slower))
    return rows


def training_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Bank-query pairs a second through forward and backward pass, compiled, bfloat16."""
    preset = PRESETS["random-wall"]
    model = Transformer(preset.model).to(device)
    for block in model.blocks:
        block.compile(dynamic=False)
    source = preset.sources[0]
    stream = ProblemStream((source,), preset.rooms, preset.queries, seed)
    problems = to_tensors(stream.batch(0), device)

    def step() -> None:
        with torch.autocast(device, torch.bfloat16):
            loss = model(problems.memories, problems.query).loss(problems)
        loss.backward()
        model.zero_grad()
        loss.item()

    pairs = preset.rooms * preset.queries
    return [
        Row("training", "random-wall", "pairs_per_second", pairs / seconds_per_call({"step": step}, budget)["step"])
    ]


def main(argv: list[str] | None = None) -> list[Row]:
    args = Parser(__doc__).parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    budget = 0.1 if args.quick else 3.0
    rows = room_rows(np.random.default_rng(args.seed), budget)
    rows += environment_rows(args.seed, budget)
    rows += vector_rows(args.seed, budget)
    rows += view_rows(np.random.default_rng(args.seed), budget)
    rows += table_rows(args.seed, args.device, budget)
    rows += view_table_rows(args.seed, budget)
    if not args.quick:
        rows += training_rows(args.seed, args.device, budget)
    ratios = {"ratio": [row for row in rows if row.metric == "ratio"]}
    finish(args, "speed", rows, draw=lambda folder: draw_bars(ratios, folder, "speed"))
    print(BESIDE)
    return rows


if __name__ == "__main__":
    main()
