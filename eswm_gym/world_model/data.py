"""Training and evaluation problems: fresh rooms, banks and queries, nothing stored (paper: "Query Selection")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import IterableDataset

from eswm_gym.rooms import (
    N_ACTIONS,
    TRAINING_MIX,
    BankBatch,
    Kind,
    QueryBatch,
    RoomConfig,
    add_transitions,
    draw_queries,
    generate_rooms,
    spanning_banks,
    walk_banks,
)
from eswm_gym.rooms.lattice.trajectories import add_walks, trajectory_banks
from eswm_gym.world_model.eswm import ACTION, END, MASKED, SOURCE

NO_CONTEXT = 0.1  # share of training banks without the context that their source gives them


class Problems(NamedTuple):
    """Tensors of one batch of B banks with Q queries each.

    Attributes:
        memories: (B, N, 3) int64, padded with -1.
        query: (B, Q, 3) int64, the masked component -1.
        target: (B, Q) int64, class of the masked component, the last class of its head for "I don't know".
        masked: (B, Q) int64.
    """

    memories: Tensor
    query: Tensor
    target: Tensor
    masked: Tensor


class ProblemSource(Protocol):
    """One kind of problem in a mixture."""

    @property
    def share(self) -> float:
        """How often it is drawn, relative to the other sources."""

    def draw(self, rng: np.random.Generator, rooms: int, queries: int, n_states: int) -> Problems:
        """Draw a batch of problems for a vocabulary."""


@dataclass(frozen=True)
class Source:
    """One kind of problem in a mixture.

    Attributes:
        rooms: the family of rooms.
        bank: "minimal" spanning banks, "dense" ones with extra transitions, banks from a "walk", or a minimal
            spanning "trajectory" in order.
        share: how often it is drawn, relative to the other sources.
        mix: shares of the kinds of query.
        components: those that may be masked.
        context: length of a walk in the last rows of each bank, which ends where all queries of that bank start.
    """

    rooms: RoomConfig
    bank: Literal["minimal", "dense", "walk", "trajectory"] = "minimal"
    share: float = 1.0
    mix: tuple[float, ...] = TRAINING_MIX
    components: tuple[int, ...] = (SOURCE, ACTION, END)
    context: int = 0

    def __post_init__(self) -> None:
        if self.context < 0:
            raise ValueError(f"context must not be negative, got {self.context}")

    @property
    def capacity(self) -> int:
        """Rows of the padded banks.

        One less than the locations (the observed ones, if rooms observe a number of them) if minimal, two more than
        that for each wall location in a trajectory, which bumps into it and goes around it, else up to twice the
        locations; and the context.
        """
        n = self.rooms.observed or self.rooms.n_locations
        detours = {"minimal": 0, "trajectory": 2 * self.rooms.wall_lengths[1]}
        return self.context + (n - 1 + detours[self.bank] if self.bank in detours else 2 * n)

    def draw_banks(self, rng: np.random.Generator, n: int) -> BankBatch:
        """Draw n rooms with a bank each, the context behind it."""
        if self.context:
            return add_walks(rng, replace(self, context=0).draw_banks(rng, n), self.context, self.capacity)
        rooms = generate_rooms(rng, n, self.rooms)
        if self.bank == "walk":
            return walk_banks(rng, rooms, rng.integers(self.capacity + 1, size=n), orderly=0.75)
        if self.bank == "trajectory":
            return trajectory_banks(rng, rooms, self.capacity)
        banks = spanning_banks(rng, rooms)
        if self.bank == "dense":
            banks = add_transitions(rng, banks, rng.integers(self.capacity - (banks.source >= 0).sum(1) + 1))
        return banks

    def draw(self, rng: np.random.Generator, rooms: int, queries: int, n_states: int) -> Problems:
        """Draw a batch of problems for a vocabulary."""
        banks = self.draw_banks(rng, rooms)
        asked = self.mask(rng, draw_queries(rng, banks, queries, self.mix, self.start(banks)))
        problems = to_problems(banks, asked, self.capacity, n_states)
        if self.context:  # left out now and then, so that a model learns what it can answer without
            problems.memories[rng.random(rooms) < NO_CONTEXT, -self.context :] = MASKED
        return problems

    def start(self, banks: BankBatch) -> np.ndarray | None:
        """(B,) int, the location where the context of each bank ends, any where it is padding. None without context."""
        if not self.context:
            return None
        return banks.rooms.targets()[np.arange(len(banks.source)), banks.source[:, -1], banks.action[:, -1]]

    def mask(self, rng: np.random.Generator, queries: QueryBatch) -> QueryBatch:
        """Mask only the components that this source asks for."""
        if self.components == (SOURCE, ACTION, END):
            return queries
        return replace(queries, masked=rng.choice(self.components, size=queries.masked.shape))


def to_problems(banks: BankBatch, queries: QueryBatch, capacity: int, n_states: int) -> Problems:
    """Pad the banks to `capacity` rows, hide the masked components and work out the targets."""
    memories = np.full((len(banks.source), capacity, 3), MASKED)
    transitions = banks.transitions()
    memories[:, : transitions.shape[1]] = transitions
    component = queries.masked[..., None]
    query = queries.transitions.copy()
    truth = np.take_along_axis(query, component, 2)[..., 0]
    np.put_along_axis(query, component, MASKED, 2)
    # A room observed nowhere offers no proper query (kind -1): nothing about it can be known.
    unknown = (queries.kind == Kind.UNSOLVABLE) | (queries.kind < 0)
    target = np.where(unknown, np.where(queries.masked == ACTION, N_ACTIONS, n_states), truth)
    return Problems(*map(torch.from_numpy, (memories, query, target, queries.masked)))


COMPONENTS = ("source", "action", "end")


def cells_of(kind: np.ndarray, masked: np.ndarray) -> Iterator[tuple[Kind, int, str, np.ndarray]]:
    """The cells of a table of measures: kind, component, name such as `unseen/end`, and (N,) bool which queries."""
    for k in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE):
        for m, component in enumerate(COMPONENTS):
            cell = (kind == k) & (masked == m)
            if cell.any():
                yield k, m, f"{k.name.lower()}/{component}", cell


class ProblemStream(IterableDataset):
    """Endless training batches, each a function of (seed, rank, step) alone, so that a run can be resumed exactly.

    Args:
        sources: the mixture; every batch comes from one of them.
        n_states: vocabulary of the model.
        rooms, queries: B and Q.
        seed: seed of the run.
        rank: which of the training processes this is.
        first: step to start at.
    """

    def __init__(
        self,
        sources: Sequence[ProblemSource],
        n_states: int,
        rooms: int,
        queries: int,
        seed: int,
        rank=0,
        first=0,
    ) -> None:
        self.sources, self.n_states = sources, n_states
        self.rooms, self.queries = rooms, queries
        self.seed, self.rank, self.first = seed, rank, first

    def batch(self, step: int) -> Problems:
        """The batch of this step: the source is the same in every process, the rooms are not."""
        share = np.array([source.share for source in self.sources])
        kind = np.random.default_rng([self.seed, step]).choice(len(share), p=share / share.sum())
        source = self.sources[kind]
        rng = np.random.default_rng([self.seed, step, 1 + self.rank])
        return source.draw(rng, self.rooms, self.queries, self.n_states)

    def __iter__(self) -> Iterator[Problems]:
        worker = torch.utils.data.get_worker_info()
        step, stride = (self.first + worker.id, worker.num_workers) if worker else (self.first, 1)
        while True:
            yield self.batch(step)
            step += stride
