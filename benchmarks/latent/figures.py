"""The figures of `python benchmarks/latent --plot DIR`. Each function draws what one measure found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from common.plots import bars, curves, looks_of, place_legend, save_figure, words
from common.rows import Row

from eswm_gym.analysis import (
    CUES,
    KINDS,
    TASKS,
    Activations,
    activations,
    cluster_banks,
    clusters,
    isomap,
    map_fit,
    place_means,
    queries_of,
    room_of_kind,
    several_banks,
)
from eswm_gym.analysis.figures import WALL_COLOR, draw_map, draw_room, free_edges, place_colors
from eswm_gym.analysis.rooms import take
from eswm_gym.rooms import RoomBatch
from eswm_gym.rooms.grid import WALL, GridBankBatch, GridConfig, poses
from latent.subjects import ISOMAP_BANKS, NEIGHBORS, PAPER, Subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADINGS = ("right", "down", "left", "up")
HEADING_COLORS = np.array([[0.22, 0.47, 0.72], [0.91, 0.49, 0.16], [0.35, 0.65, 0.35], [0.65, 0.35, 0.63]])
# A room and the activations that were collected in it, by kind of room and method.
Seen = Mapping[tuple[str, str], tuple[RoomBatch, Activations]]


def draw_srsa(subject: Subject, rows: list[Row], setting: str, folder: Path) -> None:
    """sRSA of each layer and task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, metric, task in zip(axes, ("srsa", "srsa_end", "srsa_source"), ("action", "end", "source"), strict=True):
        curves(axis, along(rows, setting, metric), looks_of(subject.models()))
        for (method, of), value in PAPER.items():
            if of == metric and subject.name == "eswm":
                color = f"C{list(subject.models()).index(method)}"
                axis.axhline(value, color=color, linestyle=":", linewidth=1, label=f"paper, {method}")
        axis.set(xlabel="layer", title=f"{task} prediction", ylim=(0, 1.03))
    axes[0].set_ylabel("sRSA")
    place_legend(figure)
    save_figure(figure, folder, f"latent-srsa-{subject.name}")


def draw_probe(subject: Subject, rows: list[Row], setting: str, folder: Path) -> None:
    """Accuracy of the distance probe in each layer."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.5, 3.8), layout="constrained")
    curves(axis, along(rows, setting, "distance_probe_chosen"), looks_of(subject.models()))
    if subject.name == "eswm":
        axis.axhline(PAPER["eswm", "distance_probe"], color="C0", linestyle=":", linewidth=1, label="paper, eswm")
    axis.axhline(0.5, color=".6", linewidth=0.8)
    axis.set(xlabel="layer", ylabel="accuracy of the distance probe", ylim=(0.45, 1.02))
    place_legend(figure)
    save_figure(figure, folder, f"latent-probe-{subject.name}")


def draw_geodesics(subject: Subject, scatter: Mapping[str, tuple[np.ndarray, np.ndarray]], folder: Path) -> None:
    """Latent and true lengths (N,) of paths, by the title of each panel."""
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


def draw_models(seen: Seen, best: Mapping[str, int], folder: Path) -> None:
    """The maps of the models in the same rooms, in two dimensions and, in a second figure, in three."""
    shown = ("eswm-t", "eswm-t-untrained", "epn")  # of the paper's figure, those that learned something, and a control
    for name, dimensions in (("latent-models", 2), ("latent-models-3d", 3)):
        draw_kinds(name, seen, [(method, best[method], dimensions) for method in shown], folder)


def draw_kinds(name: str, seen: Seen, lines: Iterable[tuple[str, int, int]], folder: Path) -> None:
    """Rooms of some kinds, and under each the maps of it.

    Args:
        name: of the figure.
        seen: what was collected.
        lines: method, layer (from 0, or -1 for the last) and dimensions of each line of maps.
        folder: where to draw.
    """
    import matplotlib.pyplot as plt

    lines, kinds = list(lines), [kind for kind in KINDS if any(kind == key[0] for key in seen)]
    figure = plt.figure(figsize=(3 * len(kinds), 2.9 * (1 + len(lines))))
    for column, kind in enumerate(kinds):
        rooms = next(rooms for (of, _), (rooms, _) in seen.items() if of == kind)
        axis = figure.add_subplot(1 + len(lines), len(kinds), column + 1)
        draw_room(axis, rooms)
        axis.set_title(kind.replace("-", " "))
        for line, (method, layer, dimensions) in enumerate(lines):
            index = (1 + line) * len(kinds) + column + 1
            axis = _panel(figure, 1 + len(lines), len(kinds), index, dimensions)
            rooms, found = seen[kind, method]
            disparity = _draw_isomap(axis, rooms, found, layer, dimensions)
            title = method if layer < 0 else f"{method}, layer {layer + 1}"
            axis.set_title(title + disparity, size=9)
    save_figure(figure, folder, name)


def draw_depth(subject: Subject, seen: Seen, rows: list[Row], setting: str, folder: Path) -> None:
    """The map becoming continuous with depth: some layers of one room, and the fit of every layer."""
    import matplotlib.pyplot as plt

    depth = len(seen["straight-wall", subject.name][1].vectors)
    layers = sorted({round(i) for i in np.linspace(0, depth - 1, min(5, depth))})
    figure = plt.figure(figsize=(2.6 * len(layers), 8.6), layout="constrained")
    grid = figure.add_gridspec(3, 2 * len(layers))
    for line, method in enumerate(subject.models()):
        for column, layer in enumerate(layers):
            axis = figure.add_subplot(grid[line, 2 * column : 2 * column + 2])
            _draw_isomap(axis, *seen["straight-wall", method], layer, 2)
            axis.set_title(f"{method}, layer {layer + 1}", size=10)
    for column, (metric, label) in enumerate(
        (("isomap_disparity", "Procrustes disparity"), ("isomap_correlation", "Spearman correlation"))
    ):
        axis = figure.add_subplot(grid[2, column * len(layers) : (column + 1) * len(layers)])
        curves(axis, along(rows, setting, metric), looks_of(subject.models()))
        axis.set(xlabel="layer", ylabel=label, ylim=(-0.1, 1.03))
    place_legend(figure)
    save_figure(figure, folder, f"latent-depth-{subject.name}")


def draw_tasks(subject: Subject, folder: Path) -> None:
    """The maps of the three prediction tasks in one room."""
    import matplotlib.pyplot as plt

    rng = subject.rng(5, 1)
    rooms = room_of_kind(rng, "straight-wall", subject.radius(3))
    banks = several_banks(rng, rooms, ISOMAP_BANKS)
    figure = plt.figure(figsize=(12, 6))
    axis = figure.add_subplot(2, 4, 1)
    draw_room(axis, rooms)
    axis.set_title("room")
    for column, task in enumerate(TASKS):
        found = activations(subject.model, queries_of(banks, task))
        depth = len(found.vectors)
        fit = {
            layer: map_fit(isomap(found.vectors[layer], 2, NEIGHBORS), found.place, rooms.lattice.xy).disparity
            for layer in range(depth // 2, depth)
        }
        layer = min(fit, key=lambda key: fit[key])
        for line, dimensions in enumerate((2, 3)):
            axis = _panel(figure, 2, 4, 4 * line + column + 2, dimensions)
            _draw_isomap(axis, rooms, found, layer, dimensions)
            axis.set_title(f"{task} prediction, layer {layer + 1}", size=10)
    save_figure(figure, folder, f"latent-tasks-{subject.name}")


def draw_clusters(subject: Subject, rows: list[Row], folder: Path) -> None:
    """Two clusters of memories: the room, the map, and what is predicted of moves from one to the other."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(3, len(CUES), figsize=(3 * len(CUES), 9), layout="constrained")
    for column, cue in enumerate(CUES):
        rng = subject.rng(7)  # so that all clusters are turned the same way
        one, cluster, _ = clusters(rng, 1, cue)
        rooms = take(one, np.zeros(ISOMAP_BANKS if cue == "shape" else 4 * ISOMAP_BANKS, np.int64))
        banks = cluster_banks(rng, rooms, np.repeat(cluster, len(rooms), 0))
        draw_room(axes[0, column], one, cluster=cluster[0])
        axes[0, column].set_title(f"cue: {cue.replace('-', ' ')}")
        found = activations(subject.model, queries_of(banks, "end"))
        embedding = isomap(found.vectors[-1], 2, NEIGHBORS)
        edges = free_edges(one, observed=cluster[0] >= 0)
        edges = edges[cluster[0][edges[:, 0]] == cluster[0][edges[:, 1]]]
        draw_map(axes[1, column], embedding, found.place, one.lattice.xy, edges)
        axes[1, column].set_title(f"layer {len(found.vectors)}", size=10)
        some = [row for row in rows if row.setting == f"clusters-{cue}"]
        mass = [row for row in some if row.method == subject.name]
        bars(axes[2, column], mass, looks_of(map(_mass, mass), ["C0"]), group=lambda row: "", label=_mass)
        axes[2, column].set_title("probability, across the gap", size=10)
        [ideal] = [row.value for row in some if row.method == "ideal"]
        axes[2, column].plot([ideal, ideal], [0.6, 1.4], color="C1", linewidth=2, label="could be known")
        axes[2, column].set_xlim(0, 1.03)
    place_legend(figure)
    save_figure(figure, folder, f"latent-clusters-{subject.name}")


def draw_grid(subject: Subject, banks: GridBankBatch, best: Mapping[str, int], folder: Path) -> None:
    """MiniGrid: the room and its maps, coloured by location and by heading, in two and three dimensions.

    Args:
        subject: of MiniGrid.
        banks: some of one layout.
        best: layer of each method, from 0.
        folder: where to draw.
    """
    import matplotlib.pyplot as plt

    where = poses(GridConfig().size)
    position = where[:, :2].astype(float)
    by_location, by_heading = place_colors(position), HEADING_COLORS[where[:, 2]]
    figure = plt.figure(figsize=(16, 7))
    for line, (method, model) in enumerate(subject.models().items()):
        # Mean over the moves of each pose, bank by bank: single moves lie apart by the action that is the answer.
        means = place_means(model, queries_of(banks, "action"), [best[method]], chunk=1)[0]
        place = np.nonzero(np.isfinite(means).all(2))[1]
        x = means[np.isfinite(means).all(2)]
        right = where[place, 2] == 0
        axis = figure.add_subplot(2, 5, 5 * line + 1)
        _draw_layout(axis, banks.rooms.grids[0], np.unique(position, axis=0))
        axis.set_title("room" if line == 0 else "the same room", size=10)
        flat, deep, alike = isomap(x, 2, NEIGHBORS), isomap(x, 3, NEIGHBORS), isomap(x[right], 2, NEIGHBORS)
        for column, (embedding, of, colors, title) in enumerate(
            (
                (flat, place, by_location, "by location"),
                (flat, place, by_heading, "by heading"),
                (deep, place, by_location, "by location"),
                (alike, place[right], by_location, "facing right"),
            )
        ):
            axis = _panel(figure, 2, 5, 5 * line + 2 + column, embedding.shape[1])
            draw_map(axis, embedding, of, position, np.empty((0, 2), np.int64), colors)
            axis.set_title(f"{method}, layer {best[method] + 1}, {title}", size=10)
            if line == 1 and column == 1:
                below = axis
    handles = [
        plt.Line2D([], [], marker="o", linestyle="", color=color, label=name)
        for color, name in zip(HEADING_COLORS, HEADINGS, strict=True)
    ]
    below.legend(handles=handles, title="heading", loc="upper center", ncols=4, bbox_to_anchor=(0.5, -0.02), fontsize=8)
    save_figure(figure, folder, f"latent-minigrid-{subject.name}")


def along(rows: Iterable[Row], setting: str, metric: str) -> list[Row]:
    """The rows of a metric along the layers."""
    return [row for row in rows if (row.setting, row.metric, row.along) == (setting, metric, "layer")]


def _mass(row: Row) -> str:
    """What the probability is of."""
    return words(row.metric.removesuffix("_mass"))


def _panel(figure: Figure, lines: int, columns: int, index: int, dimensions: int) -> Axes:
    """One panel of a figure, flat or not."""
    return figure.add_subplot(lines, columns, index, **({"projection": "3d"} if dimensions == 3 else {}))


def _draw_isomap(axis: Axes, rooms: RoomBatch, found: Activations, layer: int, dimensions: int) -> str:
    """Draw a layer's map of the first room; returns the fit of a flat one, in words."""
    embedding = isomap(found.vectors[layer], dimensions, NEIGHBORS)
    draw_map(axis, embedding, found.place, rooms.lattice.xy, free_edges(rooms))
    if dimensions == 3:
        return ""
    return f": disparity {map_fit(embedding, found.place, rooms.lattice.xy).disparity:.2f}"


def _draw_layout(axis: Axes, grid: np.ndarray, cells: np.ndarray) -> None:
    """A layout, floor in the colours of its places."""
    picture = np.ones((*grid.shape, 3))
    picture[:] = [int(WALL_COLOR[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    for (x, y), color in zip(cells.astype(int), place_colors(cells), strict=True):
        if grid[y, x] != WALL:
            picture[y, x] = color
    axis.imshow(picture)
    axis.axis("off")
