"""How fast the parts are, each beside something familiar in the same run.

Figures of different machines do not compare; the ratios of one run do. Everything runs on one thread unless --device
names a GPU for the model.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import networkx as nx
import numpy as np
import torch
from report import Row, parser, print_table, write_json

import eswm_gym  # noqa: F401  registers the environments
from eswm_gym.rooms import (
    RoomConfig,
    draw_queries,
    generate_rooms,
    hex_lattice,
    random_regions,
    random_walls,
    spanning_banks,
)
from eswm_gym.world_model import MASKED, Transformer
from eswm_gym.world_model.data import ProblemStream
from eswm_gym.world_model.presets import PRESETS

ROOM_BATCH, QUERIES = 512, 48
N_STATES, N_ACTIONS, N_MEMORIES = 32, 6, 35


def seconds_per_call(call: Callable[[], object], budget: float) -> float:
    """The fastest of several calls within a time budget, after one call to warm up."""
    call()
    times: list[float] = []
    end = time.perf_counter() + budget
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def networkx_bank(rng: np.random.Generator, config: RoomConfig) -> list[tuple[int, int, int]]:
    """The reference: one room and its minimal spanning bank, written plainly with networkx."""
    lattice = hex_lattice(config.radius)
    states = rng.permutation(len(config.states))[: lattice.n_locations]
    wall = set(np.flatnonzero(random_walls(rng, 1, config)[0]).tolist())
    size = rng.integers(int(config.hidden * lattice.n_locations) + 1, size=1)
    hidden = set(np.flatnonzero(random_regions(rng, size, lattice)[0]).tolist())
    graph = nx.Graph()
    for source in range(lattice.n_locations):
        for action, end in enumerate(lattice.neighbors[source, :3]):
            if end >= 0 and not {source, int(end)} & (wall | hidden):
                graph.add_edge(source, int(end), weight=rng.random(), action=action, source=source)
    bank = []
    for a, b, edge in nx.minimum_spanning_edges(graph):
        end = b if edge["source"] == a else a
        moves = (edge["source"], edge["action"], end), (end, edge["action"] + 3, edge["source"])
        source, action, end = moves[rng.integers(2)]
        bank.append((int(states[source]), action, int(states[end])))
    for location in wall - hidden:
        sides = [(a, n) for a, n in enumerate(lattice.neighbors[location]) if n in graph]
        if sides:
            action, source = sides[rng.integers(len(sides))]
            bank.append((int(states[source]), (action + 3) % 6, int(states[source])))
    rng.shuffle(bank)
    return bank


def room_rows(rng: np.random.Generator, budget: float) -> list[Row]:
    """Rooms with banks (and queries) a second at radius 3."""
    config = RoomConfig.random_wall(3)

    def batch() -> None:
        banks = spanning_banks(rng, generate_rooms(rng, ROOM_BATCH, config))
        banks.transitions()
        draw_queries(rng, banks, QUERIES)

    ours = ROOM_BATCH / seconds_per_call(batch, budget)
    plain = 50 / seconds_per_call(lambda: [networkx_bank(rng, config) for _ in range(50)], budget)
    return [
        Row("random-wall-37", "numpy-batched", "rooms_per_second", ours),
        Row("random-wall-37", "networkx-without-queries", "rooms_per_second", plain),
        Row("random-wall-37", "numpy-batched/networkx", "ratio", ours / plain),
    ]


def environment_rows(seed: int, budget: float) -> list[Row]:
    """Steps a second with random actions, resets included."""
    taxi = max(id for id in gym.registry if id.startswith("Taxi-v"))
    rates = {}
    for env_id in ("ESWM-RandomWall-v0", "ESWM-RandomWallExplore-v0", taxi, "MiniGrid-Empty-8x8-v0"):
        env = gym.make(env_id)
        env.reset(seed=seed)
        actions = np.random.default_rng(seed).integers(env.action_space.n, size=2000)  # type: ignore[attr-defined]

        def steps(env=env, actions=actions) -> None:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()

        rates[env_id] = len(actions) / seconds_per_call(steps, budget)
        env.close()
    rows = [Row("environments", env_id, "steps_per_second", value) for env_id, value in rates.items()]
    ours = rates["ESWM-RandomWall-v0"]
    return rows + [
        Row("environments", f"ESWM-RandomWall-v0/{env_id}", "ratio", ours / rates[env_id])
        for env_id in (taxi, "MiniGrid-Empty-8x8-v0")
    ]


def table_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Seconds to imagine one room's whole table: 32 states times 6 actions, 35 memories, float32."""
    rng = np.random.default_rng(seed)
    bank = np.full((1, N_MEMORIES, 3), MASKED)
    while (bank[0, -1] < 0).any():
        found = spanning_banks(rng, generate_rooms(rng, 1, RoomConfig.random_wall(3, hidden=0.0))).transitions()
        bank[:, : found.shape[1]] = found[:, :N_MEMORIES]
    memories = torch.from_numpy(bank).to(device)
    source = torch.arange(N_STATES, device=device).repeat_interleave(N_ACTIONS)[None]
    action = torch.arange(N_ACTIONS, device=device).repeat(N_STATES)[None]
    config = PRESETS["random-wall"].model
    times = {}
    for attention in ("cross", "joint"):
        model = Transformer(replace(config, query_attention=attention)).eval().to(device)

        def whole(model=model) -> None:
            model.imagine(model.encode(memories), source, action).cpu()

        times[f"{attention}-batched"] = _timed(whole, budget)
        if attention == "cross":
            encoded = model.encode(memories)
            times["cross-cached"] = _timed(lambda m=model, e=encoded: m.imagine(e, source, action).cpu(), budget)
        else:

            def one_by_one(model=model) -> None:
                encoded = model.encode(memories)
                for i in range(source.shape[1]):
                    model.imagine(encoded, source[:, i : i + 1], action[:, i : i + 1]).cpu()

            times["joint-one-by-one"] = _timed(one_by_one, budget)
    rows = [Row("imagined-table", method, "seconds", value) for method, value in times.items()]
    for method in ("joint-batched", "joint-one-by-one"):
        rows.append(Row("imagined-table", f"{method}/cross-cached", "ratio", times[method] / times["cross-cached"]))
    return rows


@torch.inference_mode()
def _timed(call: Callable[[], object], budget: float) -> float:
    return seconds_per_call(call, budget)


def training_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Bank-query pairs a second through forward and backward pass, compiled, bfloat16."""
    preset = PRESETS["random-wall"]
    model = Transformer(preset.model).to(device)
    for block in model.blocks:
        block.compile(dynamic=False)
    source = preset.sources[0]
    stream = ProblemStream((source,), preset.model.n_states, preset.rooms, preset.queries, seed)
    memories, query, target, masked = (tensor.to(device) for tensor in stream.batch(0))

    def step() -> None:
        with torch.autocast(device, torch.bfloat16):
            loss = model(memories, query).loss(target, masked)
        loss.backward()
        model.zero_grad()
        loss.item()

    pairs = preset.rooms * preset.queries
    return [Row("training", "random-wall", "pairs_per_second", pairs / seconds_per_call(step, budget))]


def main(argv: list[str] | None = None) -> list[Row]:
    args = parser(__doc__).parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    budget = 0.1 if args.quick else 3.0
    rows = room_rows(np.random.default_rng(args.seed), budget)
    rows += environment_rows(args.seed, budget)
    rows += table_rows(args.seed, args.device, budget)
    if not args.quick:
        rows += training_rows(args.seed, args.device, budget)
    print_table(rows)
    if args.json:
        write_json(args.json, "speed", args.seed, rows)
    return rows


if __name__ == "__main__":
    main()
