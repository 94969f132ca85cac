"""Geometry of the hexagonal lattice that every room shares (paper: "Building Random Environments")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

ACTION_NAMES = ("E", "NE", "NW", "W", "SW", "SE")
N_ACTIONS = len(ACTION_NAMES)
# Axial (q, r) displacement of each action; r grows to the south. `(a + 3) % 6` reverses action a.
DISPLACEMENTS = np.array([[1, 0], [1, -1], [0, -1], [-1, 0], [-1, 1], [0, 1]])


def reverse_action(action):
    """Return the action that undoes `action` (int or int array)."""
    return (action + 3) % N_ACTIONS


@dataclass(frozen=True, eq=False)
class HexLattice:
    """A hexagon of locations, numbered row by row from the north-west.

    Build it with `hex_lattice(radius)`, which caches it. All arrays are read-only.

    Attributes:
        radius: steps from the centre to the rim; 2 gives 19 locations and 3 gives 37.
        axial: (L, 2) int, axial coordinates (q, r) of each location.
        neighbors: (L, 6) int, the location that each action leads to, -1 off the lattice.
        next_location: (L, 6) int, the same, but a move off the lattice stays where it is.
        on_lattice: (L, 6) bool, which moves stay on the lattice.
        edges: (E, 2) int, each pair of adjacent locations once.
        distances: (L, L) int, steps between locations when there is no wall.
    """

    radius: int
    axial: np.ndarray
    neighbors: np.ndarray
    next_location: np.ndarray
    on_lattice: np.ndarray
    edges: np.ndarray
    distances: np.ndarray

    @property
    def n_locations(self) -> int:
        return len(self.axial)

    @property
    def diameter(self) -> int:
        """The longest straight run of locations."""
        return 2 * self.radius + 1

    @property
    def xy(self) -> np.ndarray:
        """(L, 2) float, Cartesian centres, one unit between neighbours; y grows to the south."""
        q, r = self.axial.T
        return np.stack([q + r / 2, r * np.sqrt(3) / 2], axis=1)


@cache
def hex_lattice(radius: int) -> HexLattice:
    """Return the lattice of this radius.

    Raises:
        ValueError: if radius is not a whole number of at least 1.
    """
    if not isinstance(radius, int | float | np.integer) or radius % 1 or radius < 1:
        raise ValueError(f"radius must be a whole number of at least 1, got {radius!r}")
    radius = int(radius)
    rim = range(-radius, radius + 1)
    axial = np.array([(q, r) for r in rim for q in rim if abs(q + r) <= radius])
    index = {tuple(location): i for i, location in enumerate(axial.tolist())}
    neighbors = np.array([[index.get(tuple(c), -1) for c in (c0 + DISPLACEMENTS).tolist()] for c0 in axial])
    here = np.arange(len(axial))[:, None]
    q, r = (axial[:, None] - axial[None]).transpose(2, 0, 1)
    source, action = np.nonzero(neighbors[:, :3] >= 0)
    lattice = HexLattice(
        radius=radius,
        axial=axial,
        neighbors=neighbors,
        next_location=np.where(neighbors >= 0, neighbors, here),
        on_lattice=neighbors >= 0,
        edges=np.stack([source, neighbors[source, action]], axis=1),
        distances=(abs(q) + abs(r) + abs(q + r)) // 2,
    )
    for array in vars(lattice).values():
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return lattice
