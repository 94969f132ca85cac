"""Pictures of a room, as pixels and as text. pygame is imported when the first pixels are drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from eswm_gym.rooms import DISPLACEMENTS, Lattice, Room
from eswm_gym.rooms.lattice.geometry import axial_to_xy

# Okabe and Ito's palette, which colour-blind people can tell apart; shape and brightness differ as well.
BLUE, ORANGE, VERMILLION = (0, 114, 178), (230, 159, 0), (213, 94, 0)
GREEN, PURPLE = (0, 128, 96), (170, 70, 130)
LIGHT_BLUE = (187, 222, 245)
Color = tuple[int, int, int]
WHITE, LIGHT, RIM, PALE, DARK, BLACK = ((v, v, v) for v in (255, 243, 196, 190, 64, 32))

PIXELS = 64  # from one location to the next
MARGIN = 16
LEGEND = 40  # a line of it
SPREAD = {"pose": 2}  # units between cells, by the lattice's shape: four tiles lie in one; else a tile is a cell
SMOOTH = 4  # drawn this many times larger, then scaled down (pygame is exact for 2 and 4 only)


@dataclass(frozen=True)
class Move:
    """A move that an agent believes in: an arrow to where it ends, or a bar where it is blocked.

    Attributes:
        start, end: locations; the same if the move is blocked.
        action: the move.
        probability: how strongly it is drawn.
    """

    start: int
    action: int
    end: int
    probability: float = 1.0


@dataclass(frozen=True)
class Overlay:
    """What an agent believes of a hexagonal room, in terms of locations.

    Attributes:
        known: locations that it knows.
        remembered: moves in its memory bank.
        imagined: moves that it imagines.
        unknown: moves (location, action) that it knows nothing of.
        plan: locations along its plan, the agent's first.
        forgotten: moves that it has just deleted from its memory bank.
    """

    known: Sequence[int] = ()
    remembered: Sequence[Move] = ()
    imagined: Sequence[Move] = ()
    unknown: Sequence[tuple[int, int]] = ()
    plan: Sequence[int] = ()
    forgotten: Sequence[Move] = ()


@dataclass(frozen=True)
class Scene:
    """What there is to draw.

    Attributes:
        room: the room.
        agent: the agent's location.
        goal: the goal's location, if there is one.
        visited: (L,) bool, locations to shade, if any.
        overlay: what the agent believes, drawn over the room; pixels only.
    """

    room: Room
    agent: int
    goal: int | None = None
    visited: np.ndarray | None = None
    overlay: Overlay | None = None


def draw_text(scene: Scene) -> str:
    """Return the room as text, one line for each row of locations, and a legend."""
    room, goal = scene.room, scene.goal
    marks = np.full(room.n_locations, "  ")
    if scene.visited is not None:
        marks[scene.visited] = ".."
    marks[room.walls] = "##"
    if goal is not None:
        marks[goal] = "[]"
    marks[scene.agent] = "<>" if scene.agent == goal else "()"
    digits = len(str(room.states.max()))
    cells = [f"{mark[0]}{state:>{digits}}{mark[1]}" for mark, state in zip(marks, room.states, strict=True)]
    unit = digits + 4 + digits % 2  # even, so that a row can be shifted by half of it
    x, y = (_xy(room.lattice) - _xy(room.lattice).min(0)).T
    lines = []
    for row in np.unique(y.round(6)):
        lines.append("")
        for i in np.flatnonzero(y.round(6) == row)[np.argsort(x[y.round(6) == row])]:
            lines[-1] = lines[-1].ljust(round(x[i] * unit)) + cells[i]
    legend = "(agent)  .visited." if goal is None else "(agent)  [goal]  <agent at goal>"
    return "\n".join([*(line.rstrip() for line in lines), f"{legend}  #wall#"])


def import_pygame() -> Any:
    """pygame, which draws without a display.

    Raises:
        DependencyNotInstalled: if it is missing.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled("pygame is not installed: pip install pygame-ce") from error
    return pygame


class Screen:
    """A window of its own, which shows pictures and knows nothing of other windows.

    Closing one of MiniGrid's own windows closes all that pygame has.
    """

    def __init__(self) -> None:
        self.pygame = import_pygame()
        self.window: Any = None

    def __reduce__(self) -> tuple[type[Screen], tuple[()]]:
        return type(self), ()

    def show(self, picture: np.ndarray, fps: float) -> None:
        """Show a (height, width, 3) uint8 picture, and wait so long that no more than `fps` pass in a second."""
        pygame = self.pygame
        if self.window is None:
            pygame.display.init()
            self.window = pygame.Window("ESWM", (picture.shape[1], picture.shape[0]))
            self.clock = pygame.time.Clock()
        pygame.surfarray.blit_array(self.window.get_surface(), picture.swapaxes(0, 1))
        pygame.event.pump()
        self.window.flip()
        self.clock.tick(fps)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self.window is not None:
            self.window.destroy()
            self.window = None


class Renderer:
    """Draws scenes with pygame. Needs no display, except for `show`."""

    def __init__(self) -> None:
        self.pygame = import_pygame()
        self.pygame.font.init()
        self.screen = Screen()

    def __reduce__(self) -> tuple[type[Renderer], tuple[()]]:
        return type(self), ()  # a window can be neither copied nor pickled

    def draw(self, scene: Scene) -> np.ndarray:
        """Return the scene as a (height, width, 3) uint8 array."""
        return self.pygame.surfarray.array3d(self._paint(scene)).transpose(1, 0, 2).copy()

    def show(self, scene: Scene, fps: float) -> None:
        """Show the scene in a window, and wait so long that no more than `fps` pictures pass in a second."""
        self.screen.show(self.draw(scene), fps)

    def close(self) -> None:
        """Close the window, if there is one."""
        self.screen.close()

    def _paint(self, scene: Scene):
        """Return a pygame surface with the scene."""
        pygame = self.pygame
        room, unit, overlay = scene.room, PIXELS * SMOOTH, scene.overlay
        self.tile = _tile(room.lattice)
        xy = _xy(room.lattice) * unit
        corner = xy.max(0) + self.tile.max(0) * unit + MARGIN * SMOOTH
        legend = self._legend(scene, 2 * corner[0] - MARGIN * SMOOTH)
        even = np.ceil((2 * corner + [0, len(legend) * LEGEND * SMOOTH]) / (2 * SMOOTH)).astype(int) * 2  # for codecs
        width, height = even * SMOOTH
        canvas = pygame.Surface((width, height))
        canvas.fill(WHITE)
        centres = xy + corner
        shaded = np.zeros(room.n_locations, bool) if scene.visited is None else scene.visited.copy()
        if overlay is not None:
            shaded = np.isin(np.arange(room.n_locations), list(overlay.known))
        for location, centre in enumerate(centres):
            self._polygon(canvas, centre, unit, RIM)
            fill = DARK if room.walls[location] else LIGHT_BLUE if shaded[location] else LIGHT
            self._polygon(canvas, centre, unit * 0.96, fill)
            if location == scene.goal:
                self._goal(canvas, centre, unit)
        if overlay is not None:
            self._line(canvas, centres[list(overlay.plan)])
        self._agent(canvas, centres[scene.agent], unit)
        font = pygame.font.Font(None, round(unit * (0.5 if overlay is None else 0.42)))
        for location, centre in enumerate(centres):
            ink = PALE if room.walls[location] else WHITE if location == scene.agent else BLACK
            self._text(canvas, font, str(room.states[location]), centre, ink)
        if overlay is not None:
            self._beliefs(canvas, room, centres, overlay)
        for i, items in enumerate(legend[::-1]):
            self._legend_line(canvas, items, height - (LEGEND * (i + 0.5) + MARGIN / 2) * SMOOTH)
        return pygame.transform.smoothscale(canvas, even)

    def _beliefs(self, canvas, room: Room, centres: np.ndarray, overlay: Overlay) -> None:
        def draw(move: Move, color, thickness: float, crossed: bool = False) -> None:
            faded = np.array(color) * move.probability + np.array(LIGHT) * (1 - move.probability)
            color, ends = tuple(faded.round()), centres[[move.start, move.end]]
            if move.start == move.end:
                middle = self._bar(canvas, ends[0], _direction(move.action), color, thickness)
            else:
                middle = self._arrow(canvas, ends, color, thickness)
            if crossed:
                self._cross(canvas, middle)

        for move in sorted(overlay.imagined, key=lambda move: move.probability):
            true = room.targets[move.start, move.action] == move.end
            draw(move, GREEN if true else PURPLE, 0.04)
        for move in overlay.remembered:
            draw(move, BLACK, 0.065)
        for move in overlay.forgotten:
            draw(move, VERMILLION, 0.05, crossed=True)
        font = self.pygame.font.Font(None, round(PIXELS * SMOOTH * 0.5))
        for x, y in {tuple(place) for place in self._marks(room, centres, overlay)}:
            self.pygame.draw.circle(canvas, WHITE, (x, y), PIXELS * SMOOTH * 0.16)
            self._text(canvas, font, "?", (x, y), VERMILLION)

    def _marks(self, room: Room, centres: np.ndarray, overlay: Overlay) -> Iterator[np.ndarray]:
        """Where question marks go: where an unknown move leads, or at the border to what is known or outside."""
        for location, action in overlay.unknown:
            ahead = room.lattice.neighbors[location, action]
            if ahead >= 0 and ahead not in overlay.known:
                yield centres[ahead] - [0, PIXELS * SMOOTH * 0.34]
            else:
                yield (centres[location] + _direction(action) * PIXELS * SMOOTH * 0.42).round(6)

    def _arrow(self, canvas, ends: np.ndarray, color, thickness: float) -> np.ndarray:
        """An arrow between two centres (2, 2); returns its middle."""
        unit = PIXELS * SMOOTH
        start, end = ends
        ahead = (end - start) / np.linalg.norm(end - start)
        side = _side(ahead) * unit  # arrows of the opposite direction run on the other side
        tail, tip = start + ahead * unit * 0.3 + side * 0.09, end - ahead * unit * 0.3 + side * 0.09
        neck = tip - ahead * unit * 0.14
        self._stroke(canvas, tail, neck, color, thickness)
        self.pygame.draw.polygon(canvas, color, [tip, neck + side * 0.08, neck - side * 0.08])
        return (tail + tip) / 2

    def _bar(self, canvas, start: np.ndarray, ahead: np.ndarray, color, thickness: float) -> np.ndarray:
        """A bar where a move from a centre is blocked; returns its middle."""
        unit = PIXELS * SMOOTH
        middle, side = start + ahead * unit * 0.43, _side(ahead) * unit * 0.22
        self._stroke(canvas, middle - side, middle + side, color, thickness * 1.2)
        return middle

    def _cross(self, canvas, middle: np.ndarray) -> None:
        for way in ([1, 1], [1, -1]):
            arm = np.array(way) * PIXELS * SMOOTH * 0.1
            self._stroke(canvas, middle - arm, middle + arm, VERMILLION, 0.05)

    def _stroke(self, canvas, start, end, color, thickness: float) -> None:
        ahead = (end - start) / max(np.linalg.norm(end - start), 1e-9)
        side = _side(ahead) * PIXELS * SMOOTH * thickness / 2
        self.pygame.draw.polygon(canvas, color, [start + side, end + side, end - side, start - side])

    def _line(self, canvas, points: np.ndarray) -> None:
        for start, end in pairwise(points):
            self._stroke(canvas, start, end, ORANGE, 0.16)
        for point in points:
            self.pygame.draw.circle(canvas, ORANGE, point, PIXELS * SMOOTH * 0.08)

    def _text(self, canvas, font, text: str, centre, ink) -> None:
        label = font.render(text, True, ink)
        canvas.blit(label, label.get_rect(center=np.round(centre)))

    def _polygon(self, canvas, centre, width, color) -> None:
        self.pygame.draw.polygon(canvas, color, centre + self.tile * width)

    def _goal(self, canvas, centre, unit) -> None:
        self._polygon(canvas, centre, unit * 0.96, VERMILLION)
        self._polygon(canvas, centre, unit * 0.82, ORANGE)

    def _agent(self, canvas, centre, unit) -> None:
        self.pygame.draw.circle(canvas, WHITE, centre, unit * 0.36)
        self.pygame.draw.circle(canvas, BLUE, centre, unit * 0.33)

    def _legend(self, scene: Scene, width: float) -> list[list[tuple[Any, Any]]]:
        """Lines of (how to draw a sign at a centre, its label), which do not depend on what an overlay holds."""
        small = PIXELS * SMOOTH * 0.4
        items: list[tuple[str, Callable]] = [("agent", lambda on, c: self._agent(on, c, small * 1.3))]
        if scene.goal is not None:
            items.append(("goal", lambda on, c: self._goal(on, c, small)))
        if scene.visited is not None or scene.overlay is not None:
            word = "visited" if scene.overlay is None else "known"
            items.append((word, lambda on, c: self._polygon(on, c, small, LIGHT_BLUE)))
        if scene.room.walls.any() or scene.overlay is not None:
            items.append(("wall", lambda on, c: self._polygon(on, c, small, DARK)))
        if scene.overlay is not None:
            apart = np.array([[-0.48, -0.09], [0.48, -0.09]]) * PIXELS * SMOOTH
            across = np.array([[-0.15, 0.0], [0.15, 0.0]]) * PIXELS * SMOOTH
            big = self.pygame.font.Font(None, round(PIXELS * SMOOTH * 0.5))
            items += [
                ("memory", lambda on, c: self._arrow(on, c + apart, BLACK, 0.065)),
                ("imagined", lambda on, c: self._arrow(on, c + apart, GREEN, 0.04)),
                ("wrongly", lambda on, c: self._arrow(on, c + apart, PURPLE, 0.04)),
                ("forgotten", lambda on, c: self._cross(on, self._arrow(on, c + apart, VERMILLION, 0.05))),
                ("unknown", lambda on, c: self._text(on, big, "?", c, VERMILLION)),
                ("plan", lambda on, c: self._line(on, c + across)),
            ]
        font = self.pygame.font.Font(None, round(small * 0.9))
        lines: list[list[tuple[Any, Any]]] = [[]]
        for text, draw in items:
            label = font.render(text, True, BLACK)
            if self._legend_width([*lines[-1], (draw, label)]) > width:
                lines.append([])
            lines[-1].append((draw, label))
        return lines

    def _legend_width(self, items) -> float:
        small = PIXELS * SMOOTH * 0.4
        return sum(small * 2.05 + label.get_width() for _, label in items) - small * 0.9

    def _legend_line(self, canvas, items, y: float) -> None:
        small = PIXELS * SMOOTH * 0.4
        x = (canvas.get_width() - self._legend_width(items)) / 2
        for draw, label in items:
            draw(canvas, np.array([x + small / 2, y]))
            canvas.blit(label, label.get_rect(midleft=(round(x + small * 1.15), round(y))))
            x += small * 2.05 + label.get_width()


def _xy(lattice: Lattice) -> np.ndarray:
    """(L, 2) float, where to draw locations, in units and around the middle of the picture."""
    xy = lattice.xy * SPREAD.get(lattice.shape or "", 1)
    return xy - (xy.min(0) + xy.max(0)) / 2


def _tile(lattice: Lattice) -> np.ndarray:
    """(corners, 2) float, the tile drawn for a location: a hexagon, a square, or for a pose a square on its corner."""
    n, width, turn = {"hexagon": (6, 1 / np.sqrt(3), np.pi / 6), "pose": (4, 1 / 2, 0)}.get(
        lattice.shape or "", (4, 1 / np.sqrt(2), np.pi / 4)
    )
    angles = turn + 2 * np.pi / n * np.arange(n)
    return width * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _direction(action: int) -> np.ndarray:
    """The step (x, y) of an action on hexagons, one unit long; y grows to the south."""
    return axial_to_xy(DISPLACEMENTS[action])


def _side(ahead: np.ndarray) -> np.ndarray:
    """A direction (x, y) turned by 90 degrees."""
    return np.array([-ahead[1], ahead[0]])
