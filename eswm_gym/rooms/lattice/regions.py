"""Random rooms of any shape on any lattice: a connected region of it, walls, and states after which an episode ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eswm_gym.rooms.lattice.generation import RoomBatch
from eswm_gym.rooms.lattice.geometry import Lattice
from eswm_gym.rooms.lattice.shapes import lattice_of

WALLED, MOST_WALLS = 0.7, 0.3  # share of rooms with walls; in those, greatest share of cells that are walls
STRAIGHT, LONGEST = 0.5, 5  # share of those whose walls are straight runs, of at most so many cells
ENDING, MOST_TERMINAL = 0.25, 0.15  # share of rooms with terminal locations; in those, greatest share of them
WHOLE_CELLS = 0.5  # share of rooms that hold a cell with all of its locations, or not at all
RAGGED = 8.0  # greatest raggedness of a region's rim, see `random_regions`


@dataclass(frozen=True)
class RegionConfig:
    """A family of rooms: regions of a lattice.

    Attributes:
        shape: "hexagon", "square", "diagonal", "torus" or "pose", see `lattice_of`.
        size: of the lattice.
        least, most: numbers of observed free locations; fewer where walls leave no more.
        walls: greatest number of observed wall locations; walls besides those are not observed.
        n_states: size of the vocabulary; observed free locations have different states, and others share what is left.
        enclosed: share of rooms around which all is wall; around the others lie free locations that are not observed.
        terminal: whether some rooms have locations where an episode ends.

    Raises:
        ValueError: if the vocabulary has no states left, the number of walls is negative, or there is no such lattice.
    """

    shape: str
    size: tuple[int, ...]
    least: int = 2
    most: int = 48
    walls: int = 20
    n_states: int = 96
    enclosed: float = 0.0
    terminal: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most < min(self.n_states, self.lattice.n_locations + 1):
            raise ValueError(
                f"least and most must be 1 <= least <= most < {self.n_states} states and at most "
                f"{self.lattice.n_locations} locations, got {self.least} and {self.most}"
            )
        if self.walls < 0:
            raise ValueError(f"walls must not be negative, got {self.walls}")

    @property
    def lattice(self) -> Lattice:
        return lattice_of(self.shape, self.size)

    @property
    def most_observed(self) -> int:
        """Greatest number of observed locations."""
        return self.most + self.walls

    @property
    def most_walls(self) -> int:
        """Greatest number of observed wall locations."""
        return self.walls

    def generate(self, rng: np.random.Generator, n: int) -> RoomBatch:
        """Draw n rooms."""
        lattice = self.lattice
        walls = _draw_walls(rng, n, lattice)
        share = (rng.random((n, 1)) < ENDING * self.terminal) * rng.uniform(0, MOST_TERMINAL, (n, 1))
        terminal = (rng.random(walls.shape) < share)[:, lattice.cells] & ~walls
        enclosed = rng.random((n, 1)) < self.enclosed
        whole = enclosed[:, 0] | (rng.random(n) < WHOLE_CELLS)
        region = _grow(rng, rng.integers(self.least, self.most + 1, n), ~walls & ~terminal, whole, lattice)
        beside = np.zeros_like(region)
        room, source, action = np.nonzero(region[:, :, None] & lattice.on_lattice)
        beside[room, lattice.neighbors[source, action]] = True
        ends = beside & terminal
        too_many = ends & (ends.cumsum(1) > self.most - region.sum(1, keepdims=True))
        walls |= _of_whole_cells(too_many, lattice)  # no state is left for these
        ends &= ~walls
        walls |= enclosed & ~_of_whole_cells(region | ends, lattice)
        order = np.where(beside & walls, rng.random(walls.shape, dtype=np.float32), 2).argsort(1)[:, : self.walls]
        seen = np.zeros_like(walls)
        np.put_along_axis(seen, order, True, 1)
        observed = region | ends | (seen & beside & walls)
        return self.name(rng, RoomBatch(lattice, np.zeros(walls.shape, np.int64), walls, observed, terminal & ~walls))

    def name(self, rng: np.random.Generator, rooms: RoomBatch) -> RoomBatch:
        """The same rooms with states drawn anew.

        Raises:
            ValueError: if a room has more observed free locations than there are states.
        """
        n = len(rooms)
        free = rooms.observed & ~rooms.walls
        count = free.sum(1, keepdims=True)
        if (count >= self.n_states).any():
            raise ValueError(f"{count.max()} observed locations need more than {self.n_states} states")
        order = rng.random((n, self.n_states)).argsort(1)
        left = count + rng.integers(2**31, size=free.shape) % (self.n_states - count)
        return replace(rooms, states=np.take_along_axis(order, np.where(free, free.cumsum(1) - 1, left), 1))


def _of_whole_cells(locations: np.ndarray, lattice: Lattice) -> np.ndarray:
    """(B, L) bool, all locations of the cells in which one of these (B, L) lies."""
    cells = np.zeros_like(locations)
    room, location = np.nonzero(locations)
    cells[room, lattice.cells[location]] = True
    return cells[:, lattice.cells]


def _draw_walls(rng: np.random.Generator, n: int, lattice: Lattice) -> np.ndarray:
    """Draw (n, L) bool walls: none, scattered ones, or runs of cells that one action leads to, one after the other."""
    share = (rng.random((n, 1)) < WALLED) * rng.uniform(0, MOST_WALLS, (n, 1))
    runs = rng.random((n, 1)) < STRAIGHT
    per_cell = lattice.n_locations / (lattice.cells.max() + 1) * np.where(runs, (1 + LONGEST) / 2, 1)
    walls = rng.random((n, lattice.n_locations)) < share / per_cell
    room, tip = np.nonzero(walls & runs)
    way = rng.integers(lattice.n_actions, size=len(tip))
    length = rng.integers(1, LONGEST + 1, len(tip))
    for step in range(1, LONGEST):
        tip = np.where((tip >= 0) & (step < length), lattice.neighbors[tip, way], -1)
        walls[room[tip >= 0], tip[tip >= 0]] = True
    return _of_whole_cells(walls, lattice)


def _grow(
    rng: np.random.Generator, sizes: np.ndarray, free: np.ndarray, whole: np.ndarray, lattice: Lattice
) -> np.ndarray:
    """Draw (n, L) bool connected regions of free locations (n, L), each of its size or as large as it can grow; those
    that are `whole` (n,) hold one cell with all of its locations before the next."""
    n, n_locations = free.shape
    rooms = np.arange(n)
    chance = rng.random(free.shape, dtype=np.float32)
    seed = np.where(free, chance, -1).argmax(1)
    ragged = rng.uniform(0, RAGGED, (n, 1)).astype(np.float32)
    weight = lattice.distances[seed] + ragged * rng.random(free.shape, dtype=np.float32)
    weight[~free] = np.inf
    key = np.full((n, n_locations + 1), np.inf, np.float32)  # last column: off the lattice
    key[rooms, seed] = np.where(free[rooms, seed], 0, np.inf)
    region = np.zeros((n, n_locations + 1), bool)
    region[:, -1] = True
    cells = lattice.cells
    for step in range(sizes.max(initial=0)):
        nearest = key[:, :-1].argmin(1)
        grows = (step < sizes) & (key[rooms, nearest] < np.inf)
        region[rooms[grows], nearest[grows]] = True
        key[rooms, nearest] = np.inf
        around = lattice.neighbors[nearest]
        inner = whole[:, None] & (cells[around] == cells[nearest][:, None])  # what completes a cell comes first
        new = np.where(inner, -1 - weight[rooms[:, None], around], weight[rooms[:, None], around])
        taken = region[rooms[:, None], around] | ~free[rooms[:, None], around] | ~grows[:, None]
        key[rooms[:, None], around] = np.where(taken, key[rooms[:, None], around], new)
    return region[:, :-1]
