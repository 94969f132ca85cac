"""What a camera shows of a house, drawn by MiniWorld (Chevalier-Boisvert et al., 2023) without a screen."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from eswm_gym.rooms.indoor.house import Colour, Door, Furniture, House, Room, Surface

HEIGHT, WALL_HEIGHT = 1.5, 2.74  # metres, of the camera and of the rooms
MARKS = {"agent": (1.0, 0.0, 0.0), "goal": (0.0, 0.8, 0.0)}


def missing() -> str | None:
    """Why nothing can be drawn here, or None where it can."""
    try:
        camera()
    except ImportError as error:
        return f"{error}; install the extra: pip install 'eswm-gym[indoor]'"
    except Exception as error:  # pyglet raises whatever EGL does
        return f"no OpenGL without a screen here ({type(error).__name__}: {error}); install EGL, such as Mesa's libegl1"
    return None


def camera(size: int = 224) -> Camera:
    """The camera of this process that takes pictures so many pixels wide and high; made at the first call.

    Raises:
        RuntimeError: in a process that was forked after a camera was made, where drawing would never end.
    """
    if _opened_by() != os.getpid():
        raise RuntimeError("a camera was made before this process was forked; start processes by 'spawn' instead")
    return _camera(size)


@cache
def _opened_by() -> int:
    """The process that made the first camera."""
    return os.getpid()


@cache
def _camera(size: int) -> Camera:
    return Camera(size)


class Camera:
    """Takes pictures of houses.

    Args:
        size: pixels of a picture along each side.
    """

    def __init__(self, size: int = 224) -> None:
        with contextlib.redirect_stdout(None):  # MiniWorld says how many samples a pixel has
            self._scene = _scene_class()(obs_width=size, obs_height=size, window_width=size, window_height=size)
        self.size = size

    def picture(self, house: House, pose: np.ndarray) -> np.ndarray:
        """(size, size, 3) uint8, what is seen from a pose (x, y, heading)."""
        self._scene.enter(house)
        x, y, heading = np.asarray(pose, float).tolist()
        self._scene.agent.pos = np.array([x, 0.0, -y])
        self._scene.agent.dir = math.pi / 2 - heading
        return self._scene.render_obs().copy()

    def plan(self, house: House, marks: Mapping[str, np.ndarray | None] | None = None) -> np.ndarray:
        """(size, size, 3) uint8, the house from above without its ceilings, and arrows at poses, by name in `MARKS`."""
        self._scene.enter(house, ceilings=False)
        self._scene.marks = [(pose, MARKS[name]) for name, pose in (marks or {}).items() if pose is not None]
        picture = self._scene.render_top_view(render_agent=True).copy()
        self._scene.marks = []
        return picture


@cache
def _scene_class() -> Any:
    """MiniWorld's environment with one of our houses in it; defined here, since importing it opens a display."""
    import pyglet

    pyglet.options["headless"] = True  # has to precede the import of miniworld
    from miniworld.entity import Box, ImageFrame, MeshEnt
    from miniworld.miniworld import MiniWorldEnv
    from miniworld.miniworld import Room as MiniWorldRoom
    from miniworld.opengl import Texture
    from miniworld.utils import get_file_path
    from pyglet import gl

    class Painted(MiniWorldRoom):
        """A room whose surfaces have the colours of a `Room`."""

        def dress(self, room: Room) -> None:
            self._gen_static_data(None, None)
            self.surfaces = room.wall, room.floor, room.ceiling
            self.wall_tex, self.floor_tex, self.ceil_tex = map(texture, self.surfaces)

        def _render(self) -> None:
            wall, floor, ceiling = self.surfaces
            shapes = [
                (gl.GL_POLYGON, self.floor_tex, floor, self.floor_verts, self.floor_texcs, [(0, 1, 0)] * 4),
                (gl.GL_QUADS, self.wall_tex, wall, self.wall_verts, self.wall_texcs, self.wall_norms),
            ]
            if not self.no_ceiling:
                shapes.append(
                    (gl.GL_POLYGON, self.ceil_tex, ceiling, self.ceil_verts, self.ceil_texcs, [(0, -1, 0)] * 4)
                )
            for kind, tex, surface, vertices, coordinates, normals in shapes:
                tex.bind()
                gl.glColor3f(*surface.colour)
                gl.glBegin(kind)
                for vertex, coordinate, normal in zip(vertices, coordinates, normals, strict=True):
                    gl.glNormal3f(*normal)
                    gl.glTexCoord2f(*coordinate)
                    gl.glVertex3f(*vertex)
                gl.glEnd()

    class Block(Box):
        """A box of any colour, drawn with what does not move."""

        is_static = True

        def __init__(self, colour: Colour, size: tuple[float, float, float], x: float, y: float) -> None:
            super().__init__("grey", np.array(size))
            self.color_vec, self.pos, self.dir = np.array(colour), np.array([x, 0.0, -y]), 0.0

        def randomize(self, params: Any, rng: Any) -> None:
            """Keep the colour."""

    def texture(surface: Surface) -> Any:
        """The variant of a texture that a surface names, whatever MiniWorld draws at random."""

        class Chosen:
            def integers(self, low: int, high: int) -> int:
                return low + surface.variant % (high - low)

        return Texture.get(surface.name, Chosen())

    def portraits() -> list[str]:
        """The names of MiniWorld's portraits, which it can draw from here on."""
        folder = Path(get_file_path("textures", "white_1", "png")).parent / "portraits"
        Texture.tex_paths |= {f"portrait {file.stem}": [str(file)] for file in folder.glob("*.png")}
        return sorted(name for name in Texture.tex_paths if name.startswith("portrait "))

    def piece(thing: Furniture) -> Any:
        if thing.kind == "box":
            width, depth, height = thing.size
            return Block(thing.colour, (width, height, depth), thing.x, thing.y)
        mesh = MeshEnt(thing.kind, thing.size[2])
        mesh.pos, mesh.dir = np.array([thing.x, 0.0, -thing.y]), math.pi / 2 - thing.heading
        return mesh

    def leaf(door: Door) -> Any:
        """What closes a door."""
        width, middle = door.span[1] - door.span[0], sum(door.span) / 2
        size = (0.06, 2.1, width) if door.across == 0 else (width, 2.1, 0.06)
        place = (door.at, middle) if door.across == 0 else (middle, door.at)
        return Block(door.colour, size, *place)

    class Scene(MiniWorldEnv):
        """One house at a time."""

        drawn: Any = None  # the scene whose house is in the list of what does not move, which all scenes share

        def __init__(self, **kwargs: Any) -> None:
            self.house, self.ceilings = House((Room((0.0, 1.0), (0.0, 1.0)),)), True
            self.marks: list[tuple[np.ndarray, Colour]] = []
            super().__init__(**kwargs)

        def enter(self, house: House, ceilings: bool = True) -> None:
            if (house, ceilings) != (self.house, self.ceilings) or Scene.drawn is not self:
                self.house, self.ceilings = house, ceilings
                self.shadow_window.switch_to()
                self.reset()

        def _gen_world(self) -> None:
            for number, room in enumerate(self.house.rooms):
                (x0, x1), (y0, y1) = room.x, room.y
                outline = np.array([[x1, -y0], [x1, -y1], [x0, -y1], [x0, -y0]])
                painted = Painted(outline, WALL_HEIGHT, no_ceiling=not self.ceilings)
                for door in self.house.doors:
                    if number in door.rooms:
                        low, high = door.span
                        if door.across == 0:
                            edge, span = (0 if door.at == x1 else 2), {"min_z": -high, "max_z": -low}
                        else:
                            edge, span = (1 if door.at == y1 else 3), {"min_x": low, "max_x": high}
                        painted.add_portal(edge, max_y=2.1, **span)
                painted.dress(room)
                self.rooms.append(painted)
            self.wall_segs = np.concatenate([room.wall_segs for room in self.rooms])
            self.entities += [piece(thing) for thing in self.house.furniture]
            self.entities += [leaf(door) for door in self.house.doors if door.closed]
            names = portraits()
            for p in self.house.pictures:
                place = np.array([p.x, p.height, -p.y])
                name = names[p.number % len(names)]
                self.entities.append(ImageFrame(place, math.pi / 2 - p.heading, name, p.width))
            self.agent.pos, self.agent.dir = np.zeros(3), 0.0
            self.entities.append(self.agent)

        def _render_world(self, frame_buffer: Any, render_agent: bool) -> np.ndarray:
            gl.glCallList(1)
            for (x, y, heading), colour in self.marks if render_agent else ():
                ahead = np.array([math.sin(heading), math.cos(heading)])
                right = np.array([ahead[1], -ahead[0]])
                gl.glDisable(gl.GL_TEXTURE_2D)
                gl.glColor3f(*colour)
                gl.glBegin(gl.GL_TRIANGLES)
                gl.glNormal3f(0, 1, 0)
                for a, r in ((0.4, 0.0), (-0.3, -0.25), (-0.3, 0.25)):
                    px, py = np.array([x, y]) + a * ahead + r * right
                    gl.glVertex3f(px, 2.6, -py)
                gl.glEnd()
            return frame_buffer.resolve()

        def _render_static(self) -> None:
            x, y, height = self.house.light
            self.light_pos = [x, height, -y]
            self.agent.cam_fov_y = 90
            super()._render_static()
            Scene.drawn = self

    return Scene
