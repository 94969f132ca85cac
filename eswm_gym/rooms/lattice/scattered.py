"""Random rooms that are a whole lattice with walls scattered over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eswm_gym.checks import require_choices
from eswm_gym.rooms.lattice.generation import RoomBatch
from eswm_gym.rooms.lattice.geometry import Lattice
from eswm_gym.rooms.lattice.shapes import lattice_of


@dataclass(frozen=True)
class ScatteredConfig:
    """A family of rooms: a whole lattice, all of it observed, with as many states as locations, dealt at random.

    Attributes:
        shape: "hexagon", "square", "diagonal", "torus" or "pose", see `lattice_of`.
        size: of the lattice.
        walls: greatest share of cells that are walls. How many there are is drawn uniformly, and then which.
        actions: "known": as the lattice numbers them; "permuted": each room numbers them at random.

    Raises:
        ValueError: if there is no such lattice, no move in it, or no such kind of actions, or the share is not from 0
            to less than 1.
    """

    shape: str
    size: tuple[int, ...]
    walls: float = 0.2
    actions: Literal["known", "permuted"] = "known"

    def __post_init__(self) -> None:
        require_choices(actions=(self.actions, ("known", "permuted")))
        if not 0 <= self.walls < 1:
            raise ValueError(f"walls must be a share from 0 to less than 1 of the cells, got {self.walls}")
        if not len(self.lattice.edges):
            raise ValueError(f"a room needs two locations with a move between them, got {self.shape} {self.size}")

    @property
    def lattice(self) -> Lattice:
        return lattice_of(self.shape, self.size)

    @property
    def states(self) -> range:
        """The vocabulary."""
        return range(self.lattice.n_locations)

    def generate(self, rng: np.random.Generator, n: int) -> RoomBatch:
        """Draw n rooms."""
        lattice = self.lattice
        n_cells = lattice.cells.max() + 1
        count = rng.integers(int(self.walls * n_cells) + 1, size=(n, 1))
        rank = rng.permuted(np.tile(np.arange(n_cells), (n, 1)), axis=1)
        actions = np.tile(np.arange(lattice.n_actions), (n, 1))
        return RoomBatch(
            lattice=lattice,
            states=rng.permuted(np.tile(self.states, (n, 1)), axis=1),
            walls=(rank < count)[:, lattice.cells],
            observed=np.ones((n, lattice.n_locations), bool),
            numbers=rng.permuted(actions, axis=1) if self.actions == "permuted" else None,
        )
