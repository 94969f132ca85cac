"""What an agent believes at a step, and pictures of it drawn over the true room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from eswm_gym.agents.eswm_agent import ESWMAgent
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.agents.states import view_number
from eswm_gym.envs.base import RoomEnv
from eswm_gym.envs.minigrid_rendering import SIZE, blank, draw_pose, draw_way, pose_sign, signs, with_legend
from eswm_gym.envs.rendering import WHITE, Color, Move, Overlay, Renderer, Scene
from eswm_gym.rooms import Room
from eswm_gym.rooms.grid import GridBatch, cells_along, poses, views_of

BRIGHT_GREEN, BRIGHT_ORANGE = (60, 220, 150), (255, 170, 0)  # on MiniGrid's dark floors


@dataclass(frozen=True)
class Beliefs:
    """What an agent believes; states are numbers, also where they are views.

    Attributes:
        state: where it is.
        memories: its memory bank, the oldest first.
        known: the states that it remembers, and its own.
        imagined: moves that the bank does not hold, (s_s, a, s_e, probability); blocked ones stay where they are. A
            state may be one that it has never seen: views can be imagined too.
        frontier: moves (state, action) from states in its table of which it does not know where they lead.
        plan: the rest of its plan, (action, state that it leads to).
        forgotten: memories that it has just deleted.
    """

    state: int
    memories: tuple[Transition, ...]
    known: tuple[int, ...]
    imagined: tuple[tuple[int, int, int, float], ...]
    frontier: tuple[tuple[int, int], ...]
    plan: tuple[tuple[int, int], ...]
    forgotten: tuple[Transition, ...] = ()

    def near(self, states: Collection[int]) -> Beliefs:
        """The same beliefs, but of moves those alone that start at one of these states."""
        return replace(
            self,
            memories=tuple(move for move in self.memories if move[0] in states),
            imagined=tuple(move for move in self.imagined if move[0] in states),
            frontier=tuple(move for move in self.frontier if move[0] in states),
        )

    def to_dict(self) -> dict[str, Any]:
        """As lists and numbers, ready for JSON."""
        return asdict(self)


def beliefs(agent: ESWMAgent, state: Any, forgotten: Iterable[Transition] = ()) -> Beliefs:
    """What an agent believes where it is; looking changes nothing.

    The agent has a plan, and names for the places around it, only after `act`.

    Args:
        agent: with any model.
        state: where it is, as an observation shows it or as its number.
        forgotten: what it has just deleted, `info.get("forgotten", ())`, which it does not keep.
    """
    knowledge = agent.knowledge.copy()  # which keeps what has to be imagined now, so that the agent does not
    state = knowledge.number(state)
    table = knowledge.imagined(state)
    imagined, frontier = [], []
    for source, ends, probabilities in zip(table.states.tolist(), table.end.tolist(), table.probability, strict=True):
        for action, (end, probability) in enumerate(zip(ends, probabilities.tolist(), strict=True)):
            if agent.memory.end_of(source, action) is not None:
                continue
            if end == UNKNOWN:
                frontier.append((source, action))
            else:
                imagined.append((source, action, end, round(probability, 3)))
    return Beliefs(
        state=state,
        memories=tuple(agent.memory),
        known=tuple(sorted({*agent.memory.states, state})),
        imagined=tuple(imagined),
        frontier=tuple(frontier),
        plan=tuple((action, int(end)) for action, end in agent.route),
        forgotten=tuple(forgotten),
    )


def poses_of_views(grid: np.ndarray) -> dict[int, list[int]]:
    """The free poses of a room of MiniGrid, given as (H, W) classes, that show each view, by the view's number."""
    free, found = GridBatch.of(grid[None]).free[0], dict[int, list[int]]()
    for pose, view in enumerate(views_of(grid[None])[0]):
        if free[pose]:
            found.setdefault(view_number(view), []).append(pose)
    return found


def render_beliefs(env: gym.Env, agent: ESWMAgent, forgotten: Iterable[Transition] = ()) -> np.ndarray:
    """A picture of a room with what the agent believes drawn over it.

    In a hexagonal room remembered moves are black arrows. Imagined moves are green, or purple where they are wrong, and
    pale if they are improbable. A bar is a blocked move, a question mark an unknown one, and the line is the plan.

    In MiniGrid a small triangle is a pose whose view the agent remembers (white) or imagines (green); views that it
    imagines and that no pose shows cannot be drawn.

    The picture shows each state where it truly is, which the agent does not know.

    Args:
        env: a hexagonal room or a MiniGrid room, with or without wrappers.
        agent: the agent in it.
        forgotten: memories to cross out in a hexagonal room, such as `info.get("forgotten", ())`.

    Returns:
        (height, width, 3) uint8, of the same size throughout an episode.

    Raises:
        ValueError: if this is neither.
        DependencyNotInstalled: if pygame is missing.
    """
    return _picture(Renderer(), _room(env), agent, forgotten)


class RenderBeliefs(gym.Wrapper):
    """Lets `render` draw what an agent believes over the true room, for `RecordVideo` and windows as well.

    A picture drawn inside `reset` or `step` comes before the agent's own `reset` or `observe`: at first it shows no
    beliefs, later those that the agent had when it stepped. Memories deleted since the last picture are crossed out.

    Args:
        env: a hexagonal room or a MiniGrid room with the render mode "rgb_array" or "human".
        agent: the agent in it.

    Raises:
        ValueError: if this is neither, or the render mode is another.
    """

    def __init__(self, env: gym.Env, agent: ESWMAgent) -> None:
        super().__init__(env)
        self._mode = env.render_mode
        if self._mode not in ("rgb_array", "human"):
            raise ValueError(f'beliefs are drawn with render_mode "rgb_array" or "human", got {self._mode!r}')
        _room(env).render_mode = "rgb_array"  # so that the environment does not draw by itself
        self.agent = agent
        self._renderer = Renderer()
        self._memories: set[Transition] = set()
        self._stale: MemoryBank | None = None  # the bank of the last episode, until the agent is reset too

    @property
    def render_mode(self) -> str | None:  # type: ignore[override]
        return self._mode

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        result = self.env.reset(**kwargs)
        self._memories, self._stale = set(), self.agent.memory
        self._show()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self._stale = None
        result = self.env.step(action)
        self._show()
        return result

    def render(self) -> Any:
        """(height, width, 3) uint8 for `rgb_array`, a window for `human`."""
        if self.agent.memory is self._stale:
            picture = _picture(self._renderer, _room(self.env), None)
        else:
            memories = set(self.agent.memory)
            picture = _picture(self._renderer, _room(self.env), self.agent, self._memories - memories)
            self._memories = memories
        if self._mode == "rgb_array":
            return picture
        return self._renderer.screen.show(picture, self.metadata["render_fps"])

    def close(self) -> None:
        self._renderer.close()
        super().close()

    def _show(self) -> None:
        if self._mode == "human":
            self.render()


def _picture(
    renderer: Renderer,
    room: Any,
    agent: ESWMAgent | None,
    forgotten: Iterable[Transition] = (),
) -> np.ndarray:
    """The room, and what an agent believes if one is given."""
    if not isinstance(room.layout, Room):
        return _grid_picture(room, agent)
    if room.layout.lattice.shape != "hexagon":
        raise ValueError(f"of lattices, beliefs are drawn over hexagons alone, not over a {room.layout.lattice.shape}")
    overlay = Overlay()
    if agent is not None:
        believed = beliefs(agent, int(room.room.states[room.location]), forgotten)
        location = {state: i for i, state in enumerate(room.room.states.tolist())}
        overlay = _overlay(believed, location.get)
    return renderer.draw(Scene(room.room, room.location, room.goal, overlay=overlay))


def _grid_picture(room: Any, agent: ESWMAgent | None) -> np.ndarray:
    """A room of MiniGrid, with small triangles where the views are that an agent knows or imagines, and its plan."""
    picture = room.get_full_render(room.highlight, room.tile_size)
    looks: dict[str, tuple[Color, set[int]]] = {"remembered": (WHITE, set()), "imagined": (BRIGHT_GREEN, set())}
    if agent is not None:
        believed = beliefs(agent, room.gen_obs()["state"])
        looks["remembered"][1].update(believed.known)
        imagined = {state for source, _, end, _ in believed.imagined for state in (source, end)}
        looks["imagined"][1].update(imagined - set(believed.known))
        cells = cells_along(room.pose, (action for action, _ in believed.plan))
        draw_way(picture, [room.pose[:2], *cells], BRIGHT_ORANGE, room.tile_size)
    items, shown, every = signs(room.goal is not None, room.highlight), poses_of_views(room.layout), poses(room.width)
    for name, (color, views) in looks.items():
        for pose in (pose for view in views for pose in shown.get(view, ())):
            draw_pose(picture, tuple(every[pose].tolist()), color, room.tile_size, small=True)
        items[name] = pose_sign(color)
    items["plan"] = blank()
    items["plan"][SIZE // 2 - 2 : SIZE // 2 + 2] = BRIGHT_ORANGE
    return with_legend(picture, items)


def _overlay(believed: Beliefs, location: Callable[[int], int | None]) -> Overlay:
    """Beliefs about locations; states that are not in this room are left out."""

    def moves(rows: Iterable[tuple]) -> list[Move]:
        placed = ((location(source), action, location(end), *p) for source, action, end, *p in rows)
        return [Move(*row) for row in placed if row[0] is not None and row[2] is not None]

    return Overlay(
        known=[at for at in map(location, believed.known) if at is not None],
        remembered=moves(believed.memories),
        imagined=moves(believed.imagined),
        unknown=[(at, action) for at, action in ((location(s), a) for s, a in believed.frontier) if at is not None],
        plan=[at for at in map(location, (believed.state, *(end for _, end in believed.plan))) if at is not None],
        forgotten=moves(believed.forgotten),
    )


def _room(env: gym.Env) -> RoomEnv:
    if not isinstance(env.unwrapped, RoomEnv):
        raise ValueError(f"beliefs are drawn over hexagonal rooms and MiniGrid rooms, not over {env.unwrapped}")
    return env.unwrapped
