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
                      true neighbour across the gap, of any state of the other cluster, of staying, of "I don't know"

Layers, and the radius of latent neighbours, are chosen on other rooms than those of the report; `--json` and
`--by-layer` give every layer. In MiniGrid, from action prediction: srsa_one_heading among the poses of each heading,
srsa_cells among cells, activations averaged over headings; the control has the same registration of views.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from report import Row, draw_curve, mean, parser, print_table, save_figure, write_json
from scipy import stats
from significance import Test, difference_text, p_text, statistic_text
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
    queries_of,
    r_squared,
    room_of_kind,
    several_banks,
    srsa,
    untrained,
)
from eswm_gym.analysis.rooms import take
from eswm_gym.rooms import RoomBatch, RoomConfig, generate_rooms
from eswm_gym.rooms.grid import N_HEADINGS, GridBanks, GridConfig, GridRooms, cover_banks, generate_grids, poses
from eswm_gym.world_model import ESWM, ViewTransformer, available, load_model, load_pretrained

PAPER = {
    ("eswm", "srsa"): 0.78,
    ("untrained", "srsa"): 0.50,
    ("eswm", "distance_probe"): 0.9342,
    ("eswm", "latent_r2"): 0.89,
    ("eswm", "latent_r2_cosine"): 0.89,
}
BANKS, ISOMAP_BANKS, NEIGHBORS, PAIRS = 5, 6, 40, 20
RADII = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
CONNECTED = 0.97  # a radius must connect so many pairs to be chosen


@dataclass(frozen=True)
class Sizes:
    """How many rooms each measure rests on; `other` ones serve to choose."""

    srsa: int = 1000
    srsa_other: int = 40
    tasks: int = 50
    train: int = 3000
    test: int = 1000
    probe_other: int = 1000
    seeds: int = 10
    geodesics: int = 75
    geodesics_other: int = 40
    isomap: int = 3
    gaps: int = 200
    grids: int = 20


QUICK = Sizes(6, 3, 3, 160, 60, 80, 2, 4, 3, 1, 8, 1)


@dataclass(frozen=True)
class Subject:
    """A model and its control.

    Attributes:
        name: in the table: "eswm", or the name of the model's file.
        model, control: trained and not.
        seed: of everything.
    """

    name: str
    model: ESWM
    control: ESWM
    seed: int

    def each(self) -> dict[str, ESWM]:
        return {self.name: self.model, self.control_name: self.control}

    @property
    def control_name(self) -> str:
        return "untrained" if self.name == "eswm" else f"{self.name}-untrained"

    def rng(self, *parts: int) -> np.random.Generator:
        """A stream of its own for each measure, and for choosing and reporting."""
        return np.random.default_rng([self.seed, *parts])

    def paper(self, method: str, metric: str) -> float | None:
        return PAPER.get((method, metric))

    def rooms(self, rng: np.random.Generator, n: int, radius: int) -> RoomBatch:
        return generate_rooms(rng, n, RoomConfig.random_wall(self.fitting(radius), hidden=0.0))

    def fitting(self, radius: int) -> int:
        """This radius, or 2 where the model has no vocabulary or memory for larger rooms."""
        config = self.model.config
        return radius if config.n_states >= 37 and config.max_memories >= 36 else 2


def main(argv: list[str] | None = None) -> list[Row]:
    options = parser(__doc__)
    options.add_argument("--rooms", type=int, default=1000, help="rooms of srsa (default 1000)")
    options.add_argument(
        "--model",
        action="append",
        metavar="NAME|FILE",
        help="a pretrained model or saved weights; may be given again (default: random-wall and minigrid)",
    )
    options.add_argument("--plot", type=Path, metavar="DIR", help="draw figures there (needs matplotlib)")
    options.add_argument("--by-layer", action="store_true", help="print the rows of each layer too")
    args = options.parse_args(argv)
    sizes = QUICK if args.quick else Sizes(srsa=args.rooms, tasks=min(50, args.rooms))
    rows: list[Row] = []
    tests: list[Test] = []
    drawings: list[Callable[[Path], None]] = []
    for name in args.model or ["random-wall", "minigrid"]:
        model = load_pretrained(name, args.device) if name in available() else load_model(name, args.device)
        label = "eswm" if name in available() else Path(name).stem
        subject = Subject(label, model, untrained(model.config, args.seed).to(args.device), args.seed)
        measures = [grid_rows] if isinstance(model, ViewTransformer) else MEASURES
        for measure in tqdm(measures, desc=name, disable=None):
            new, tested, drawing = measure(subject, sizes)
            rows, tests = rows + new, tests + tested
            drawings.append(drawing)
    print_table(row for row in rows if args.by_layer or "/" not in row.metric)
    for test in tests:
        print(
            f"Paired t-test, {test.setting} {test.metric}: {difference_text(test)}, {statistic_text(test)}, "
            f"{p_text(test.p_value)}"
        )
    if args.json:
        write_json(args.json, "latent", args.seed, rows, tests)
    if args.plot:
        for drawing in drawings:
            drawing(args.plot)
    return rows


Measured = tuple[list[Row], list[Test], Callable[[Path], None]]


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
            rows += _by_layer(setting, method, metric, found)
            if task == "action":
                best[method] = found[layer]
    ours, theirs = best[subject.name], best[subject.control_name]
    result = stats.ttest_rel(ours, theirs)
    low, high = result.confidence_interval(0.95)
    test = Test(
        setting,
        "srsa",
        "t",
        (subject.name, subject.control_name),
        (len(ours), len(theirs)),
        float(result.statistic),
        (float(result.df),),
        float(result.pvalue),
        float((ours - theirs).mean()),
        (float(low), float(high)),
    )

    def draw(folder: Path) -> None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True)
        for axis, (metric, title) in zip(
            axes,
            (("srsa", "action prediction"), ("srsa_end", "end prediction"), ("srsa_source", "source prediction")),
            strict=True,
        ):
            for method in subject.each():
                draw_curve(axis, rows, setting, method, metric)
            for (method, of), value in PAPER.items():
                if of == metric and subject.name == "eswm":
                    color = f"C{list(subject.each()).index(method)}"
                    axis.axhline(value, color=color, linestyle=":", linewidth=1, label=f"paper, {method}")
            axis.set(xlabel="layer", title=title, ylim=(0, 1.03))
            axis.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel("sRSA")
        axes[2].legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="lower right", ncols=2)
        save_figure(figure, folder, f"latent-srsa-{subject.name}")

    return rows, [test], draw


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

    def draw(folder: Path) -> None:
        import matplotlib.pyplot as plt

        figure, axis = plt.subplots(figsize=(4.5, 3.2))
        for method in subject.each():
            draw_curve(axis, rows, setting, method, "distance_probe_chosen")
        if subject.name == "eswm":
            axis.axhline(PAPER["eswm", "distance_probe"], color="C0", linestyle=":", linewidth=1, label="paper, eswm")
        axis.axhline(0.5, color=".6", linewidth=0.8)
        axis.set(xlabel="layer", ylabel="accuracy of the distance probe", ylim=(0.45, 1.02))
        axis.legend(fontsize=8, loc="center right")
        save_figure(figure, folder, f"latent-probe-{subject.name}")

    return rows, [], draw


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

    def draw(folder: Path) -> None:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(1, len(scatter), figsize=(3.4 * len(scatter), 3.4))
        for axis, (title, (latent, true)) in zip(axes, scatter.items(), strict=True):
            jitter = np.random.default_rng(0).uniform(-0.15, 0.15, len(true))
            axis.plot(true + jitter, latent, ".", markersize=2.5, alpha=0.4, rasterized=True)
            slope, intercept = np.polyfit(true, latent, 1)
            ends = np.array([true.min(), true.max()])
            axis.plot(ends, slope * ends + intercept, color="C1", linewidth=1.5)
            axis.set(xlabel="shortest path in the room, steps", title=title)
            axis.title.set_fontsize(10)
        axes[0].set_ylabel("shortest way in the latent space")
        save_figure(figure, folder, f"latent-geodesics-{subject.name}")

    return rows, [], draw


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
        rows += _by_layer(setting, method, "isomap_disparity", disparity)
        rows += _by_layer(setting, method, "isomap_correlation", correlation)
        best[method] = int(disparity.mean(1).argmin())
        rows.append(Row(setting, method, "isomap_layer/chosen", best[method] + 1, n=sizes.isomap))
    looked_at = {}
    for kind in KINDS:
        rng = subject.rng(5, KINDS.index(kind))
        rooms = room_of_kind(rng, kind, radius)
        queries = queries_of(several_banks(rng, rooms, ISOMAP_BANKS), "end")
        for method, model in subject.each().items():
            found = activations(model, queries)
            looked_at[kind, method] = rooms, found
            fit = map_fit(isomap(found.vectors[best[method]], 2, NEIGHBORS), found.place, rooms.lattice.xy)
            rows.append(Row(kind, method, "isomap_disparity", fit.disparity))
            rows.append(Row(kind, method, "isomap_correlation", fit.correlation))

    def draw(folder: Path) -> None:
        _draw_rooms(subject, looked_at, best, folder)
        _draw_depth(subject, looked_at, rows, setting, folder)
        _draw_tasks(subject, best, folder)

    return rows, [], draw


def _draw_rooms(subject: Subject, looked_at: dict, best: dict[str, int], folder: Path) -> None:
    """The paper's rooms, their maps in two and three dimensions, and those of the control."""
    import matplotlib.pyplot as plt

    from eswm_gym.analysis.figures import draw_map, draw_room, free_edges

    figure = plt.figure(figsize=(3 * len(KINDS), 11.5))
    lines = [("room", "", 2), (subject.name, subject.name, 2), (subject.name, subject.name, 3)]
    lines.append((subject.control_name, subject.control_name, 2))
    for line, (label, method, dimensions) in enumerate(lines):
        for column, kind in enumerate(KINDS):
            projection = {"projection": "3d"} if dimensions == 3 else {}
            axis = figure.add_subplot(len(lines), len(KINDS), line * len(KINDS) + column + 1, **projection)
            rooms, found = looked_at[kind, method or subject.name]
            if not method:
                draw_room(axis, rooms)
                axis.set_title(kind.replace("-", " "))
                continue
            layer = best[method]
            embedding = isomap(found.vectors[layer], dimensions, NEIGHBORS)
            draw_map(axis, embedding, found.place, rooms.lattice.xy, free_edges(rooms))
            fit = map_fit(embedding, found.place, rooms.lattice.xy) if dimensions == 2 else None
            axis.set_title(f"{label}, layer {layer + 1}" + (f": disparity {fit.disparity:.2f}" if fit else ""), size=9)
    save_figure(figure, folder, f"latent-rooms-{subject.name}")


def _draw_depth(subject: Subject, looked_at: dict, rows: list[Row], setting: str, folder: Path) -> None:
    """The map becoming continuous with depth: some layers of one room, and the fit of every layer."""
    import matplotlib.pyplot as plt

    from eswm_gym.analysis.figures import draw_map, free_edges

    depth = len(looked_at["straight-wall", subject.name][1].vectors)
    layers = sorted({round(i) for i in np.linspace(0, depth - 1, min(5, depth))})
    figure = plt.figure(figsize=(2.6 * len(layers), 8.2))
    grid = figure.add_gridspec(3, 2 * len(layers))
    for line, method in enumerate(subject.each()):
        rooms, found = looked_at["straight-wall", method]
        for column, layer in enumerate(layers):
            axis = figure.add_subplot(grid[line, 2 * column : 2 * column + 2])
            embedding = isomap(found.vectors[layer], 2, NEIGHBORS)
            draw_map(axis, embedding, found.place, rooms.lattice.xy, free_edges(rooms))
            axis.set_title(f"{method}, layer {layer + 1}", size=10)
    for column, (metric, label) in enumerate(
        (("isomap_disparity", "Procrustes disparity"), ("isomap_correlation", "Spearman correlation"))
    ):
        axis = figure.add_subplot(grid[2, column * len(layers) : (column + 1) * len(layers)])
        for method in subject.each():
            draw_curve(axis, rows, setting, method, metric)
        axis.set(xlabel="layer", ylabel=label, ylim=(-0.1, 1.03))
        axis.legend(fontsize=8)
    save_figure(figure, folder, f"latent-depth-{subject.name}")


def _draw_tasks(subject: Subject, best: dict[str, int], folder: Path) -> None:
    """The maps of the three prediction tasks in one room."""
    import matplotlib.pyplot as plt

    from eswm_gym.analysis.figures import draw_map, draw_room, free_edges

    rng = subject.rng(5, 1)
    rooms = room_of_kind(rng, "straight-wall", subject.fitting(3))
    banks = several_banks(rng, rooms, ISOMAP_BANKS)
    figure = plt.figure(figsize=(12, 6))
    axis = figure.add_subplot(2, 4, 1)
    draw_room(axis, rooms)
    axis.set_title("room")
    for column, task in enumerate(("source", "action", "end")):
        found = activations(subject.model, queries_of(banks, task))  # type: ignore[arg-type]
        depth = len(found.vectors)
        embeddings = {layer: isomap(found.vectors[layer], 2, NEIGHBORS) for layer in range(depth // 2, depth)}
        fit = {layer: map_fit(e, found.place, rooms.lattice.xy).disparity for layer, e in embeddings.items()}
        layer = min(fit, key=lambda key: fit[key])
        for line, dimensions in enumerate((2, 3)):
            projection = {"projection": "3d"} if dimensions == 3 else {}
            axis = figure.add_subplot(2, 4, 4 * line + column + 2, **projection)
            embedding = embeddings[layer] if dimensions == 2 else isomap(found.vectors[layer], 3, NEIGHBORS)
            draw_map(axis, embedding, found.place, rooms.lattice.xy, free_edges(rooms))
            axis.set_title(f"{task} prediction, layer {layer + 1}", size=10)
    save_figure(figure, folder, f"latent-tasks-{subject.name}")


def gap_rows(subject: Subject, sizes: Sizes) -> Measured:
    """What the model believes of the gap between two clusters of memories."""
    if subject.fitting(3) != 3:
        return [], [], lambda folder: None
    rows = []
    for i, cue in enumerate(CUES):
        rng = subject.rng(6, i)
        rooms, cluster, _ = clusters(rng, sizes.gaps, cue)
        belief = gap_belief(subject.model, cluster_banks(rng, rooms, cluster), cluster)
        for metric, values in vars(belief).items():
            rows.append(mean(f"clusters-{cue}", subject.name, f"{metric}_mass", values, subject.seed))

    def draw(folder: Path) -> None:
        import matplotlib.pyplot as plt

        from eswm_gym.analysis.figures import draw_map, draw_room, free_edges

        figure, axes = plt.subplots(3, len(CUES), figsize=(3 * len(CUES), 8.5))
        for column, cue in enumerate(CUES):
            rng = subject.rng(7, column)
            one, cluster, _ = clusters(rng, 1, cue)
            rooms = take(one, np.zeros(40 if cue != "shape" else ISOMAP_BANKS, np.int64))
            of_each = np.repeat(cluster, len(rooms), 0)
            banks = cluster_banks(rng, rooms, of_each)
            draw_room(axes[0, column], one, cluster=cluster[0])
            axes[0, column].set_title(f"cue: {cue.replace('-', ' ')}")
            found = activations(subject.model, queries_of(banks, "end"))
            embedding = isomap(found.vectors[-1], 2, NEIGHBORS)
            edges = free_edges(one, observed=cluster[0] >= 0)
            edges = edges[cluster[0][edges[:, 0]] == cluster[0][edges[:, 1]]]
            draw_map(axes[1, column], embedding, found.place, one.lattice.xy, edges)
            axes[1, column].set_title(f"layer {len(found.vectors)}", size=10)
            mass = {r.metric.removesuffix("_mass"): r for r in rows if r.setting == f"clusters-{cue}"}
            errors = [[r.value - r.ci95[0], r.ci95[1] - r.value] for r in mass.values()]
            names = [name.replace("_", "\n") for name in mass]
            axes[2, column].bar(names, [r.value for r in mass.values()], yerr=np.array(errors).T, color="C0", width=0.6)
            axes[2, column].set_ylim(0, 1)
            axes[2, column].tick_params(axis="x", labelsize=8)
        axes[2, 0].set_ylabel("probability, across the gap")
        save_figure(figure, folder, f"latent-clusters-{subject.name}")

    return rows, [], draw


def grid_rows(subject: Subject, sizes: Sizes) -> Measured:
    """MiniGrid: sRSA among poses of one heading and among cells, layers chosen on other layouts; the map's figure."""
    where = poses(GridConfig().size)
    position = where[:, :2].astype(float)
    cells = np.unique(position, axis=0)
    rows: list[Row] = []
    best: dict[str, int] = {}
    for method, model in subject.each().items():
        other = _grid_srsa(subject, model, max(1, sizes.grids // 2), 0)
        found = _grid_srsa(subject, model, sizes.grids, 1)
        for metric in found:
            layer = int(other[metric].mean(1).argmax())
            rows.append(mean("minigrid", method, metric, found[metric][layer].tolist(), subject.seed))
            rows.append(Row("minigrid", method, f"{metric}_layer/chosen", layer + 1, n=other[metric].shape[1]))
            rows += _by_layer("minigrid", method, metric, found[metric])
        best[method] = int(other["srsa_one_heading"].mean(1).argmax())

    def draw(folder: Path) -> None:
        import matplotlib.pyplot as plt

        from eswm_gym.analysis.figures import draw_map, place_colors

        banks = _grid_banks(subject.rng(9), ISOMAP_BANKS)
        figure = plt.figure(figsize=(13, 8.4))
        headings = np.array([[0.22, 0.47, 0.72], [0.91, 0.49, 0.16], [0.35, 0.65, 0.35], [0.65, 0.35, 0.63]])
        for line, (method, model) in enumerate(subject.each().items()):
            # Mean over the moves of each pose, bank by bank: single moves lie apart by the action that is the answer.
            means = place_means(model, queries_of(banks, "action"), [best[method]], chunk=1)[0]
            place = np.nonzero(np.isfinite(means).all(2))[1]
            x = means[np.isfinite(means).all(2)]
            flat, right = isomap(x, 2, NEIGHBORS), where[place, 2] == 0
            alike = isomap(x[right], 2, NEIGHBORS)
            axis = figure.add_subplot(2, 4, 4 * line + 1)
            _draw_layout(axis, banks.rooms.grids[0], cells)
            axis.set_title("room" if line == 0 else "the same room", size=10)
            by_location, by_heading = place_colors(position), headings[where[:, 2]]
            nothing = np.empty((0, 2), np.int64)
            for column, (embedding, of, colors, title) in enumerate(
                (
                    (flat, place, by_location, "by location"),
                    (flat, place, by_heading, "by heading"),
                    (alike, place[right], by_location, "one heading"),
                )
            ):
                axis = figure.add_subplot(2, 4, 4 * line + 2 + column)
                draw_map(axis, embedding, of, position, nothing, colors)
                axis.set_title(f"{method}, layer {best[method] + 1}, {title}", size=10)
                if line == 1 and column == 1:
                    below = axis
        handles = [
            plt.Line2D([], [], marker="o", linestyle="", color=color, label=name)
            for color, name in zip(headings, ("right", "down", "left", "up"), strict=True)
        ]
        below.legend(
            handles=handles, title="heading", loc="upper center", ncols=4, bbox_to_anchor=(0.5, -0.02), fontsize=8
        )
        save_figure(figure, folder, f"latent-minigrid-{subject.name}")

    return rows, [], draw


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


def _draw_layout(axis, grid: np.ndarray, cells: np.ndarray) -> None:
    """A layout, floor in the colours of its places."""
    from eswm_gym.analysis.figures import WALL, place_colors
    from eswm_gym.rooms.grid import WALL as WALL_CLASS

    picture = np.ones((*grid.shape, 3))
    picture[:] = [int(WALL[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    for (x, y), color in zip(cells.astype(int), place_colors(cells), strict=True):
        if grid[y, x] != WALL_CLASS:
            picture[y, x] = color
    axis.imshow(picture)
    axis.axis("off")


def _by_layer(setting: str, method: str, metric: str, values: np.ndarray) -> list[Row]:
    """The mean of (depth, n) values, layer by layer."""
    return [
        Row(setting, method, f"{metric}/layer-{i + 1}", float(layer.mean()), n=len(layer))
        for i, layer in enumerate(values)
    ]


MEASURES = [srsa_rows, probe_rows, geodesic_rows, isomap_rows, gap_rows]


if __name__ == "__main__":
    main()
