"""How fast models and agents are, and how much memory everything takes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import gymnasium as gym
import networkx as nx
import numpy as np
import torch
from common.cli import room_seeds
from common.models import find_model
from common.rows import Row
from common.timing import seconds_per_call
from torch.utils.flop_counter import FlopCounterMode

from eswm_gym.agents import ESWMAgent, MemoryBank
from eswm_gym.agents.baselines import MapOnly
from eswm_gym.agents.planning import imagine_tables, search
from eswm_gym.agents.states import ViewAlbum
from eswm_gym.agents.views import imagine_views
from eswm_gym.rooms import Room, RoomConfig, generate_rooms, spanning_banks
from eswm_gym.rooms.grid import GridConfig, cover_bank, generate_grids
from eswm_gym.world_model import MASKED, Transformer, ViewModel, load_pretrained
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.stream import ProblemStream, to_tensors

N_STATES, N_ACTIONS, N_MEMORIES = 32, 6, 35
MOMENTS = 12  # of a training run
KNOWN = 5  # states: steps of the agent are sorted by how many such fives of states it knows
# The paper trains on 600 to 900 pairs of bank and query a second on an A100, by its hours and queries.
PAPER_RATE = 900
# What takes memory, each in a process of its own.
TRAIN = """
import tempfile
from eswm_gym.world_model.train import main
with tempfile.TemporaryDirectory() as out:
    main(["random-wall", "--steps", "3", "--device", "cpu", "--no-compile", "--eval-rooms", "1", "--out", out])"""
MANY = "import gymnasium, eswm_gym; envs = gymnasium.make_vec('{}', 4096); envs.reset(seed=0)"
RESIDENT = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"  # kB
MEMORY = {
    "python": "",
    "import": "import eswm_gym",
    "agent": "from eswm_gym.agents import ESWMAgent; agent = ESWMAgent.from_pretrained('random-wall')",
    "rooms-4096": MANY.format("ESWM-RandomWall-v0"),
    "minigrid-rooms-4096": MANY.format("ESWM-MiniGrid-v0"),
    "training": TRAIN,
}


def table_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Seconds to imagine one room's whole table: 32 states times 6 actions, 35 memories, float32. `share_of_peak`: its
    floating-point operations, beside those of a product of the same shapes."""
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
    product, operations = product_of(N_STATES * N_ACTIONS, config.dim, device, torch.float32)
    with torch.inference_mode():
        with FlopCounterMode(display=False) as counter:
            calls["cross-cached"]()
        times = seconds_per_call({**calls, "product": product}, budget)
    rows = [Row("imagined-table", method, "seconds", times[method]) for method in calls]
    share = counter.get_total_flops() / times["cross-cached"] / (operations / times["product"])
    rows.append(Row("imagined-table", "cross-cached", "share_of_peak", share))
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


def planning_rows(seed: int, budget: float) -> list[Row]:
    """Seconds to plan a way of a room: from the bank (read, imagine all, search), and by networkx on the true graph."""
    rng = np.random.default_rng(seed)
    batch = generate_rooms(rng, 1, RoomConfig.random_wall(3, hidden=0.0))
    room, model = Room.from_batch(batch, 0), find_model("random-wall")
    rows_of_bank = spanning_banks(rng, batch).transitions()[0]
    bank = MemoryBank(rows_of_bank[rows_of_bank[:, 1] >= 0].tolist())
    table = imagine_tables(model, [bank])[0]
    start = int(np.flatnonzero(~room.walls)[0])
    goal = int(room.distances_from(start).argmax())
    graph = nx.Graph((here, there) for here, ends in enumerate(room.targets.tolist()) for there in ends)
    ends = int(room.states[start]), int(room.states[goal])
    calls: dict[str, Callable[[], object]] = {
        "table": lambda: imagine_tables(model, [bank], facts=[bank]),
        "search": lambda: search(table, *ends),
        "networkx-on-the-true-graph": lambda: nx.shortest_path(graph, start, goal),
    }
    times = seconds_per_call(calls, budget)
    rows = [Row("planning", method, "seconds", value) for method, value in times.items()]
    faster = times["networkx-on-the-true-graph"]
    return rows + [Row("planning", f"{name}/networkx", "ratio", times[name] / faster) for name in ("table", "search")]


def act_rows(seed: int, n_rooms: int) -> list[Row]:
    """Seconds that the agent takes for a step of exploring, and how they grow with what it knows."""
    agent, env = ESWMAgent.from_pretrained("random-wall"), gym.make("ESWM-RandomWallExplore-v0")
    taken: list[float] = []
    known: list[int] = []
    for i, room in enumerate(room_seeds(seed, n_rooms + 1)):
        if i == 1:  # the first room was to warm up
            taken, known = [], []
        obs, info = env.reset(seed=room)
        agent.reset(obs, info)
        done = False
        while not done:
            start = time.perf_counter()
            action = agent.act(obs, info)
            taken.append(time.perf_counter() - start)
            known.append(len(agent.memory.states))
            before = obs
            obs, _, terminated, truncated, info = env.step(action)
            agent.observe(before, action, obs, info)
            done = terminated or truncated
    seconds, at = np.array(taken), KNOWN * (np.array(known) // KNOWN)
    rows = [
        Row("act", "eswm", "median_seconds", float(np.median(seconds)), n=len(seconds)),
        Row("act", "eswm", "p99_seconds", float(np.quantile(seconds, 0.99)), n=len(seconds)),
    ]
    for n in np.unique(at).tolist():
        some = seconds[at == n]
        rows.append(Row("act", "eswm", "seconds", float(np.median(some)), n=len(some), along="states", at=n))
    return rows


def training_rows(seed: int, device: str, budget: float) -> list[Row]:
    """Bank-query pairs a second, drawn, passed forth and back and learned from, compiled, bfloat16. A model begins with
    fewer loops, which are faster: the mean over the time of a run. `share_of_peak`: their floating-point operations,
    beside those of a product of the same shapes."""
    from eswm_gym.world_model.training import loops_at, make_optimizers

    preset = PRESETS["random-wall"]
    torch.manual_seed(seed)
    model = Transformer(preset.model).to(device)
    stream = iter(ProblemStream((preset.sources[0],), preset.rooms, preset.queries, seed))
    problems = to_tensors(next(stream), device)
    through_a_run = [loops_at(i / MOMENTS, model.loops, preset.all_loops_from) for i in range(MOMENTS)]
    done: dict[int, int] = {}  # floating-point operations of a step
    for model.loops in set(through_a_run):
        with FlopCounterMode(display=False) as counter:
            model(problems.memories, problems.query).loss(problems).backward()
        done[model.loops] = counter.get_total_flops()
    optimizers = make_optimizers(model, 1e-4)
    for block in model.blocks:
        block.compile(dynamic=False)

    def step(loops: int) -> None:
        model.loops = loops
        problems = to_tensors(next(stream), device)
        with torch.autocast(device, torch.bfloat16):
            loss = model(problems.memories, problems.query).loss(problems)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        loss.item()

    tokens = preset.rooms * (preset.sources[0].capacity + preset.queries)
    calls: dict[str, Callable[[], object]] = {f"{loops} loops": partial(step, loops) for loops in done}
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        calls[name], operations = product_of(tokens, preset.model.dim, device, dtype)
    seconds = seconds_per_call(calls, budget)
    taken = {loops: seconds[f"{loops} loops"] for loops in done}
    rate = preset.rooms * preset.queries * np.mean([1 / taken[loops] for loops in through_a_run])
    speed = np.mean([done[loops] / taken[loops] for loops in through_a_run])
    return [
        Row("training", "random-wall", "pairs_per_second", rate),
        Row("training", "random-wall/paper-on-an-a100", "ratio", rate / PAPER_RATE),
        *(
            Row("training", f"product-{name}", "gflop_per_second", operations / seconds[name] / 1e9)
            for name in ("float32", "bfloat16")
        ),
        Row("training", "random-wall", "gflop_per_second", speed / 1e9),
        Row("training", "random-wall", "share_of_peak", speed / (operations / seconds["bfloat16"])),
    ]


def product_of(tokens: int, dim: int, device: str, dtype: torch.dtype) -> tuple[Callable[[], object], int]:
    """A product of the shapes of a block's widest layer, and its floating-point operations."""
    wide, narrow = (torch.randn(shape, device=device).to(dtype) for shape in ((tokens, dim), (dim, 4 * dim)))
    return lambda: (wide @ narrow)[0, 0].item(), 2 * wide.numel() * narrow.shape[1]  # a GPU is waited for


def memory_rows() -> list[Row]:
    """Greatest resident megabytes of a process that does one thing; of Linux alone."""
    rows: list[Row] = []
    if sys.platform != "linux":
        return rows
    for name, what in MEMORY.items():
        if name == "training" and find_spec("lightning") is None:
            continue
        ran = subprocess.run(
            [sys.executable, "-c", f"{what}\n{RESIDENT}"], stdout=subprocess.PIPE, text=True, check=True
        )
        rows.append(Row("memory", name, "megabytes", int(ran.stdout.split()[-1]) / 1024))
    return rows
