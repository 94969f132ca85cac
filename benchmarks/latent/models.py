"""The maps of other models beside each other (paper: figure "ISOMAP projection of various ESWM-trained models' latent
space"): ESWM as a transformer, an LSTM and Mamba, random networks of their shapes, and
EPN, the navigator, that remembers walks of its own (`epn`) or what ESWM remembers (`epn-spanning`).

The LSTM and Mamba answer fewer than half of the unseen queries (`benchmarks/predict`); the figures leave them out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from common.cli import model_seed
from common.intervals import mean
from common.models import find_model
from common.rows import Found, Row

from eswm_gym.agents.baselines import EPNAgent
from eswm_gym.analysis import (
    KINDS,
    Activations,
    Task,
    activations,
    isomap,
    map_fit,
    queries_of,
    room_of_kind,
    several_banks,
    srsa,
    untrained,
)
from eswm_gym.rooms import Room, RoomBatch, RoomConfig, generate_rooms
from eswm_gym.world_model import ESWM
from latent.figures import draw_models
from latent.subjects import NEIGHBORS, Sizes

# Weights and prediction task of each model; the tasks are those of the paper's figure.
MODELS: dict[str, tuple[str, Task]] = {
    "eswm-t": ("rw-t", "end"),
    "eswm-lstm": ("rw-lstm", "end"),
    "eswm-mamba": ("rw-mamba", "action"),
}
EPN_WALKS, EPN_GOALS = 2, 30  # walks of a room, and goals at each location in all

# The activations of a room, given a random stream and a number of banks.
Collect = Callable[[np.random.Generator, RoomBatch, int], Activations]


def compare_rows(seed: int, sizes: Sizes, device: str = "cpu") -> Found:
    """ISOMAP's fit, and sRSA of the same activations, in one room of each kind.

    Of the transformers, the layer whose map fits best in another room; of all others the last one.

    Args:
        seed: of everything.
        sizes: which kinds of rooms, and how many banks of each.
        device: where the models run.
    """
    methods = methods_of(seed, device)
    best = dict.fromkeys(methods, -1)
    for method in ("eswm-t", "eswm-t-untrained"):
        best[method] = _best_layer(methods[method], seed, sizes.kind_banks)
    seen: dict[tuple[str, str], tuple[RoomBatch, Activations]] = {}
    rows: list[Row] = []
    for method, collect in methods.items():
        fits = []
        for kind in sizes.kinds:
            rng = np.random.default_rng([model_seed(seed), 10, KINDS.index(kind)])
            rooms = room_of_kind(rng, kind)
            found = collect(rng, rooms, sizes.kind_banks)
            seen[kind, method] = rooms, found
            fits.append(fits_of(found, best[method], rooms))
        for metric in fits[0]:
            values = [fit[metric] for fit in fits]
            rows.append(Row("paper-rooms", method, metric, *mean(values, seed)))
            rows += [
                Row("paper-rooms", method, f"{metric}/{kind}", value)
                for kind, value in zip(sizes.kinds, values, strict=True)
            ]
    return Found(rows, partial(draw_models, seen, best))


def methods_of(seed: int, device: str) -> dict[str, Collect]:
    """How the activations of each model are collected."""
    methods: dict[str, Collect] = {}
    for method, (name, task) in MODELS.items():
        model = find_model(name, device)
        methods[method] = partial(collect_eswm, model, task)
        methods[f"{method}-untrained"] = partial(collect_eswm, untrained(model.config, seed).to(device), task)
    agent = EPNAgent.from_pretrained(device=device)
    return methods | {"epn": partial(collect_epn, agent, True), "epn-spanning": partial(collect_epn, agent, False)}


def collect_eswm(model: ESWM, task: Task, rng: np.random.Generator, rooms: RoomBatch, n_banks: int) -> Activations:
    """All layers, of one prediction task, one room and several banks of it."""
    return activations(model, queries_of(several_banks(rng, rooms, n_banks), task))


def collect_epn(agent: EPNAgent, walks: bool, rng: np.random.Generator, rooms: RoomBatch, n_banks: int) -> Activations:
    """What EPN's policy reads at every observed location on its way to several others.

    Args:
        agent: EPN.
        walks: whether it remembers walks of its own, of 200 steps, as in its training; else ESWM's banks.
        rng: of memories and goals.
        rooms: one.
        n_banks: of ESWM's banks.
    """
    banks = several_banks(rng, rooms, n_banks)
    states, free = rooms.states[0], np.flatnonzero(rooms.observed[0] & ~rooms.walls[0])
    memories = list(banks.transitions())
    if walks:
        room, seen = Room.from_batch(rooms, 0), states[rooms.observed[0]]
        walked = agent.fill_memories([room] * min(EPN_WALKS, n_banks), seed=int(rng.integers(2**31)))
        memories = [m[np.isin(m[:, ::2], seen).all(1)] for m in walked]
    n_goals = min(len(free) - 1, -(-EPN_GOALS // len(memories)))
    vectors = []
    for memory in memories:
        # For each location the first few of all others, in random order.
        order = rng.random((len(free), len(free)))
        np.fill_diagonal(order, 2)
        goal = states[free[order.argsort(1)[:, :n_goals]]].ravel()
        of_all = np.repeat(memory[None], len(goal), 0)
        vectors.append(agent.activations(of_all, np.repeat(states[free], n_goals), goal))
    place = np.tile(np.repeat(free, n_goals), len(memories))
    bank = np.repeat(np.arange(len(memories)), len(free) * n_goals)
    return Activations(np.concatenate(vectors)[None], place, bank)


def fits_of(found: Activations, layer: int, rooms: RoomBatch) -> dict[str, float]:
    """How one layer of a room's activations fits the room; a map without any order counts as 0."""
    positions = rooms.lattice.xy
    fit = map_fit(isomap(found.vectors[layer], 2, NEIGHBORS), found.place, positions)
    means = found.means(len(positions))[layer]
    return {
        "isomap_disparity": fit.disparity,
        "isomap_correlation": float(np.nan_to_num(fit.correlation)),
        "isomap_srsa": float(np.nan_to_num(srsa(means, positions))),
    }


def _best_layer(collect: Collect, seed: int, n_banks: int) -> int:
    rng = np.random.default_rng([model_seed(seed), 11])
    rooms = generate_rooms(rng, 1, RoomConfig.random_wall(3, hidden=0.0))
    found = collect(rng, rooms, n_banks)
    return int(np.argmin([fits_of(found, layer, rooms)["isomap_disparity"] for layer in range(len(found.vectors))]))
