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
from eswm_gym.envs.hex_room import HexRoomEnv
from eswm_gym.envs.rendering import Move, Overlay, Renderer, Scene


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


def render_beliefs(env: gym.Env, agent: ESWMAgent, forgotten: Iterable[Transition] = ()) -> np.ndarray:
    """A picture of a hexagonal room with what the agent believes drawn over it.

    Remembered moves are black arrows. Imagined moves are green, or purple where they are wrong, and pale if they are
    improbable. A bar is a blocked move, a question mark an unknown one, and the line is the plan.

    The picture shows each state where it truly is, which the agent does not know.

    Args:
        env: a hexagonal room, with or without wrappers.
        agent: the agent in it.
        forgotten: memories to cross out, such as `info.get("forgotten", ())`.

    Returns:
        (height, width, 3) uint8, of the same size throughout an episode.

    Raises:
        ValueError: if this is no hexagonal room.
        DependencyNotInstalled: if pygame is missing.
    """
    return Renderer().draw(_scene(env, agent, forgotten))


class RenderBeliefs(gym.Wrapper):
    """Lets `render` draw what an agent believes over the true room, for `RecordVideo` and windows as well.

    A picture drawn inside `reset` or `step` comes before the agent's own `reset` or `observe`: at first it shows no
    beliefs, later those that the agent had when it stepped. Memories deleted since the last picture are crossed out.

    Args:
        env: a hexagonal room with the render mode "rgb_array" or "human".
        agent: the agent in it.

    Raises:
        ValueError: if this is no hexagonal room, or the render mode is another.
    """

    def __init__(self, env: gym.Env, agent: ESWMAgent) -> None:
        super().__init__(env)
        self._mode = env.render_mode
        if self._mode not in ("rgb_array", "human"):
            raise ValueError(f'beliefs are drawn with render_mode "rgb_array" or "human", got {self._mode!r}')
        _hex_room(env).render_mode = "rgb_array"  # so that the environment does not draw by itself
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
            scene = replace(_plain_scene(self.env), overlay=Overlay())
        else:
            memories = set(self.agent.memory)
            scene = _scene(self.env, self.agent, self._memories - memories)
            self._memories = memories
        if self._mode == "rgb_array":
            return self._renderer.draw(scene)
        return self._renderer.show(scene, self.metadata["render_fps"])

    def close(self) -> None:
        self._renderer.close()
        super().close()

    def _show(self) -> None:
        if self._mode == "human":
            self.render()


def _plain_scene(env: gym.Env) -> Scene:
    hexes = _hex_room(env)
    return Scene(hexes.room, hexes.location, hexes.goal)


def _scene(env: gym.Env, agent: ESWMAgent, forgotten: Iterable[Transition]) -> Scene:
    scene = _plain_scene(env)
    believed = beliefs(agent, int(scene.room.states[scene.agent]), forgotten)
    location = {state: i for i, state in enumerate(scene.room.states.tolist())}
    return replace(scene, overlay=_overlay(believed, location.get))


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


def _hex_room(env: gym.Env) -> HexRoomEnv:
    if not isinstance(env.unwrapped, HexRoomEnv):
        raise ValueError(f"beliefs are drawn over hexagonal rooms, not over {env.unwrapped}")
    return env.unwrapped
