"""What each model is asked: sRSA, distance probe, geodesics, ISOMAP, and the gap between clusters."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from common.intervals import mean
from common.rows import Found, Row
from common.tests import t_test

from eswm_gym.analysis import (
    CUES,
    KINDS,
    DistanceProbe,
    Task,
    activations,
    cluster_banks,
    clusters,
    draw_triplets,
    gap_belief,
    isomap,
    latent_geodesics,
    map_fit,
    path_lengths,
    place_means,
    placement_belief,
    queries_of,
    r_squared,
    room_of_kind,
    several_banks,
    srsa,
)
from eswm_gym.rooms import RoomConfig, random_walls
from eswm_gym.world_model import ESWM
from latent.figures import (
    draw_clusters,
    draw_depth,
    draw_geodesics,
    draw_kinds,
    draw_probe,
    draw_srsa,
    draw_tasks,
)
from latent.subjects import ISOMAP_BANKS, NEIGHBORS, Sizes, Subject, by_layer

BANKS, PAIRS = 5, 20
RADII = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
CONNECTED = 0.97  # a radius must connect so many pairs to be chosen
PRIOR = 20_000  # walls that stand for all that training may show


def srsa_rows(subject: Subject, sizes: Sizes) -> Found:
    """sRSA of every layer, the best one chosen on other rooms, and the paired t-test against the control."""
    rows: list[Row] = []
    best: dict[str, np.ndarray] = {}
    setting = subject.setting(2)
    for metric, task, n in (
        ("srsa", "action", sizes.srsa),
        ("srsa_end", "end", sizes.tasks),
        ("srsa_source", "source", sizes.tasks),
    ):
        for method, model in subject.models().items():
            other = _srsa_by_layer(subject, model, task, sizes.srsa_other, 0)
            found = _srsa_by_layer(subject, model, task, n, 1)
            layer = int(np.nanmean(other, 1).argmax())
            paper = subject.paper(method, metric)
            rows.append(Row(setting, method, metric, *mean(found[layer], subject.seed), paper=paper))
            rows.append(Row(setting, method, f"{metric}_layer/chosen", layer + 1, n=sizes.srsa_other))
            rows += by_layer(setting, method, metric, found)
            if task == "action":
                best[method] = found[layer]
    ours, theirs = best[subject.name], best[subject.control_name]
    test = t_test(setting, "srsa", subject.name, ours, subject.control_name, theirs, "paired-t")
    return Found(rows, partial(draw_srsa, subject, rows, setting), [test])


def _srsa_by_layer(subject: Subject, model: ESWM, task: str, n: int, part: int) -> np.ndarray:
    """(depth, n) sRSA in rooms that are the same for every model and task."""
    rng = subject.rng(1, part)
    scores = []
    left = n
    while left > 0:
        rooms = subject.rooms(rng, min(left, 100), 2)
        x = place_means(model, queries_of(several_banks(rng, rooms, BANKS), task))  # type: ignore[arg-type]
        x = x.reshape(len(x), len(rooms), BANKS, *x.shape[2:]).mean(2)
        # A place that no bank's queries touch stays nan; a constant map has no correlation, and counts as none.
        scores.append([[np.nan_to_num(srsa(layer[i], rooms.lattice.xy)) for i in range(len(rooms))] for layer in x])
        left -= len(rooms)
    return np.concatenate(scores, 1)


def probe_rows(subject: Subject, sizes: Sizes) -> Found:
    """The distance probe, its layer chosen on triplets of other rooms."""
    radius = subject.radius(2)
    config = RoomConfig.random_wall(radius, hidden=0.0)
    setting = "random-wall-19"
    other = draw_triplets(subject.rng(2, 0), sizes.probe_other, config)
    triplets = draw_triplets(subject.rng(2, 1), sizes.train + sizes.test, config)
    splits = [subject.rng(2, 2, seed).permutation(sizes.train + sizes.test) for seed in range(sizes.seeds)]

    def accuracies(x: np.ndarray) -> list[float]:
        found = []
        for seed, order in enumerate(splits):
            train, test = order[: sizes.train], order[sizes.train :]
            probe = DistanceProbe(x[train], triplets.farther[train], seed)
            found.append(probe.accuracy(x[test], triplets.farther[test]))
        return found

    rows: list[Row] = []
    for method, model in subject.models().items():
        x, half = _concatenated(model, other.queries_to_reference()), 2 * sizes.probe_other // 3
        chosen_from = [
            DistanceProbe(layer[:half], other.farther[:half]).accuracy(layer[half:], other.farther[half:])
            for layer in x
        ]
        layer = int(np.argmax(chosen_from))
        rows += [
            Row(setting, method, "distance_probe_chosen", value, n=sizes.probe_other - half, along="layer", at=i)
            for i, value in enumerate(chosen_from, 1)
        ]
        rows.append(Row(setting, method, "distance_probe_layer/chosen", layer + 1, n=sizes.probe_other))
        for metric, queries in (
            ("distance_probe", triplets.queries_to_reference()),
            ("distance_probe_own_moves", triplets.queries_of_own_moves(subject.rng(2, 3))),
        ):
            values = accuracies(_concatenated(model, queries)[layer])
            paper = subject.paper(method, metric)
            rows.append(Row(setting, method, metric, *mean(values, subject.seed), paper=paper))
    if subject.name == "eswm":
        one_hot = np.eye(triplets.banks.rooms.lattice.n_locations)[triplets.places].reshape(len(triplets.places), -1)
        found = mean(accuracies(one_hot), subject.seed)
        rows.append(Row(setting, "positions", "distance_probe_own_moves", *found))

    return Found(rows, partial(draw_probe, subject, rows, setting))


def _concatenated(model: ESWM, queries) -> np.ndarray:
    """(depth, N, 3 dim) activations of A, B and C side by side."""
    vectors = activations(model, queries, chunk=32).vectors
    return vectors.reshape(len(vectors), len(queries), -1)


def geodesic_rows(subject: Subject, sizes: Sizes) -> Found:
    """Latent against true path lengths; layer and radius chosen on other rooms."""
    setting = subject.setting(3)
    rows: list[Row] = []
    scatter: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    variants: list[tuple[str, tuple[Task, ...], int, Literal["angle", "cosine"]]] = [
        ("latent_r2", ("end",), 1, "angle"),
        ("latent_r2_cosine", ("end",), 1, "cosine"),
        ("latent_r2_tasks", ("end", "source"), 1, "angle"),
        ("latent_r2_banks", ("end",), BANKS, "angle"),
    ]
    for metric, tasks, n_banks, weight in variants:
        for method, model in subject.models().items():
            if metric != "latent_r2" and model is subject.control:
                continue
            x, true, pairs = _geodesic_problem(subject, model, sizes.geodesics_other, n_banks, 0, tasks)
            score = {}
            for layer in range(len(x)):
                for r in RADII:
                    latent = _pair_lengths(x[layer], pairs, r, weight)
                    finite = np.isfinite(latent)
                    fits = finite.any() and np.ptp(latent[finite]) > 0 and np.ptp(true[finite]) > 0
                    enough = finite.mean() >= CONNECTED
                    score[layer, r] = (enough, r_squared(latent[finite], true[finite]) if fits else 0.0)
            layer, r = max(score, key=lambda key: score[key])
            x, true, pairs = _geodesic_problem(subject, model, sizes.geodesics, n_banks, 1, tasks)
            latent = _pair_lengths(x[layer], pairs, r, weight)
            room = np.arange(len(true)) // PAIRS
            value, interval = _r_squared_by_room(latent, true, room, subject.seed)
            finite = np.isfinite(latent)
            paper = subject.paper(method, metric)
            rows.append(Row(setting, method, metric, value, interval, int(finite.sum()), paper))
            rows.append(Row(setting, method, f"{metric}_connected", float(finite.mean()), n=len(finite)))
            rows.append(Row(setting, method, f"{metric}_layer/chosen", layer + 1, n=sizes.geodesics_other))
            rows.append(Row(setting, method, f"{metric}_radius/chosen", r, n=sizes.geodesics_other))
            title = f"{method}, {' and '.join(tasks)}, {n_banks} bank{'s' * (n_banks > 1)}"
            scatter[f"{title}\n{weight}: R² = {value:.2f}"] = (
                latent[finite],
                true[finite],
            )

    return Found(rows, partial(draw_geodesics, subject, scatter))


def _geodesic_problem(
    subject: Subject, model: ESWM, n: int, n_banks: int, part: int, tasks: tuple[Task, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(depth, n, L, dim) mean activations, and of pairs of places (20 n,) true lengths and (n, 20, 2) the pairs."""
    rng = subject.rng(3, part)
    rooms = subject.rooms(rng, n, 3)
    pairs, true = np.zeros((n, PAIRS, 2), np.int64), np.zeros((n, PAIRS))
    for i in range(n):
        length = path_lengths(rooms, i)
        a, b = np.nonzero(length > 0)
        chosen = rng.choice(len(a), PAIRS, replace=len(a) < PAIRS)
        pairs[i], true[i] = np.stack([a[chosen], b[chosen]], 1), length[a[chosen], b[chosen]]
    banks = several_banks(rng, rooms, n_banks)
    x = np.concatenate([place_means(model, queries_of(banks, task)) for task in tasks], 3)
    return x.reshape(len(x), n, n_banks, *x.shape[2:]).mean(2), true.ravel(), pairs


def _pair_lengths(x: np.ndarray, pairs: np.ndarray, radius: float, weight: Literal["angle", "cosine"]) -> np.ndarray:
    """(20 n,) latent lengths."""
    return np.concatenate([latent_geodesics(x[i], radius, weight)[tuple(pairs[i].T)] for i in range(len(x))])


def _r_squared_by_room(
    latent: np.ndarray, true: np.ndarray, room: np.ndarray, seed: int
) -> tuple[float, tuple[float, float]]:
    """R2 over all pairs that are connected, and its bootstrap interval over rooms."""
    rng, finite = np.random.default_rng(seed), np.isfinite(latent)
    members = [np.flatnonzero((room == i) & finite) for i in range(room.max() + 1)]
    drawn = [np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))]) for _ in range(500)]
    low, high = np.percentile([r_squared(latent[i], true[i]) for i in drawn], [2.5, 97.5])
    return r_squared(latent[finite], true[finite]), (float(low), float(high))


def isomap_rows(subject: Subject, sizes: Sizes) -> Found:
    """How well ISOMAP's embedding fits the room: each layer in random rooms, the best layer in the paper's rooms."""
    radius = subject.radius(3)
    setting = subject.setting(3)
    rows: list[Row] = []
    best: dict[str, int] = {}
    for method, model in subject.models().items():
        fits = []
        for i in range(sizes.isomap):
            rng = subject.rng(4, i)
            rooms = subject.rooms(rng, 1, 3)
            found = activations(model, queries_of(several_banks(rng, rooms, ISOMAP_BANKS), "end"))
            fits.append([map_fit(isomap(x, 2, NEIGHBORS), found.place, rooms.lattice.xy) for x in found.vectors])
        disparity = np.array([[fit.disparity for fit in room] for room in fits]).T
        correlation = np.nan_to_num([[fit.correlation for fit in room] for room in fits]).T
        rows += by_layer(setting, method, "isomap_disparity", disparity)
        rows += by_layer(setting, method, "isomap_correlation", correlation)
        best[method] = int(disparity.mean(1).argmin())
        rows.append(Row(setting, method, "isomap_layer/chosen", best[method] + 1, n=sizes.isomap))
    seen = {}
    for kind in KINDS:
        rng = subject.rng(5, KINDS.index(kind))
        rooms = room_of_kind(rng, kind, radius)
        queries = queries_of(several_banks(rng, rooms, ISOMAP_BANKS), "end")
        for method, model in subject.models().items():
            found = activations(model, queries)
            seen[kind, method] = rooms, found
            fit = map_fit(isomap(found.vectors[best[method]], 2, NEIGHBORS), found.place, rooms.lattice.xy)
            rows.append(Row(kind, method, "isomap_disparity", fit.disparity))
            rows.append(Row(kind, method, "isomap_correlation", fit.correlation))

    def draw(folder: Path) -> None:
        ours, control = ((method, best[method]) for method in subject.models())
        lines = [(*ours, 2), (*ours, 3), (*control, 2)]
        draw_kinds(f"latent-rooms-{subject.name}", seen, lines, folder)
        draw_depth(subject, seen, rows, setting, folder)
        draw_tasks(subject, folder)

    return Found(rows, draw)


def gap_rows(subject: Subject, sizes: Sizes) -> Found:
    """What the model believes of the gap between two clusters of memories, and what could be known of it."""
    if subject.radius(3) != 3:
        return Found([])
    rows = []
    prior = random_walls(subject.rng(6), PRIOR, RoomConfig.random_wall(3))
    for i, cue in enumerate(CUES):
        rng = subject.rng(6, i)
        rooms, cluster, walls = clusters(rng, sizes.gaps, cue)
        known = placement_belief(rooms.lattice, cluster[0], walls[0], prior)
        rows.append(Row(f"clusters-{cue}", "ideal", "neighbor_mass", known, n=PRIOR))
        belief = gap_belief(subject.model, cluster_banks(rng, rooms, cluster), cluster)
        for metric, values in vars(belief).items():
            rows.append(Row(f"clusters-{cue}", subject.name, f"{metric}_mass", *mean(values, subject.seed)))
    return Found(rows, partial(draw_clusters, subject, rows))


# What models of hexagonal rooms are asked.
MEASURES = [srsa_rows, probe_rows, geodesic_rows, isomap_rows, gap_rows]
