"""One room: where its moves lead, its shortest paths, and walls that come and go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from eswm_gym.rooms.lattice.banks import add_transitions, spanning_banks
from eswm_gym.rooms.lattice.generation import RoomBatch, RoomConfig, generate_rooms
from eswm_gym.rooms.lattice.geometry import HexLattice, hex_lattice


class Room:
    """A room on a hexagonal lattice.

    Attributes:
        radius: radius of the lattice.
        states: (L,) int64, the state at each location; read-only.
        walls: (L,) bool; read-only, change it with `add_walls` and `remove_walls`.
        observed: (L,) bool, what the room's memory banks cover; read-only.
        targets: (L, A) int, the location where each move ends; blocked moves stay; read-only.
    """

    def __init__(
        self,
        radius: int,
        states: Iterable[int],
        walls: Iterable[int] | np.ndarray = (),
        observed: Iterable[int] | np.ndarray | None = None,
    ) -> None:
        """Build a room by hand.

        Args:
            radius: radius of the lattice.
            states: one different state for each of the L locations, in the lattice's order.
            walls: the wall locations, or a (L,) bool mask of them.
            observed: the observed locations, or a (L,) bool mask of them. None: all.

        Raises:
            ValueError: if there is not one state for each location, a state is negative or occurs twice, or
                a location is off the lattice.
        """
        self.radius = int(hex_lattice(radius).radius)
        self.states = np.array(list(states), np.int64)
        if self.states.shape != (self.n_locations,):
            raise ValueError(f"radius {radius} has {self.n_locations} locations, got {self.states.size} states")
        if self.states.min() < 0 or len(np.unique(self.states)) < self.n_locations:
            raise ValueError(f"states must be different and not negative, got {self.states.tolist()}")
        self.observed = np.ones(self.n_locations, bool) if observed is None else self._mask(observed)
        self.states.flags.writeable = self.observed.flags.writeable = False
        self._set_walls(self._mask(walls))

    @staticmethod
    def from_batch(rooms: RoomBatch, i: int) -> Room:
        """Return room i of a batch."""
        return Room(rooms.lattice.radius, rooms.states[i], rooms.walls[i], rooms.observed[i])

    @staticmethod
    def generate(rng: np.random.Generator, config: RoomConfig) -> Room:
        """Draw a room of this family."""
        return Room.from_batch(generate_rooms(rng, 1, config), 0)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Room:
        """Return the room that `to_dict` wrote."""
        return Room(**data)

    def to_dict(self) -> dict[str, Any]:
        """Return the room as numbers and lists of numbers, ready for JSON; masks become locations."""
        return {
            "radius": self.radius,
            "states": self.states.tolist(),
            "walls": np.flatnonzero(self.walls).tolist(),
            "observed": np.flatnonzero(self.observed).tolist(),
        }

    def to_batch(self) -> RoomBatch:
        """Return a batch that holds this room alone, as it is now."""
        return RoomBatch(self.lattice, self.states[None], self.walls[None], self.observed[None])

    def copy(self) -> Room:
        """Return a room that can change on its own."""
        return Room.from_dict(self.to_dict())

    def __reduce__(self):
        return Room.from_dict, (self.to_dict(),)

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Room) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a room can change

    def __repr__(self) -> str:
        return f"Room(radius={self.radius}, walls={np.flatnonzero(self.walls).tolist()})"

    @property
    def lattice(self) -> HexLattice:
        return hex_lattice(self.radius)

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

    def shortest_path(self, start: int, goal: int) -> list[int]:
        """Return the locations of a shortest path, both ends included; an empty list if there is no path.

        Raises:
            ValueError: if start or goal is a wall or off the lattice.
        """
        path = [self.require_free(start, "start")]
        goal = self.require_free(goal, "goal")
        distances = self.distances_from(goal)
        if distances[start] < 0:
            return []
        while path[-1] != goal:
            around = self.targets[path[-1]]
            path.append(int(around[distances[around].argmin()]))
        return path

    def add_walls(self, locations: Iterable[int]) -> None:
        """Turn free locations into walls.

        Raises:
            ValueError: naming a location that is a wall already or off the lattice; nothing changes.
        """
        self._set_walls(self.walls | self._mask([self.require_free(location) for location in locations]))

    def remove_walls(self, locations: Iterable[int]) -> None:
        """Turn walls into free locations.

        Raises:
            ValueError: naming a location that is not a wall; nothing changes.
        """
        mask = self._mask(locations)
        if (mask & ~self.walls).any():
            raise ValueError(f"location {np.flatnonzero(mask & ~self.walls)[0]} is not a wall")
        self._set_walls(self.walls & ~mask)

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
        self.targets = self.to_batch().targets()[0]
        self.walls.flags.writeable = self.targets.flags.writeable = False

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
