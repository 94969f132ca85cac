"""Pictures of rooms and of the maps in the latent space, place by place in the same colours (needs matplotlib)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes

from eswm_gym.rooms import RoomBatch

INK, LINE, WALL_COLOR, HIDDEN_COLOR = "#333333", "#777777", "#3d3d3d", "#eeeeee"


def place_colors(positions: np.ndarray) -> np.ndarray:
    """(L, 3) float, a colour for each of (L, 2) positions: hue by direction, fuller away from the middle (OKLab)."""
    centred = positions - (positions.max(0) + positions.min(0)) / 2
    a, b = (0.17 * centred / max(1e-9, np.linalg.norm(centred, axis=1).max())).T
    light = np.full(len(centred), 0.75)
    root = np.stack(
        [
            light + 0.3963377774 * a + 0.2158037573 * b,
            light - 0.1055613458 * a - 0.0638541728 * b,
            light - 0.0894841775 * a - 1.2914855480 * b,
        ]
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(to_rgb @ root**3, 0, 1)
    return np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear).T


def draw_room(axis: Any, rooms: RoomBatch, cluster: np.ndarray | None = None) -> None:
    """Draw a hexagonal room: its places in their colours, walls dark, what is not observed pale, walls there hatched.

    Args:
        axis: matplotlib axes.
        rooms: the first of them is drawn.
        cluster: (L,) int, -1 for what is not observed; the locations of clusters but the first get a dark rim.
    """
    from matplotlib.patches import RegularPolygon

    xy, colors = rooms.lattice.xy, place_colors(rooms.lattice.xy)
    observed = rooms.observed[0] if cluster is None else cluster >= 0
    for i, centre in enumerate(xy):
        wall = rooms.walls[0, i]
        face = WALL_COLOR if wall and observed[i] else "#b8b8b8" if wall else colors[i] if observed[i] else HIDDEN_COLOR
        rim = INK if cluster is not None and cluster[i] > 0 else "white"
        hexagon = RegularPolygon(tuple(centre), 6, radius=0.56, facecolor=face, edgecolor=rim, linewidth=0.8)
        hexagon.set(hatch="////" if wall and not observed[i] else None, zorder=1 if rim == "white" else 2)
        axis.add_patch(hexagon)
    axis.set(xlim=(xy[:, 0].min() - 0.7, xy[:, 0].max() + 0.7), ylim=(xy[:, 1].max() + 0.7, xy[:, 1].min() - 0.7))
    axis.set_aspect("equal")
    axis.axis("off")


def draw_map(
    axis: Any,
    embedding: np.ndarray,
    place: np.ndarray,
    positions: np.ndarray,
    edges: np.ndarray,
    colors: np.ndarray | None = None,
) -> None:
    """Draw an embedding of activations, a dot each, and over it the places, neighbours joined.

    Args:
        axis: matplotlib axes, of three dimensions if the embedding is.
        embedding: (N, 2) or (N, 3) float; turned and mirrored to lie as the room does.
        place: (N,) int.
        positions: (L, 2) float.
        edges: (E, 2) int, places that are neighbours.
        colors: (L, 3); None: those of the positions.
    """
    colors = place_colors(positions) if colors is None else colors
    spread = embedding.std(0).mean()
    scaled = (embedding - embedding.mean(0)) / max(float(spread), 1e-12)
    turn = laid_out(scaled[:, :2], positions[place])
    scaled = np.concatenate([scaled[:, :2] @ turn, scaled[:, 2:]], 1)
    present = np.unique(place)
    middle = np.full((len(positions), scaled.shape[1]), np.nan)
    middle[present] = [scaled[place == i].mean(0) for i in present]
    axis.scatter(*scaled.T, s=5, c=colors[place], alpha=0.45, linewidths=0, rasterized=True)
    for a, b in edges:
        if np.isfinite(middle[[a, b]]).all():
            axis.plot(*middle[[a, b]].T, color=LINE, linewidth=0.7, zorder=3)
    axis.scatter(*middle[present].T, s=22, c=colors[present], edgecolors=INK, linewidths=0.5, zorder=4, alpha=1)
    if scaled.shape[1] == 3:
        axis.set_box_aspect((1, 1, 1), zoom=1.2)
    axis.set_aspect("equal", adjustable="datalim")
    if scaled.shape[1] == 2:
        axis.invert_yaxis()  # as in the room, y grows to the south
        axis.set(xticks=[], yticks=[])
        for side in axis.spines.values():
            side.set_color("#dddddd")
    else:
        axis.invert_yaxis()
        axis.set(xticklabels=[], yticklabels=[], zticklabels=[])
        axis.view_init(elev=42, azim=-75)


def laid_out(embedding: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """(2, 2) float, the turn, perhaps with a mirror, that brings an embedding (N, 2) nearest to positions (N, 2)."""
    return orthogonal_procrustes(embedding - embedding.mean(0), positions - positions.mean(0))[0]


def free_edges(rooms: RoomBatch, observed: np.ndarray | None = None) -> np.ndarray:
    """(E, 2) int, neighbours in the first of the rooms that are both free and observed."""
    free = ~rooms.walls[0] & (rooms.observed[0] if observed is None else observed)
    edges = rooms.lattice.edges
    return edges[free[edges].all(1)]
