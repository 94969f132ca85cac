"""What is drawn of a room of MiniGrid beyond MiniGrid's own picture: poses, ways, a legend; and the room as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise

import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Wall
from minigrid.utils.rendering import fill_coords, point_in_triangle, rotate_fn

from eswm_gym.envs.rendering import BLACK, WHITE, Color, import_pygame
from eswm_gym.rooms.grid.checks import Pose

LETTERS = " #.rgbpye"  # of the classes
HEADINGS = ">v<^"
SIZE, GAP = 20, 6  # pixels of a sign in the legend, and around it


def draw_text(grid: np.ndarray, agent: Pose, goal: Pose | None) -> str:
    """The room as text: three characters for each cell, and a legend.

    Args:
        grid: (H, W) classes, indexed [y, x].
        agent, goal: their poses.
    """
    cells = [[f"{LETTERS[kind]}  " for kind in row] for row in grid.tolist()]
    marks = {goal: "!"} if goal else {}
    for (x, y, heading), mark in {**marks, agent: "*" if agent == goal else "@"}.items():
        cells[y][x] = f"{cells[y][x][0]}{HEADINGS[heading]}{mark}"
        if goal and agent[:2] == goal[:2] and agent != goal:  # both in one cell: the agent's heading shows
            cells[y][x] = f"{cells[y][x][0]}{HEADINGS[agent[2]]}&"
    legend = "@ agent" + ("  ! goal  * agent at goal  & goal, otherwise turned" if goal else "")
    floors = "# wall  . plain  r red  g green  b blue  p purple  y yellow  e grey"
    return "\n".join([*("".join(row).rstrip() for row in cells), legend, floors])


def draw_pose(image: np.ndarray, pose: Pose, color: Color, tile_size: int, small: bool = False) -> None:
    """Draw a triangle on a picture of the room, small ones at the side that they point to, four in a cell."""
    x, y, heading = pose
    tile = image[y * tile_size : (y + 1) * tile_size, x * tile_size : (x + 1) * tile_size]
    tile[_triangle(heading, tile_size, small)] = color


@cache
def _triangle(heading: int, tile_size: int, small: bool) -> np.ndarray:
    """(tile_size, tile_size) bool."""
    left, right, half = (0.72, 0.95, 0.13) if small else (0.35, 0.65, 0.15)
    triangle = point_in_triangle((left, 0.5 - half), (right, 0.5), (left, 0.5 + half))
    tile = np.zeros((tile_size, tile_size, 3), np.uint8)
    fill_coords(tile, rotate_fn(triangle, cx=0.5, cy=0.5, theta=np.pi / 2 * heading), (1, 1, 1))
    return tile[..., 0] > 0


def draw_way(image: np.ndarray, cells: Iterable[tuple[int, int]], color: Color, tile_size: int) -> None:
    """Draw a line through the centres of neighbouring cells on a picture of the room."""
    half = max(1, tile_size // 12)
    for ends in pairwise(cells):
        (left, top), (right, bottom) = (np.array(ends).min(0), np.array(ends).max(0))
        rows, columns = ((np.array(ends_of) * tile_size + tile_size // 2) for ends_of in ((top, bottom), (left, right)))
        image[rows[0] - half : rows[1] + half, columns[0] - half : columns[1] + half] = color


def signs(goal: bool, highlight: bool) -> dict[str, np.ndarray]:
    """A small picture for each thing that a picture of the room shows."""
    found = {"agent": Grid.render_tile(None, 0, tile_size=SIZE).copy()}
    if goal:
        found["goal"] = pose_sign(WHITE)
    found["wall"] = Grid.render_tile(Wall(), tile_size=SIZE)
    if highlight:
        found["in view"] = Grid.render_tile(None, highlight=True, tile_size=SIZE)
    return found


def blank() -> np.ndarray:
    """(20, 20, 3) uint8, a sign of plain floor to draw on."""
    return Grid.render_tile(None, tile_size=SIZE).copy()


def pose_sign(color: Color) -> np.ndarray:
    """(20, 20, 3) uint8, the sign of a pose."""
    sign = blank()
    draw_pose(sign, (0, 0, 0), color, SIZE)
    return sign


def with_legend(image: np.ndarray, items: Mapping[str, np.ndarray]) -> np.ndarray:
    """The picture with lines of signs and their names below it; its height is even, for codecs."""
    pygame = import_pygame()
    pygame.font.init()
    font = pygame.font.Font(None, SIZE)
    lines: list[list[np.ndarray]] = [[]]
    for name, sign in items.items():
        text = pygame.surfarray.array3d(font.render(name, True, BLACK, WHITE)).swapaxes(0, 1)
        item = np.full((SIZE + GAP, SIZE + 3 * GAP + text.shape[1], 3), 255, np.uint8)
        item[GAP // 2 : GAP // 2 + SIZE, GAP : GAP + SIZE] = sign
        item[(top := (SIZE + GAP - text.shape[0]) // 2) : top + text.shape[0], SIZE + 2 * GAP : -GAP] = text
        if lines[-1] and sum(one.shape[1] for one in [*lines[-1], item]) > image.shape[1]:
            lines.append([])
        lines[-1].append(item)
    strip = np.full((len(lines) * (SIZE + GAP) + image.shape[0] % 2, image.shape[1], 3), 255, np.uint8)
    for i, line in enumerate(lines):
        row = np.concatenate(line, 1)[:, : image.shape[1]]
        strip[i * (SIZE + GAP) : (i + 1) * (SIZE + GAP), : row.shape[1]] = row
    return np.concatenate([image, strip])
