"""Draws the figures of the documentation: `python docs/figures/make_figures.py` (needs matplotlib)."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, RegularPolygon  # noqa: E402

from eswm_gym.rooms import ACTION_NAMES, DISPLACEMENTS, Room  # noqa: E402
from eswm_gym.rooms.grid import CLASSES, HERE, GridConfig, generate_grids, pose_index, seen_cells, views_of  # noqa: E402

FOLDER = Path(__file__).parent
INK, SOFT, TEAL, ORANGE, PALE = "#24292f", "#8b949e", "#00796b", "#d9730d", "#e3f1ef"
FLOORS = {
    "unseen": "#3b3f45",
    "wall": "#6e7681",
    "empty": "#f4f4f4",
    "red": "#e5846f",
    "green": "#8cc98a",
    "blue": "#7fa8e0",
    "purple": "#b79ad6",
    "yellow": "#ead976",
    "grey": "#c4c8cc",
}


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(FOLDER / f"{name}.svg", bbox_inches="tight", metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def bare(axes: Axes) -> Axes:
    axes.set_aspect("equal")
    axes.axis("off")
    return axes


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, **style) -> None:
    style = {"arrowstyle": "-|>", "mutation_scale": 11, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0, **style}
    axes.add_patch(FancyArrowPatch(start, end, color=colour, **style))


def draw_room(axes: Axes, room: Room, walls: bool) -> None:
    xy = room.lattice.xy * [1, -1]
    for (x, y), state, wall in zip(xy, room.states, room.walls, strict=True):
        face = "#6e7681" if wall and walls else "white"
        axes.add_patch(RegularPolygon((x, y), 6, radius=0.56, facecolor=face, edgecolor=SOFT, linewidth=0.8))
        if not wall:
            axes.text(x, y, str(state), ha="center", va="center", fontsize=9, color=INK)
    axes.set_xlim(xy[:, 0].min() - 0.7, xy[:, 0].max() + 0.7)
    axes.set_ylim(xy[:, 1].min() - 0.7, xy[:, 1].max() + 0.7)


def memory_bank() -> None:
    """A room, a minimal spanning bank of it as a list, and the same bank laid out."""
    rng = np.random.default_rng(4)
    room = Room(2, rng.permutation(19), walls=[8, 9, 10])
    bank = room.memory_bank(rng)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.6, 3.3), width_ratios=[1, 0.9, 1])
    draw_room(bare(left), room, walls=True)
    left.set_title("The room, which the agent never sees", fontsize=10, color=INK)
    bare(middle).set_title("Its memory bank, in no order", fontsize=10, color=INK)
    for i, (source, action, end) in enumerate(bank):
        column, row = divmod(i, 9)
        middle.text(
            column,
            -row,
            f"({source}, {ACTION_NAMES[action]}, {end})",
            fontsize=8,
            family="monospace",
            ha="center",
            color=ORANGE if source == end else TEAL,
        )
    middle.set_xlim(-0.6, 1.6)
    middle.set_ylim(-9, 0.8)
    middle.set_aspect("auto")
    draw_room(bare(right), room, walls=False)
    right.set_title("What the memories say, put together", fontsize=10, color=INK)
    xy = room.lattice.xy * [1, -1]
    step = np.stack([DISPLACEMENTS[:, 0] + DISPLACEMENTS[:, 1] / 2, -DISPLACEMENTS[:, 1] * np.sqrt(3) / 2], 1)
    for source, action, end in bank:
        start = xy[room.location_of(source)]
        bump = source == end
        style = {"arrowstyle": "|-|,widthA=0,widthB=4", "mutation_scale": 1} if bump else {}
        arrow(
            right,
            tuple(start + 0.26 * step[action]),
            tuple(start + (0.44 if bump else 0.76) * step[action]),
            ORANGE if bump else TEAL,
            **style,
        )
    save(figure, "memory-bank")


def box(
    axes: Axes, x: float, y: float, width: float, height: float, text: str, face: str = "white", edge: str = SOFT
) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0.02,rounding_size=0.08", facecolor=face, edgecolor=edge
        )
    )
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9.5, color=INK, linespacing=1.4)


def world_model() -> None:
    """Bank and query go in, the masked part or "I don't know" comes out; and what an agent does with that."""
    figure, axes = plt.subplots(figsize=(8.6, 3.4))
    bare(axes).set_xlim(0, 10.4)
    axes.set_ylim(0, 4.1)
    box(axes, 0.1, 2.3, 2.6, 1.6, "memory bank\n(7, E, 3)\n(12, NW, 0)  …")
    box(axes, 0.1, 0.3, 2.6, 1.3, "query\n(7, NE, ?)")
    box(axes, 3.9, 1.2, 2.2, 1.7, "world model\nfrozen, one for\nall rooms", PALE, TEAL)
    box(axes, 7.4, 2.3, 2.9, 1.3, "“the move ends at 5”\np = 0.97")
    box(axes, 7.4, 0.5, 2.9, 1.3, "“I don’t know”", edge=ORANGE)
    for start, end in (
        ((2.75, 3.1), (3.85, 2.3)),
        ((2.75, 0.95), (3.85, 1.7)),
        ((6.15, 2.3), (7.35, 2.95)),
        ((6.15, 1.8), (7.35, 1.15)),
    ):
        arrow(axes, start, end, INK)
    save(figure, "world-model")


def loop() -> None:
    """The agent's loop."""
    figure, axes = plt.subplots(figsize=(8.6, 3.5))
    bare(axes).set_xlim(0, 10.4)
    axes.set_ylim(0, 4.3)
    box(axes, 0.2, 1.5, 2.3, 1.3, "imagine\nall moves from\nall known states", PALE, TEAL)
    box(axes, 4.0, 2.85, 2.5, 1.2, "plan\nwhere a way to\nthe goal is known")
    box(axes, 4.0, 0.25, 2.5, 1.2, "explore\nwhere there is no\ngoal or no known way")
    box(axes, 8.0, 1.5, 2.2, 1.3, "move, and\nremember the\ntransition")
    for start, end in (
        ((2.55, 2.5), (3.95, 3.3)),
        ((2.55, 1.8), (3.95, 1.0)),
        ((6.55, 3.4), (7.95, 2.5)),
        ((6.55, 0.9), (7.95, 1.8)),
    ):
        arrow(axes, start, end, INK)
    arrow(axes, (7.95, 2.15), (2.55, 2.15), ORANGE)
    axes.text(5.25, 2.28, "surprised: forget what is outdated, imagine anew", ha="center", fontsize=9, color=ORANGE)
    save(figure, "loop")


def draw_view(axes: Axes, view: np.ndarray, x0: float, y0: float, size: float = 1.0, edge: str = "white") -> None:
    """A view (25,) with the agent at the bottom, looking up."""
    cells = view.reshape(5, 5)  # [x, y]
    for x in range(5):
        for y in range(5):
            colour = FLOORS[CLASSES[cells[x, y]]]
            axes.add_patch(
                plt.Rectangle(
                    (x0 + x * size, y0 + (4 - y) * size), size, size, facecolor=colour, edgecolor="white", linewidth=0.6
                )
            )
    axes.add_patch(plt.Rectangle((x0, y0), 5 * size, 5 * size, fill=False, edgecolor=edge, linewidth=2))
    axes.add_patch(RegularPolygon((x0 + 2.5 * size, y0 + 0.45 * size), 3, radius=0.3 * size, facecolor=INK))


def overlap() -> None:
    """A MiniGrid room, two views of it, and how they lie to each other."""
    grid = generate_grids(np.random.default_rng(3), 1, GridConfig())
    poses = [(6, 5, 3), (7, 6, 2)]  # views that share seven cells
    views = views_of(grid, np.array([[pose_index(9, *pose) for pose in poses]]))[0]
    cells = seen_cells(9)[[pose_index(9, *pose) for pose in poses]]
    figure, axes = plt.subplots(figsize=(9.6, 3.2))
    bare(axes).set_xlim(-0.3, 31.5)
    axes.set_ylim(-0.6, 10.6)
    for y in range(9):
        for x in range(9):
            axes.add_patch(
                plt.Rectangle(
                    (x, 8 - y), 1, 1, facecolor=FLOORS[CLASSES[grid[0, y, x]]], edgecolor="white", linewidth=0.6
                )
            )
    for (x, y, heading), colour in zip(poses, (TEAL, ORANGE), strict=True):
        turn = (3 - heading) * np.pi / 2
        axes.add_patch(RegularPolygon((x + 0.5, 8.45 - y), 3, radius=0.34, orientation=turn, facecolor=colour))
    draw_view(axes, views[0], 11, 3.9, 0.9, TEAL)
    draw_view(axes, views[1], 16.6, 3.9, 0.9, ORANGE)
    axes.text(16, 2.6, "two views: no compass, no position", ha="center", fontsize=9.5, color=INK)
    axes.text(4.5, 9.4, "the room", ha="center", fontsize=9.5, color=INK)
    axes.text(26.5, 9.4, "how they overlap", ha="center", fontsize=9.5, color=INK)
    drawn: set[tuple[int, int]] = set()
    for view, seen, colour in zip(views, cells, (TEAL, ORANGE), strict=True):
        shown = [
            (cell % 9, cell // 9, kind)
            for i, (cell, kind) in enumerate(zip(seen, view, strict=True))
            if kind and i != HERE and 0 <= cell < 81
        ]
        for x, y, kind in shown:
            twice = (x, y) in drawn
            drawn.add((x, y))
            axes.add_patch(
                plt.Rectangle((22 + x, 8 - y), 1, 1, facecolor=FLOORS[CLASSES[kind]], edgecolor="white", linewidth=0.6)
            )
            if twice:
                axes.text(22.5 + x, 8.45 - y, "=", ha="center", va="center", fontsize=8, color=INK)
        xs, ys = [x for x, _, _ in shown], [y for _, y, _ in shown]
        axes.add_patch(
            plt.Rectangle(
                (22 + min(xs), 8 - max(ys)),
                max(xs) - min(xs) + 1,
                max(ys) - min(ys) + 1,
                fill=False,
                edgecolor=colour,
                linewidth=2,
            )
        )
    arrow(axes, (9.4, 5), (10.6, 5), SOFT)
    arrow(axes, (21.3, 5), (22.3, 5), SOFT)
    save(figure, "overlap")


def houses() -> None:
    """Houses from above, the agent in them, and what it would see there and at four other poses that look far."""
    from PIL import Image

    from eswm_gym.envs.indoor_camera import camera
    from eswm_gym.rooms.indoor import Space, draw_house

    lines = []
    for seed, n_rooms in ((11, 1), (14, 2), (23, 4)):
        rng = np.random.default_rng(seed)
        house = draw_house(rng, n_rooms)
        space = Space(house)
        poses = np.c_[space.draw_points(rng, 200), rng.uniform(-np.pi, np.pi, 200)]
        far = np.linalg.norm(space.seen(poses) - poses[:, None, :2], axis=-1).mean(1)
        chosen = poses[np.argsort(-far)[:40:8]]
        pictures = [camera().plan(house, {"agent": chosen[0]}), *(camera().picture(house, pose) for pose in chosen)]
        framed = [np.pad(picture, ((0, 6), (0, 6), (0, 0)), constant_values=255) for picture in pictures]
        lines.append(np.concatenate(framed, 1))
    sheet = Image.fromarray(np.concatenate(lines))
    sheet.resize((sheet.width * 2 // 3, sheet.height * 2 // 3), Image.Resampling.LANCZOS).save(
        FOLDER / "indoor.png", optimize=True
    )


if __name__ == "__main__":
    plt.rcParams.update(
        {"svg.fonttype": "path", "svg.hashsalt": "eswm", "font.family": "DejaVu Sans", "axes.titley": 1.0}
    )
    for draw in (memory_bank, world_model, loop, overlap, houses):
        draw()
