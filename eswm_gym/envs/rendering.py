"""Pictures of a room, as pixels and as text. pygame is imported when the first pixels are drawn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from eswm_gym.rooms import Room

# Okabe and Ito's palette, which colour-blind people can tell apart; shape and brightness differ as well.
BLUE, ORANGE, VERMILLION = (0, 114, 178), (230, 159, 0), (213, 94, 0)
LIGHT_BLUE = (187, 222, 245)
WHITE, LIGHT, RIM, PALE, DARK, BLACK = ((v, v, v) for v in (255, 243, 196, 190, 64, 32))

PIXELS = 64  # from one location to the next
MARGIN = 16
LEGEND = 40
SMOOTH = 4  # drawn this many times larger, then scaled down (pygame is exact for 2 and 4 only)


@dataclass(frozen=True)
class Scene:
    """What there is to draw.

    Attributes:
        room: the room.
        agent: the agent's location.
        goal: the goal's location, if there is one.
        visited: (L,) bool, locations to shade, if any.
    """

    room: Room
    agent: int
    goal: int | None = None
    visited: np.ndarray | None = None


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
    gap = " " * (2 + digits % 2)  # makes a cell even, so that a row can be shifted by half of it
    shift = (digits + 2 + len(gap)) // 2
    rows = room.lattice.axial[:, 1]
    lines = [
        " " * shift * abs(row) + gap.join(cells[i] for i in np.flatnonzero(rows == row))
        for row in range(-room.radius, room.radius + 1)
    ]
    legend = "(agent)  .visited." if goal is None else "(agent)  [goal]  <agent at goal>"
    return "\n".join([*(line.rstrip() for line in lines), f"{legend}  #wall#"])


class Renderer:
    """Draws scenes with pygame. Needs no display, except for `show`."""

    def __init__(self) -> None:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled("pygame is not installed: pip install pygame-ce") from error
        self.pygame = pygame
        pygame.font.init()
        self.window: Any = None

    def draw(self, scene: Scene) -> np.ndarray:
        """Return the scene as a (height, width, 3) uint8 array."""
        return self.pygame.surfarray.array3d(self._paint(scene)).transpose(1, 0, 2).copy()

    def show(self, scene: Scene, fps: float) -> None:
        """Show the scene in a window, and wait so long that no more than `fps` pictures pass in a second."""
        pygame = self.pygame
        picture = self._paint(scene)
        if self.window is None:
            pygame.display.init()
            pygame.display.set_caption("ESWM")
            self.window = pygame.display.set_mode(picture.get_size())
            self.clock = pygame.time.Clock()
        self.window.blit(picture, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self.clock.tick(fps)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self.window is not None:
            self.pygame.display.quit()
            self.window = None

    def _paint(self, scene: Scene):
        """Return a pygame surface with the scene."""
        pygame = self.pygame
        room, unit = scene.room, PIXELS * SMOOTH
        xy = room.lattice.xy * unit
        corner = xy.max(0) + [unit / 2, unit / np.sqrt(3)] + MARGIN * SMOOTH
        even = np.ceil((2 * corner + [0, LEGEND * SMOOTH]) / (2 * SMOOTH)).astype(int) * 2  # for video codecs
        width, height = even * SMOOTH
        canvas = pygame.Surface((width, height))
        canvas.fill(WHITE)
        font = pygame.font.Font(None, round(unit * 0.5))
        for location, centre in enumerate(xy + corner):
            fill, ink = LIGHT, BLACK
            if room.walls[location]:
                fill, ink = DARK, PALE
            elif scene.visited is not None and scene.visited[location]:
                fill = LIGHT_BLUE
            self._hexagon(canvas, centre, unit, RIM)
            self._hexagon(canvas, centre, unit * 0.96, fill)
            if location == scene.goal:
                self._goal(canvas, centre, unit)
            if location == scene.agent:
                self._agent(canvas, centre, unit)
                ink = WHITE
            label = font.render(str(room.states[location]), True, ink)
            canvas.blit(label, label.get_rect(center=centre.round()))
        self._legend(canvas, scene, height - (LEGEND + MARGIN) * SMOOTH / 2)
        return pygame.transform.smoothscale(canvas, even)

    def _hexagon(self, canvas, centre, width, color) -> None:
        angles = np.pi / 6 + np.pi / 3 * np.arange(6)
        corners = centre + width / np.sqrt(3) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self.pygame.draw.polygon(canvas, color, corners)

    def _goal(self, canvas, centre, unit) -> None:
        self._hexagon(canvas, centre, unit * 0.96, VERMILLION)
        self._hexagon(canvas, centre, unit * 0.82, ORANGE)

    def _agent(self, canvas, centre, unit) -> None:
        self.pygame.draw.circle(canvas, WHITE, centre, unit * 0.36)
        self.pygame.draw.circle(canvas, BLUE, centre, unit * 0.33)

    def _legend(self, canvas, scene: Scene, y: float) -> None:
        small = PIXELS * SMOOTH * 0.4
        font = self.pygame.font.Font(None, round(small * 0.9))
        items = [("agent", lambda c: self._agent(canvas, c, small * 1.3))]
        if scene.goal is not None:
            items.append(("goal", lambda c: self._goal(canvas, c, small)))
        if scene.visited is not None:
            items.append(("visited", lambda c: self._hexagon(canvas, c, small, LIGHT_BLUE)))
        if scene.room.walls.any():
            items.append(("wall", lambda c: self._hexagon(canvas, c, small, DARK)))
        labels = [font.render(text, True, BLACK) for text, _ in items]
        gap = small * 0.9
        x = (canvas.get_width() - sum(small * 1.15 + label.get_width() + gap for label in labels) + gap) / 2
        for (_, draw), label in zip(items, labels, strict=True):
            draw(np.array([x + small / 2, y]))
            canvas.blit(label, label.get_rect(midleft=(round(x + small * 1.15), round(y))))
            x += small * 1.15 + label.get_width() + gap
