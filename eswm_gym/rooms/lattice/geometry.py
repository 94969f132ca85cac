"""Lattices: locations and the moves between them (paper: "Building Random Environments")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

# Hexagons: the action a leads at an angle of 60 a degrees, counter-clockwise from the east.
ACTION_NAMES = ("E", "NE", "NW", "W", "SW", "SE")
N_ACTIONS = len(ACTION_NAMES)
# Axial (q, r) displacement of each action; r grows to the south.
DISPLACEMENTS = np.array([[1, 0], [1, -1], [0, -1], [-1, 0], [-1, 1], [0, 1]])


def reverse_action(action):
    """Return the action that undoes `action` (int or int array) on a hexagonal lattice."""
    return (action + 3) % N_ACTIONS


@dataclass(frozen=True, eq=False, kw_only=True)
class Lattice:
    """L locations, and A actions that lead from one to another. It keeps read-only copies of its arrays.

    Attributes:
        actions: (A,) names of the actions. Where they are directions, they go around the circle in order.
        neighbors: (L, A) int, the location that each action leads to, -1 off the lattice.
        reverse: (A,) int, the action that undoes each action, -1 where none does. An action leads to a location from
            one other location at most.
        xy: (L, 2) float, where to draw each location; y grows to the south.
        displacements: (A, k) int, what each action adds to the coordinates of a location; None where actions
            do not add to coordinates.
        cells: (L,) int, the cell in which each location lies: locations of one cell are walls together. None: each
            lies in its own.
        shape, size: what `lattice_of` makes the lattice of; None and () for any other.

    Raises:
        ValueError: if an array does not have its shape.
    """

    actions: tuple[str, ...]
    neighbors: np.ndarray
    reverse: np.ndarray
    xy: np.ndarray
    displacements: np.ndarray | None = None
    cells: np.ndarray = None  # type: ignore[assignment]
    shape: str | None = None
    size: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.cells is None:
            object.__setattr__(self, "cells", np.arange(len(self.neighbors)))
        for name, array in vars(self).items():
            if isinstance(array, np.ndarray):
                object.__setattr__(self, name, _freeze(array.copy()))
        n_locations, n_actions = len(self.neighbors), len(self.actions)
        for name, shape in (
            ("neighbors", (n_locations, n_actions)),
            ("reverse", (n_actions,)),
            ("xy", (n_locations, 2)),
            ("cells", (n_locations,)),
        ):
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {getattr(self, name).shape}")

    @property
    def n_locations(self) -> int:
        return len(self.neighbors)

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    @cached_property
    def on_lattice(self) -> np.ndarray:
        """(L, A) bool, which moves stay on the lattice."""
        return _freeze(self.neighbors >= 0)

    @cached_property
    def next_location(self) -> np.ndarray:
        """(L, A) int, the location that each action leads to; a move off the lattice stays where it is."""
        return _freeze(np.where(self.on_lattice, self.neighbors, np.arange(self.n_locations)[:, None]))

    @cached_property
    def arrivals(self) -> np.ndarray:
        """(L, A) int, the location from which each action leads to a location, -1 where it leads there from nowhere."""
        arrivals = np.full_like(self.neighbors, -1)
        source, action = np.nonzero(self.on_lattice)
        arrivals[self.neighbors[source, action], action] = source
        return _freeze(arrivals)

    @cached_property
    def edges(self) -> np.ndarray:
        """(E, 2) int, each pair of adjacent locations once."""
        one_way = (self.reverse < 0) | (np.arange(self.n_actions) <= self.reverse)  # of an action and its reverse, one
        source, action = np.nonzero(self.on_lattice & one_way)
        pairs = np.stack([source, self.neighbors[source, action]], axis=1)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
        return _freeze(pairs[np.sort(first)])

    @cached_property
    def adjacent(self) -> np.ndarray:
        """(L, A + W) int, `neighbors`, then the `arrivals` by each of the W actions that have no reverse: all locations
        that a move joins to a location, whichever way it leads."""
        return _freeze(np.hstack([self.neighbors, self.arrivals[:, self.reverse < 0]]))

    @cached_property
    def edge_of(self) -> np.ndarray:
        """(L, A + W) int, the row in `edges` of each pair in `adjacent`, 0 where it has -1."""

        # By search in the sorted pairs, not in an L x L array: large worlds have lattices too.
        def key(one: np.ndarray, other: np.ndarray) -> np.ndarray:
            return np.minimum(one, other) * self.n_locations + np.maximum(one, other)

        keys = key(*self.edges.T)
        order = keys.argsort()
        found = np.zeros_like(self.adjacent)
        there = self.adjacent >= 0
        here, _ = np.nonzero(there)
        found[there] = order[np.searchsorted(keys[order], key(here, self.adjacent[there]))]
        return _freeze(found)

    @cached_property
    def distances(self) -> np.ndarray:
        """(L, L) int, moves from each location to each other one when there is no wall; L where there is no way."""
        moves = np.where(np.eye(self.n_locations, dtype=bool), 0, self.n_locations)
        while True:  # relax every move at once until nothing gets nearer
            nearer = np.minimum(moves, moves[self.next_location].min(axis=1) + 1)  # (L, A, L) -> (L, L)
            if (nearer == moves).all():
                return _freeze(moves)
            moves = nearer


@dataclass(frozen=True, eq=False, kw_only=True)
class HexLattice(Lattice):
    """A hexagon of locations, numbered row by row from the north-west. Build it with `hex_lattice(radius)`.

    Attributes:
        radius: steps from the centre to the rim; 2 gives 19 locations and 3 gives 37.
        axial: (L, 2) int, axial coordinates (q, r) of each location.
        displacements: (6, 2) int, what each action adds to them.
    """

    radius: int
    axial: np.ndarray
    displacements: np.ndarray


@cache
def hex_lattice(radius: int) -> HexLattice:
    """Return the hexagonal lattice of this radius: always the same object.

    Raises:
        ValueError: if radius is not a whole number of at least 1.
    """
    if not isinstance(radius, int | float | np.integer) or radius % 1 or radius < 1:
        raise ValueError(f"radius must be a whole number of at least 1, got {radius!r}")
    radius = int(radius)
    rim = range(-radius, radius + 1)
    axial = np.array([(q, r) for r in rim for q in rim if abs(q + r) <= radius])
    index = {tuple(location): i for i, location in enumerate(axial.tolist())}
    return HexLattice(
        actions=ACTION_NAMES,
        neighbors=np.array([[index.get(tuple(c), -1) for c in (c0 + DISPLACEMENTS).tolist()] for c0 in axial]),
        reverse=reverse_action(np.arange(N_ACTIONS)),
        xy=axial_to_xy(axial),
        displacements=DISPLACEMENTS,
        shape="hexagon",
        size=(radius,),
        radius=radius,
        axial=axial,
    )


def axial_to_xy(axial: np.ndarray) -> np.ndarray:
    """(..., 2) float, Cartesian (x, y) of axial (..., 2), one unit between neighbours; y grows to the south."""
    q, r = np.moveaxis(axial, -1, 0)
    return np.stack([q + r / 2, r * np.sqrt(3) / 2], axis=-1)


def _freeze(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
