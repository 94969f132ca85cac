"""One room: where its moves lead, its shortest paths, and walls that come and go."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from eswm_gym.rooms.lattice.banks import add_transitions, spanning_banks
from eswm_gym.rooms.lattice.generation import RoomBatch, RoomConfig
from eswm_gym.rooms.lattice.geometry import Lattice, hex_lattice
from eswm_gym.rooms.lattice.scattered import ScatteredConfig
from eswm_gym.rooms.lattice.shapes import lattice_of


@cache
def _natural(n: int) -> np.ndarray:
    numbers = np.arange(n)
    numbers.flags.writeable = False
    return numbers


class Room:
    """A room on a lattice.

    Attributes:
        lattice: the lattice.
        states: (L,) int64, the state at each location; read-only.
        walls: (L,) bool; read-only, change it with `add_walls` and `remove_walls`.
        observed: (L,) bool, what the room's memory banks cover; read-only.
        numbers: (A,) int64, the number that each action of the lattice has in this room; read-only. All that takes or
            gives actions or has an axis of them goes by these numbers.
        targets: (L, A) int, the location where each move ends; blocked moves stay; read-only.
        on_lattice: (L, A) bool, which moves stay on the lattice; read-only.
    """

    def __init__(
        self,
        lattice: Lattice | int,
        states: Iterable[int],
        walls: Iterable[int] | np.ndarray = (),
        observed: Iterable[int] | np.ndarray | None = None,
        numbers: Iterable[int] | None = None,
    ) -> None:
        """Build a room by hand.

        Args:
            lattice: a lattice that `lattice_of` makes, or the radius of a hexagonal one.
            states: one different state for each of the L locations, in the lattice's order.
            walls: the wall locations, or a (L,) bool mask of them. All locations of their cells become walls.
            observed: the observed locations, or a (L,) bool mask of them. None: all.
            numbers: the number of each action, a permutation of 0 to A - 1. None: that of the lattice.

        Raises:
            ValueError: if the lattice has no shape, there is not one state for each location, a state is negative or
                occurs twice, a location is off the lattice, or the numbers are no permutation.
        """
        self.lattice = lattice if isinstance(lattice, Lattice) else hex_lattice(lattice)
        if self.lattice.shape is None:
            raise ValueError("a room needs a lattice that lattice_of makes, got one without a shape")
        self.states = np.array(list(states), np.int64)
        if self.states.shape != (self.n_locations,):
            raise ValueError(f"the lattice has {self.n_locations} locations, got {self.states.size} states")
        if self.states.min() < 0 or len(np.unique(self.states)) < self.n_locations:
            raise ValueError(f"states must be different and not negative, got {self.states.tolist()}")
        n_actions = self.lattice.n_actions
        self.numbers = np.array(list(range(n_actions) if numbers is None else numbers), np.int64)
        if sorted(self.numbers.tolist()) != list(range(n_actions)):
            raise ValueError(f"numbers must be a permutation of 0 to {n_actions - 1}, got {self.numbers.tolist()}")
        self.on_lattice = self.lattice.on_lattice[:, self.numbers.argsort()]
        self.observed = np.ones(self.n_locations, bool) if observed is None else self._mask(observed)
        for array in (self.states, self.numbers, self.on_lattice, self.observed):
            array.flags.writeable = False
        self._set_walls(self.cells_of(walls))

    @staticmethod
    def from_batch(rooms: RoomBatch, i: int) -> Room:
        """Return room i of a batch."""
        numbers = None if rooms.numbers is None else rooms.numbers[i]
        return Room(rooms.lattice, rooms.states[i], rooms.walls[i], rooms.observed[i], numbers)

    @classmethod
    def unchecked(cls, lattice: Lattice, states: np.ndarray, walls: np.ndarray, observed: np.ndarray) -> Room:
        """Return the room that these would build, which are known to be right: states, walls and observed, all (L,), of
        a drawn room whose actions have the lattice's numbers. It takes a tenth of the time."""
        room = cls.__new__(cls)
        room.lattice, room.numbers, room.on_lattice = lattice, _natural(lattice.n_actions), lattice.on_lattice
        room.states, room.walls, room.observed = states.astype(np.int64), walls.copy(), observed.copy()
        ahead = lattice.next_location
        room.targets = np.where(room.walls[ahead], np.arange(lattice.n_locations)[:, None], ahead)
        for array in (room.states, room.walls, room.observed, room.targets):
            array.flags.writeable = False
        return room

    @staticmethod
    def generate(rng: np.random.Generator, config: RoomConfig | ScatteredConfig) -> Room:
        """Draw a room of this family."""
        return Room.from_batch(config.generate(rng, 1), 0)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Room:
        """Return the room that `to_dict` wrote."""
        rest = dict(data)
        lattice = rest.pop("radius") if "radius" in data else lattice_of(rest.pop("lattice"), tuple(rest.pop("size")))
        return Room(lattice, **rest)

    def to_dict(self) -> dict[str, Any]:
        """Return the room as numbers, lists of numbers and the lattice's name, ready for JSON.

        Masks become locations; a hexagon is its `radius`, any other lattice its `lattice` and `size`; `numbers` are
        there if they are not the lattice's.
        """
        return {
            **self._lattice_dict(),
            "states": self.states.tolist(),
            "walls": np.flatnonzero(self.walls).tolist(),
            "observed": np.flatnonzero(self.observed).tolist(),
            **({"numbers": self.numbers.tolist()} if self.renumbered else {}),
        }

    def to_batch(self) -> RoomBatch:
        """Return a batch that holds this room alone, as it is now."""
        numbers = self.numbers[None] if self.renumbered else None
        return RoomBatch(self.lattice, self.states[None], self.walls[None], self.observed[None], numbers=numbers)

    def copy(self) -> Room:
        """Return a room that can change on its own."""
        return Room.from_dict(self.to_dict())

    def __reduce__(self):
        return Room.from_dict, (self.to_dict(),)

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Room) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a room can change

    def __repr__(self) -> str:
        lattice = ", ".join(f"{name}={value!r}" for name, value in self._lattice_dict().items())
        return f"Room({lattice}, walls={np.flatnonzero(self.walls).tolist()})"

    @property
    def radius(self) -> int:
        """The radius of a hexagonal room.

        Raises:
            AttributeError: if the room is none.
        """
        return self.lattice.radius  # type: ignore[attr-defined]

    @property
    def renumbered(self) -> bool:
        """Whether actions have other numbers than on the lattice."""
        return bool((self.numbers != np.arange(self.lattice.n_actions)).any())

    @property
    def n_locations(self) -> int:
        return self.lattice.n_locations

    def next_location(self, location: int, action: int) -> int:
        """Return where the action leads from a free location; a blocked move stays.

        Raises:
            ValueError: if the location is a wall or off the lattice, or there is no such action.
        """
        if action not in range(self.lattice.n_actions):
            raise ValueError(f"action must be 0 to {self.lattice.n_actions - 1}, got {action!r}")
        return int(self.targets[self.require_free(location), action])

    def next_state(self, state: int, action: int) -> int:
        """Return the state that the action leads to from a state: the true s_e of (s_s, a, s_e)."""
        return int(self.states[self.next_location(self.location_of(state), action)])

    def is_blocked(self, location: int, action: int) -> bool:
        """Whether the action runs into a wall or off the lattice, so that the agent stays."""
        return self.next_location(location, action) == location

    def location_of(self, state: int) -> int:
        """Return the location of a state.

        Raises:
            ValueError: if the room does not have that state.
        """
        found = np.flatnonzero(self.states == state)
        if not found.size:
            raise ValueError(f"state {state!r} is not in this room")
        return int(found[0])

    def require_free(self, location: int, name: str = "location") -> int:
        """Return the location as an int.

        Raises:
            ValueError: naming `name` and the value, if it is a wall or off the lattice.
        """
        location = self._require_location(location, name)
        if self.walls[location]:
            raise ValueError(f"{name} {location} is a wall")
        return location

    def distances_from(self, location: int) -> np.ndarray:
        """(L,) int, steps from a free location to each location, -1 for walls and what cannot be reached."""
        return self.to_batch().distances_from(np.array([self.require_free(location)]))[0]

    def distances_to(self, location: int) -> np.ndarray:
        """(L,) int, steps from each location to a free one, -1 for walls and where there is no way."""
        return self.to_batch().distances_to(np.array([self.require_free(location)]))[0]

    def shortest_path(self, start: int, goal: int) -> list[int]:
        """Return the locations of a shortest path, both ends included; an empty list if there is no path.

        Raises:
            ValueError: if start or goal is a wall or off the lattice.
        """
        path = [self.require_free(start, "start")]
        goal = self.require_free(goal, "goal")
        distances = self.distances_to(goal)
        if distances[start] < 0:
            return []
        while path[-1] != goal:
            around = self.targets[path[-1]]
            path.append(int(around[distances[around].argmin()]))
        return path

    def add_walls(self, locations: Iterable[int]) -> None:
        """Turn free locations into walls, with all others of their cells.

        Raises:
            ValueError: naming a location that is a wall already or off the lattice; nothing changes.
        """
        self._set_walls(self.walls | self.cells_of([self.require_free(location) for location in locations]))

    def remove_walls(self, locations: Iterable[int]) -> None:
        """Turn walls into free locations, with all others of their cells.

        Raises:
            ValueError: naming a location that is not a wall; nothing changes.
        """
        mask = self.cells_of(locations)
        if (mask & ~self.walls).any():
            raise ValueError(f"location {np.flatnonzero(mask & ~self.walls)[0]} is not a wall")
        self._set_walls(self.walls & ~mask)

    def cells_of(self, locations: Iterable[int] | np.ndarray) -> np.ndarray:
        """(L,) bool, all locations of the cells in which locations lie, given one by one or as a (L,) bool mask."""
        cells = self.lattice.cells
        return np.isin(cells, cells[self._mask(locations)])

    def memory_bank(self, rng: np.random.Generator, extra: int = 0) -> np.ndarray:
        """Draw a spanning memory bank of the observed part of the room.

        Args:
            rng: source of randomness.
            extra: transitions added to the minimal bank; fewer where the room has no more.

        Returns:
            (N, 3) int64 of (s_s, a, s_e) in random order; N is L - 1 if the room is observed and not split.
        """
        banks = spanning_banks(rng, self.to_batch())
        if extra:
            banks = add_transitions(rng, banks, np.array([extra]))
        bank = banks.transitions()[0]
        return bank[bank[:, 1] >= 0].astype(np.int64)

    def _set_walls(self, walls: np.ndarray) -> None:
        self.walls = walls
        self.targets = self.to_batch().targets()[0][:, self.numbers.argsort()]
        self.walls.flags.writeable = self.targets.flags.writeable = False

    def _lattice_dict(self) -> dict[str, Any]:
        shape, size = self.lattice.shape, list(self.lattice.size)
        return {"radius": size[0]} if shape == "hexagon" else {"lattice": shape, "size": size}

    def _require_location(self, location: int, name: str = "location") -> int:
        if not isinstance(location, (int, np.integer)) or not 0 <= location < self.n_locations:
            raise ValueError(f"{name} must be an integer from 0 to {self.n_locations - 1}, got {location!r}")
        return int(location)

    def _mask(self, locations: Iterable[int] | np.ndarray) -> np.ndarray:
        """(L,) bool of locations given one by one or as a mask already."""
        if isinstance(locations, np.ndarray) and locations.dtype == bool:
            if locations.shape != (self.n_locations,):
                raise ValueError(f"a mask needs shape ({self.n_locations},), got {locations.shape}")
            return locations.copy()
        mask = np.zeros(self.n_locations, bool)
        mask[[self._require_location(location) for location in locations]] = True
        return mask
