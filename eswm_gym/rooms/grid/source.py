"""Problems about MiniGrid's rooms: fresh rooms, banks and queries, nothing stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eswm_gym.checks import require_choices
from eswm_gym.rooms.grid.banks import COVER_BANK_SIZE, GridBankBatch, GridBatch, cover_banks, walk_banks
from eswm_gym.rooms.grid.layouts import GridConfig, generate_grids
from eswm_gym.rooms.grid.queries import GridQueryBatch, draw_queries
from eswm_gym.rooms.grid.views import N_ACTIONS, N_CELLS
from eswm_gym.rooms.transitions import Problems, to_problems

WALK_BANK_SIZE = 80


@dataclass(frozen=True)
class GridSource:
    """Problems about MiniGrid's rooms.

    Attributes:
        rooms: the family of rooms.
        bank: "cover": transitions from all over the room that together show it; or those of a "walk".
        share: how often it is drawn in a mixture, relative to the other sources.
        hidden: greatest share of the room that a cover bank does not show; drawn uniformly for half of the rooms.
        wrong_cells: least and greatest share of the cells of a view, in bank and queries, that are wrong or unseen; the
            answers that count as right have no errors.
        looks: share of the queries that ask for the given view itself, as it is without errors.
        steps: most steps of a walk.

    Raises:
        ValueError: if there is no such kind of bank, or `hidden`, `wrong_cells`, `looks` or `steps` are out of range.
    """

    rooms: GridConfig
    bank: Literal["cover", "walk"] = "cover"
    share: float = 1.0
    hidden: float = 0.0
    wrong_cells: tuple[float, float] = (0.0, 0.0)
    looks: float = 0.0
    steps: int = WALK_BANK_SIZE

    def __post_init__(self) -> None:
        require_choices(bank=(self.bank, ("cover", "walk")))
        if not 0 <= self.hidden <= 1:
            raise ValueError(f"hidden must lie between 0 and 1, got {self.hidden}")
        if not 0 <= self.wrong_cells[0] <= self.wrong_cells[1] <= 1:
            raise ValueError(f"wrong_cells must be 0 <= least <= greatest <= 1, got {self.wrong_cells}")
        if not 0 <= self.looks <= 1 or self.steps < 1:
            raise ValueError(f"looks must lie between 0 and 1 and steps be at least 1, got {self.looks}, {self.steps}")

    @property
    def cells(self) -> int:
        return N_CELLS

    @property
    def n_actions(self) -> int:
        return N_ACTIONS

    @property
    def capacity(self) -> int:
        return COVER_BANK_SIZE if self.bank == "cover" else self.steps

    def draw_banks(self, rng: np.random.Generator, n: int) -> GridBankBatch:
        """Draw n rooms with a bank each."""
        rooms = GridBatch.of(generate_grids(rng, n, self.rooms))
        if self.bank == "walk":
            banks = walk_banks(rng, rooms, rng.integers(self.capacity + 1, size=n))
        else:
            hidden = np.where(rng.random(n) < 0.5, rng.random(n) * self.hidden, 0.0)
            banks = cover_banks(rng, rooms, 1 - hidden)
        return replace(banks, wrong_cells=rng.uniform(*self.wrong_cells, n), seed=int(rng.integers(2**62)))

    def ask(self, rng: np.random.Generator, banks: GridBankBatch, n: int) -> GridQueryBatch:
        """Draw n queries about each bank."""
        return draw_queries(rng, banks, n, looks=self.looks)

    def draw(self, rng: np.random.Generator, n_rooms: int, n_queries: int) -> Problems:
        """Draw a batch for training."""
        banks = self.draw_banks(rng, n_rooms)
        return to_problems(banks, self.ask(rng, banks, n_queries), self.capacity)

    def is_true(self, banks: GridBankBatch, transitions: np.ndarray) -> None:
        """Not measured: any other view than the one asked for counts as wrong, even if the room shows it."""
