"""Training and evaluation problems of MiniGrid's rooms, fresh ones, nothing stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from eswm_gym.rooms.grid import (
    COVER_BANK_SIZE,
    N_CELLS,
    UNDECIDED,
    GridBanks,
    GridConfig,
    GridQueries,
    GridRooms,
    cover_banks,
    draw_queries,
    generate_grids,
    walk_banks,
)
from eswm_gym.rooms.lattice.queries import Kind
from eswm_gym.world_model.data import Problems
from eswm_gym.world_model.eswm import ACTION, MASKED, SOURCE

WALK_BANK_SIZE = 80


@dataclass(frozen=True)
class GridSource:
    """One kind of problem in a mixture.

    Attributes:
        rooms: the family of rooms.
        bank: "cover": transitions here and there that show the room; or those of a "walk".
        share: how often it is drawn, relative to the other sources.
        hidden: greatest share of the room that a cover bank does not show; drawn uniformly for half of the rooms.
    """

    rooms: GridConfig
    bank: Literal["cover", "walk"] = "cover"
    share: float = 1.0
    hidden: float = 0.0

    @property
    def capacity(self) -> int:
        return COVER_BANK_SIZE if self.bank == "cover" else WALK_BANK_SIZE

    def draw_banks(self, rng: np.random.Generator, n: int) -> GridBanks:
        """Draw n rooms with a bank each."""
        rooms = GridRooms.of(generate_grids(rng, n, self.rooms))
        if self.bank == "walk":
            return walk_banks(rng, rooms, rng.integers(self.capacity + 1, size=n))
        hidden = np.where(rng.random(n) < 0.5, rng.random(n) * self.hidden, 0.0)
        return cover_banks(rng, rooms, 1 - hidden)

    def draw(self, rng: np.random.Generator, rooms: int, queries: int, n_states: int) -> Problems:
        """Draw a batch of problems; `n_states` is of no use to views."""
        banks = self.draw_banks(rng, rooms)
        return to_problems(banks, draw_queries(rng, banks, queries), self.capacity)


def to_problems(banks: GridBanks, queries: GridQueries, capacity: int) -> Problems:
    """Pad the banks to `capacity` rows, hide the masked components and work out the targets (see `ViewPrediction`)."""
    transitions = banks.transitions()
    memories = np.full((len(transitions), capacity, transitions.shape[2]), MASKED)
    memories[:, : transitions.shape[1]] = transitions
    query = queries.transitions.copy()
    source, action, end = query[..., :N_CELLS], query[..., N_CELLS], query[..., N_CELLS + 1 :]
    masked = queries.masked
    target = np.zeros((*masked.shape, N_CELLS + 1), np.int64)
    target[..., :-1] = np.where((masked == SOURCE)[..., None], source, end)
    target[..., 0] = np.where(masked == ACTION, action, target[..., 0])
    target[..., -1] = np.where(queries.kind == UNDECIDED, -1, queries.kind == Kind.UNSOLVABLE)
    for component, part in enumerate((source, action[..., None], end)):
        part[masked == component] = MASKED
    return Problems(*map(torch.from_numpy, (memories, query, target, masked)))
