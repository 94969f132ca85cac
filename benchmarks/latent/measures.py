"""The map inside: do the world model's activations form the room's map (paper: "Spatial Maps Emerge Robustly Within
ESWM's Latent Space")? Beside each model a random network of its shape, `untrained`.

  srsa                Spearman's correlation of cosine distances between mean activations (action prediction, 5 banks)
                      and Euclidean distances between locations; srsa_end, srsa_source: the other tasks, fewer rooms
  distance_probe      one linear layer on activations of action predictions from A, B and C to A: is B farther from A
                      than C is? 3,000 triplets to learn, 1,000 held out, each of a room of its own
  ..._own_moves       the same, the predicted moves being random ones from A, B and C; `positions` has the locations
                      themselves, one-hot: what a sum of three scores can reach at most, however good the map
  latent_r2           R2 of the fit of shortest ways through the latent space (end prediction, one bank) by shortest
                      paths, 20 pairs a room; a step costs the angle between neighbours, latent_r2_cosine: their cosine
                      distance, as in the paper; latent_r2_tasks: end and source prediction side by side;
                      latent_r2_banks: activations averaged over 5 banks
  isomap_disparity    Procrustes' disparity of the room and its two-dimensional ISOMAP (end prediction, six banks,
                      cosine distance, 40 neighbours), 0 at best; isomap_correlation: Spearman's, of their distances
  clusters-*          two clusters of memories side by side, no memory from one to the other: the probability of the
                      true neighbour across the gap, of any state of the other cluster, of staying, of "I don't know";
                      `ideal` knows all that can be known of how they lie
  paper-rooms         other architectures and EPN in five kinds of rooms: isomap_disparity, isomap_correlation, and
                      isomap_srsa, sRSA of the same activations

Layers, and the radius of latent neighbours, are chosen on other rooms than those of the report; `--json` and
`--by-layer` give every layer. In MiniGrid, from action prediction: srsa_one_heading among the poses of each heading,
srsa_cells among cells, activations averaged over headings; the control has the same registration of views.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from latent_figures import (
    draw_clusters,
    draw_depth,
    draw_geodesics,
    draw_grid,
    draw_kinds,
    draw_probe,
    draw_srsa,
    draw_tasks,
)
from latent_models import compare_rows
from latent_subjects import ISOMAP_BANKS, NEIGHBORS, QUICK, Measured, Sizes, Subject, by_layer
from models import add_model_option, find_model
from report import Row, mean, parser, print_table, write_json
from scipy import stats
from significance import Test, print_tests
from tqdm import tqdm

from eswm_gym.analysis import (
    CUES,
    KINDS,
    Activations,
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
    untrained,
)
from eswm_gym.rooms import RoomConfig, random_walls
from eswm_gym.rooms.grid import N_HEADINGS, GridBanks, GridConfig, GridRooms, cover_banks, generate_grids, poses
from eswm_gym.world_model import ESWM, ViewTransformer, available

BANKS, PAIRS = 5, 20
RADII = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
CONNECTED = 0.97  # a radius must connect so many pairs to be chosen
PRIOR = 20_000  # walls that stand for all that training may show


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--rooms", type=int, default=1000, help="rooms of srsa (default 1000)")
    add_model_option(options, "random-wall and minigrid")
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    options.add_argument("--by-layer", action="store_true", help="print the rows of each layer too")
    args = options.parse_args(argv)
    sizes = QUICK if args.quick else Sizes(srsa=args.rooms, tasks=min(50, args.rooms))
    measures: list[Callable[[], Measured]] = []
    for name in args.model or ["random-wall", "minigrid"]:
        model = find_model(name, args.device)
        label = "eswm" if name in available() else Path(name).stem
        subject = Subject(label, model, untrained(model.config, args.seed).to(args.device), args.seed)
        of_model = [grid_rows] if isinstance(model, ViewTransformer) else MEASURES
        measures += [partial(measure, subject, sizes) for measure in of_model]
    if not args.model:
        measures.append(partial(compare_rows, args.seed, sizes, args.device))
    rows: list[Row] = []
    tests: list[Test] = []
    drawings: list[Callable[[Path], None]] = []
    for measure in tqdm(measures, disable=None):
        new, tested, drawing = measure()
        rows, tests = rows + new, tests + tested
        drawings.append(drawing)
    print_table(row for row in rows if args.by_layer or "/" not in row.metric)
    print_tests(tests)
    if args.json:
        write_json(args.json, "latent", args.seed, rows, tests)
    if args.plot:
        for drawing in drawings:
            drawing(args.plot)
    return rows


def srsa_rows(subject: Subject, sizes: Sizes) -> Measured:
    """sRSA of every layer, the best one chosen on other rooms, and the paired t-test against the control."""
    rows: list[Row] = []
    best: dict[str, np.ndarray] = {}
    setting = f"random-wall-{37 if subject.fitting(2) == 3 else 19}"
    for metric, task, n in (
        ("srsa", "action", sizes.srsa),
        ("srsa_end", "end", sizes.tasks),
        ("srsa_source", "source", sizes.tasks),
    ):
        for method, model in subject.each().items():
            other = _srsa_by_layer(subject, model, task, sizes.srsa_other, 0)
            found = _srsa_by_layer(subject, model, task, n, 1)
            layer = int(np.nanmean(other, 1).argmax())
            paper = subject.paper(method, metric)
            rows.append(mean(setting, method, metric, found[layer].tolist(), subject.seed, paper))
            rows.append(Row(setting, method, f"{metric}_layer/chosen", layer + 1, n=sizes.srsa_other))
            rows += by_layer(setting, method, metric, found)
            if task == "action":
                best[method] = found[layer]
    ours, theirs = best[subject.name], best[subject.control_name]
    result = stats.ttest_rel(ours, theirs)
    low, high = result.confidence_interval(0.95)
    test = Test(
        setting,
        "srsa",
        "paired-t",
        (subject.name, subject.control_name),
        (len(ours), len(theirs)),
        float(result.statistic),
        (float(result.df),),
        float(result.pvalue),
        float((ours - theirs).mean()),
        (float(low), float(high)),
    )

    return rows, [test], partial(draw_srsa, subject, rows, setting)


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


def probe_rows(subject: Subject, sizes: Sizes) -> Measured:
    """The distance probe, its layer chosen on triplets of other rooms."""
    radius = subject.fitting(2)
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
    for method, model in subject.each().items():
        x, half = _concatenated(model, other.queries_to_reference()), 2 * sizes.probe_other // 3
        by_layer = [
            DistanceProbe(layer[:half], other.farther[:half]).accuracy(layer[half:], other.farther[half:])
            for layer in x
        ]
        layer = int(np.argmax(by_layer))
        rows += [
            Row(setting, method, f"distance_probe_chosen/layer-{i + 1}", value, n=sizes.probe_other - half)
            for i, value in enumerate(by_layer)
        ]
        rows.append(Row(setting, method, "distance_probe_layer/chosen", layer + 1, n=sizes.probe_other))
        for metric, queries in (
            ("distance_probe", triplets.queries_to_reference()),
            ("distance_probe_own_moves", triplets.queries_of_own_moves(subject.rng(2, 3))),
        ):
            values = accuracies(_concatenated(model, queries)[layer])
            rows.append(mean(setting, method, metric, values, subject.seed, subject.paper(method, metric)))
    if subject.name == "eswm":
        one_hot = np.eye(triplets.banks.rooms.lattice.n_locations)[triplets.places].reshape(len(triplets.places), -1)
        rows.append(mean(setting, "positions", "distance_probe_own_moves", accuracies(one_hot), subject.seed))

    return rows, [], partial(draw_probe, subject, rows, setting)


def _concatenated(model: ESWM, queries) -> np.ndarray:
    """(depth, N, 3 dim) activations of A, B and C side by side."""
    vectors = activations(model, queries, chunk=32).vectors
    return vectors.reshape(len(vectors), len(queries), -1)


def geodesic_rows(subject: Subject, sizes: Sizes) -> Measured:
    """Latent against true path lengths; layer and radius chosen on other rooms."""
    radius = subject.fitting(3)
    setting = f"random-wall-{37 if radius == 3 else 19}"
    rows: list[Row] = []
    scatter: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    variants: list[tuple[str, tuple[Task, ...], int, Literal["angle", "cosine"]]] = [
        ("latent_r2", ("end",), 1, "angle"),
        ("latent_r2_cosine", ("end",), 1, "cosine"),
        ("latent_r2_tasks", ("end", "source"), 1, "angle"),
        ("latent_r2_banks", ("end",), BANKS, "angle"),
    ]
    for metric, tasks, n_banks, weight in variants:
        for method, model in subject.each().items():
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

    return rows, [], partial(draw_geodesics, subject, scatter)


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


def isomap_rows(subject: Subject, sizes: Sizes) -> Measured:
    """How well ISOMAP's embedding fits the room: each layer in random rooms, the best layer in the paper's rooms."""
    radius = subject.fitting(3)
    setting = f"random-wall-{37 if radius == 3 else 19}"
    rows: list[Row] = []
    best: dict[str, int] = {}
    for method, model in subject.each().items():
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
        for method, model in subject.each().items():
            found = activations(model, queries)
            seen[kind, method] = rooms, found
            fit = map_fit(isomap(found.vectors[best[method]], 2, NEIGHBORS), found.place, rooms.lattice.xy)
            rows.append(Row(kind, method, "isomap_disparity", fit.disparity))
            rows.append(Row(kind, method, "isomap_correlation", fit.correlation))

    def draw(folder: Path) -> None:
        ours, control = ((method, best[method]) for method in subject.each())
        lines = [(*ours, 2), (*ours, 3), (*control, 2)]
        draw_kinds(f"latent-rooms-{subject.name}", seen, lines, folder)
        draw_depth(subject, seen, rows, setting, folder)
        draw_tasks(subject, folder)

    return rows, [], draw


def gap_rows(subject: Subject, sizes: Sizes) -> Measured:
    """What the model believes of the gap between two clusters of memories, and what could be known of it."""
    if subject.fitting(3) != 3:
        return [], [], lambda folder: None
    rows = []
    prior = random_walls(subject.rng(6), PRIOR, RoomConfig.random_wall(3))
    for i, cue in enumerate(CUES):
        rng = subject.rng(6, i)
        rooms, cluster, walls = clusters(rng, sizes.gaps, cue)
        known = placement_belief(rooms.lattice, cluster[0], walls[0], prior)
        rows.append(Row(f"clusters-{cue}", "ideal", "neighbor_mass", known, n=PRIOR))
        belief = gap_belief(subject.model, cluster_banks(rng, rooms, cluster), cluster)
        for metric, values in vars(belief).items():
            rows.append(mean(f"clusters-{cue}", subject.name, f"{metric}_mass", values, subject.seed))
    return rows, [], partial(draw_clusters, subject, rows)


def grid_rows(subject: Subject, sizes: Sizes) -> Measured:
    """MiniGrid: sRSA among poses of one heading and among cells, layers chosen on other layouts; the map's figure."""
    rows: list[Row] = []
    best: dict[str, int] = {}
    for method, model in subject.each().items():
        other = _grid_srsa(subject, model, max(1, sizes.grids // 2), 0)
        found = _grid_srsa(subject, model, sizes.grids, 1)
        for metric in found:
            layer = int(other[metric].mean(1).argmax())
            rows.append(mean("minigrid", method, metric, found[metric][layer].tolist(), subject.seed))
            rows.append(Row("minigrid", method, f"{metric}_layer/chosen", layer + 1, n=other[metric].shape[1]))
            rows += by_layer("minigrid", method, metric, found[metric])
        best[method] = int(other["srsa_one_heading"].mean(1).argmax())

    return rows, [], partial(draw_grid, subject, _grid_banks(subject.rng(9), ISOMAP_BANKS), best)


def _grid_srsa(subject: Subject, model: ESWM, n: int, part: int) -> dict[str, np.ndarray]:
    """(depth, n) sRSA of n layouts, action prediction: mean over the headings of that among the poses of each, and of
    cells, activations averaged over headings."""
    where = poses(GridConfig().size)
    position = where[:, :2].astype(float)
    cells, cell_of = np.unique(position, axis=0, return_inverse=True)
    rng = subject.rng(8, part)
    scores: dict[str, list] = {"srsa_one_heading": [], "srsa_cells": []}
    for _ in range(n):
        found = activations(model, queries_of(_grid_banks(rng, 2), "action"), chunk=1)
        of_poses = found.means(len(where))
        of_cells = Activations(found.vectors, cell_of.ravel()[found.place], found.bank).means(len(cells))
        heading = [where[:, 2] == h for h in range(N_HEADINGS)]
        scores["srsa_one_heading"].append([np.mean([srsa(x[h], position[h]) for h in heading]) for x in of_poses])
        scores["srsa_cells"].append([srsa(x, cells) for x in of_cells])
    return {metric: np.nan_to_num(values).T for metric, values in scores.items()}


def _grid_banks(rng: np.random.Generator, n: int) -> GridBanks:
    """n banks of one new layout."""
    grid = generate_grids(rng, 1, GridConfig())
    return cover_banks(rng, GridRooms.of(np.repeat(grid, n, 0)))


MEASURES = [srsa_rows, probe_rows, geodesic_rows, isomap_rows, gap_rows]


if __name__ == "__main__":
    main()
