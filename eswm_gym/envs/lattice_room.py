"""The environment behind every room on a lattice: an agent walks from location to location and sees states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from eswm_gym.envs.base import RoomEnv, as_mask, check_vacant
from eswm_gym.envs.rendering import Renderer, Scene, draw_text
from eswm_gym.rooms import Room, RoomConfig, ScatteredConfig
from eswm_gym.rooms.transitions import pad


class LatticeRoomEnv(RoomEnv):
    """What the environments of rooms on a lattice share; `HexRoomEnv` and `LatticeEnv` say what they are like.

    While an episode runs, `add_walls(locations)` and `remove_walls(locations)` change the room, and
    `get_state()` and `set_state(state)` save it and go back. The environment can be copied and pickled.

    Attributes:
        config: the family of rooms.
        n_states: size of the vocabulary.
        location: where the agent is.

    Args:
        config: the family of rooms, without duplicate states. The memory bank covers the observed part of each room.
        task: `"navigate"` or `"explore"`.
        memory_bank: `"none"` or `"spanning"`.
        render_mode: None, `"human"`, `"rgb_array"` or `"ansi"`.
    """

    MEMORY_BANKS = ("spanning", "none")
    LAYOUT_OPTION = "room"
    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array", "ansi"], "render_fps": 4}

    def __init__(
        self,
        config: RoomConfig | ScatteredConfig,
        task: str = "navigate",
        memory_bank: str = "none",
        render_mode: str | None = None,
    ) -> None:
        self._check_arguments(task, memory_bank, render_mode)
        self.config = config
        self.task = task
        self.memory_bank = memory_bank
        self.render_mode = render_mode
        self.n_states = max(config.states) + 1
        keys = ("state", "goal") if task == "navigate" else ("state",)
        self.observation_space = spaces.Dict({key: self.state_space() for key in keys})
        self._n_actions = config.lattice.n_actions
        self.action_space = spaces.Discrete(self._n_actions)
        self.location = 0
        self.goal: int | None = None
        self._room: Room | None = None
        self._renderer: Renderer | None = None

    def state_space(self) -> spaces.Space:
        """Return the space of one observed state. Override it together with `observe`."""
        return spaces.Discrete(self.n_states)

    def observe(self, state: int) -> Any:
        """Return what the agent sees of a state, a member of `state_space()`."""
        return state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode; see the class for `options`.

        Raises:
            ValueError: if an option is unknown, the room does not fit this environment, start or goal is no
                free location, or they are the same or cut off from each other.
        """
        super().reset(seed=seed)
        options = options or {}
        self._check_options(options)
        bank = None
        if seed is None and not options and (ahead := self._drawn_ahead()):
            room, self.location, self.goal, distances, bank = ahead
        else:
            room = self._given_room(options["room"]) if "room" in options else self._draw_room()
            self.location, self.goal = self._draw_ends(room, options.get("start"), options.get("goal"))
            distances = None
        self._room = room
        self._visited = np.zeros(room.n_locations, bool)
        self._visited[self.location] = True
        self._measure(distances)
        info = self._info(blocked=False)
        if self.memory_bank == "spanning":
            if bank is None:
                bank = pad([room.memory_bank(self.np_random)], room.n_locations - 1)[0]
            info["memory_bank"] = bank
        if self.render_mode == "human":
            self.render()
        return self._observation(), info

    def step(self, action: int | np.integer) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take one step.

        Raises:
            ValueError: if the action is not an integer from 0 to A - 1.
            ResetNeeded: before the first reset.
        """
        n_actions = self._n_actions  # Gymnasium's check takes longer than the rest of the step
        if not (isinstance(action, int) and 0 <= action < n_actions) and not self.action_space.contains(action):
            last = self.config.lattice.n_actions - 1
            raise ValueError(f"action must be an integer from 0 to {last}, got {action!r}")
        before = self.location
        self.location = here = self.room.targets.item(before, int(action))
        first_visit = not self._visited[here]
        if first_visit:
            self._visited[here] = True
            self._left -= 1
        info = self._info(blocked=here == before)
        reward = self._reward_of_step(info["is_success"], first_visit)
        if self.render_mode == "human":
            self.render()
        return self._observation(), reward, info["is_success"], False, info

    def render(self) -> Any:
        """Draw the room: (height, width, 3) uint8 for `rgb_array`, a string for `ansi`, a window for `human`.

        Raises:
            ResetNeeded: before the first reset.
            DependencyNotInstalled: if pygame is missing; `ansi` does without.
        """
        if self.render_mode is None:
            gym.logger.warn('render() draws nothing without a render_mode, such as render_mode="rgb_array"')
            return None
        scene = Scene(self.room, self.location, self.goal, self._visited if self.task == "explore" else None)
        if self.render_mode == "ansi":
            return draw_text(scene)
        self._renderer = self._renderer or Renderer()
        if self.render_mode == "rgb_array":
            return self._renderer.draw(scene)
        return self._renderer.show(scene, self.metadata["render_fps"])

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    @property
    def room(self) -> Room:
        """The room as it is now. To change its walls, use the environment's `add_walls` and `remove_walls`.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._room is None:
            raise ResetNeeded("call reset() first: there is no room yet")
        return self._room

    layout = room  # its name in all worlds

    @property
    def action_names(self) -> tuple[str, ...] | None:
        """What each action is called, such as "left" or "NW", see `eswm_gym.rooms.move_numbers`; None if the agent has
        to find out."""
        return self.config.lattice.actions

    @property
    def place(self) -> int:
        """The agent's location."""
        return self.location

    @property
    def bank_space(self) -> spaces.Box:
        """The space of the memory banks that `reset` hands out: (L - 1, 3) int64, rows of -1 at the end included."""
        lattice = self.config.lattice
        last = np.array([self.n_states - 1, lattice.n_actions - 1, self.n_states - 1])
        return spaces.Box(-1, np.tile(last, (lattice.n_locations - 1, 1)), dtype=np.int64)

    @property
    def shortest_path_length(self) -> int | None:
        """Steps from here to the goal, -1 if it is cut off; None without a goal."""
        return None if self.goal is None else self._distances.item(self.location)

    def action_masks(self) -> np.ndarray:
        """(A,) bool, moves that stay on the lattice; the name is MaskablePPO's."""
        return self.room.on_lattice[self.location].copy()

    def add_walls(self, locations: Iterable[int]) -> None:
        """Turn free locations into walls while the episode runs, with all others of their cells.

        Raises:
            ValueError: naming a location that holds the agent or the goal, is a wall or is off the lattice.
        """
        room, locations = self.room, list(locations)
        check_vacant("location", np.flatnonzero(room.cells_of(locations)).tolist(), self.location, self.goal)
        room.add_walls(locations)
        self._measure()

    def remove_walls(self, locations: Iterable[int]) -> None:
        """Turn walls into free locations while the episode runs, with all others of their cells.

        Raises:
            ValueError: naming a location that is not a wall.
        """
        self.room.remove_walls(locations)
        self._measure()

    def get_state(self) -> dict[str, Any]:
        """Return all that later steps and resets depend on, random numbers too, as a dict ready for JSON.

        Wrappers keep their own state: `gymnasium.make`'s time limit counts on.
        """
        return {
            "room": self.room.to_dict(),
            "location": self.location,
            "goal": self.goal,
            "visited": np.flatnonzero(self._visited).tolist(),
            "rng": self.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to what `get_state` returned, here or in another environment with the same arguments.

        Raises:
            ValueError: if the state is of another task, its room does not fit this environment, or its locations
                do not fit the room; nothing changes then.
        """
        self._check_task(state)
        room = self._given_room(Room.from_dict(state["room"]))
        location = room.require_free(state["location"])
        goal = None if state["goal"] is None else room.require_free(state["goal"], "goal")
        visited = as_mask(state["visited"], room.n_locations, "visited")
        self.np_random.bit_generator.state = state["rng"]
        self._room, self.location, self.goal, self._visited = room, location, goal, visited
        self._measure()

    def _given_room(self, room: Room) -> Room:
        if not isinstance(room, Room):
            raise ValueError(f"room must be a Room, got {room!r}")
        mine, other = self.config.lattice, room.lattice
        if (mine.shape, mine.size) != (other.shape, other.size):
            raise ValueError(f"room must be on the lattice {mine.shape} {mine.size}, got {other.shape} {other.size}")
        if room.renumbered and self.action_names is not None:
            raise ValueError(f"room must number its actions as its lattice does, got {room.numbers.tolist()}")
        if room.states.max() >= self.n_states:
            raise ValueError(f"room must have states below {self.n_states}, got {room.states.max()}")
        return room.copy()

    def _draw_room(self) -> Room:
        while True:  # a very long wall may leave nowhere to go
            room = Room.generate(self.np_random, self.config)
            if _starts(room).size:
                return room

    def _draw_ends(self, room: Room, start: int | None, goal: int | None) -> tuple[int, int | None]:
        """Return start and goal (None in the task `explore`): those given, else random ones."""
        draw = self.np_random.choice
        if start is not None:
            start = room.require_free(start, "start")
        elif goal is not None:
            start = int(draw(_others(room.distances_to(room.require_free(goal, "goal")), goal)))
        else:
            starts = _starts(room)
            if not starts.size:
                raise ValueError(f"{room!r} has no two free locations side by side")
            start = int(draw(starts))
        ends = _others(room.distances_from(start), start)
        if self.task == "explore":
            return start, None
        if goal is None:
            return start, int(draw(ends))
        if room.require_free(goal, "goal") not in ends:
            raise ValueError(f"goal {goal} must be another location than start {start}, reachable from it")
        return start, int(goal)

    def _drawn_ahead(self) -> tuple[Room, int, int | None, np.ndarray, np.ndarray | None] | None:
        """The next episode, if environments of this kind draw many at a time: room, start, goal, distances as
        `_measure` finds them, memory bank."""
        return None

    def _measure(self, distances: np.ndarray | None = None) -> None:
        """Measure the steps from each location to the goal or, where there is none, from the agent to each location;
        unless they are given."""
        room, goal = self.room, self.goal
        if distances is None:
            distances = room.distances_from(self.location) if goal is None else room.distances_to(goal)
        self._distances = distances
        self._left = int(((distances >= 0) & ~self._visited).sum())  # locations left to visit
        self._masks = room.on_lattice.view(np.int8)

    def _is_success(self) -> bool:
        if self.goal is not None:
            return self.location == self.goal
        return self._left == 0

    def _observation(self) -> dict[str, Any]:
        states = self.room.states
        if self.goal is None:
            return {"state": self.observe(states.item(self.location))}
        return {"state": self.observe(states.item(self.location)), "goal": self.observe(states.item(self.goal))}

    def _info(self, blocked: bool) -> dict[str, Any]:
        info = super()._info(blocked)
        info["location"] = self.location
        return info

    def _action_mask(self) -> np.ndarray:
        return self._masks[self.location].copy()


def _starts(room: Room) -> np.ndarray:
    """Free locations that have a free neighbour."""
    moves = room.targets != np.arange(room.n_locations)[:, None]
    return np.flatnonzero(moves.any(1) & ~room.walls)


def _others(distances: np.ndarray, location: int) -> np.ndarray:
    """Locations at these distances (L,) from or to one that are others than it.

    Raises:
        ValueError: if there are none.
    """
    others = np.flatnonzero(distances > 0)
    if not others.size:
        raise ValueError(f"location {location} is walled in")
    return others
