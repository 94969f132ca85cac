"""Problems about rooms on a lattice: fresh rooms, banks and queries, nothing stored (paper: "Query Selection")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, get_args

import numpy as np

from eswm_gym.checks import require_choices
from eswm_gym.rooms.lattice.banks import BankBatch, add_transitions, observed_moves, spanning_banks, walk_banks
from eswm_gym.rooms.lattice.chains import chain_banks
from eswm_gym.rooms.lattice.clusters import cluster_banks, draw_clusters, gap_moves
from eswm_gym.rooms.lattice.generation import RoomBatch, RoomConfig
from eswm_gym.rooms.lattice.noise import contradict_states, contradict_transitions, strange_states
from eswm_gym.rooms.lattice.queries import TRAINING_MIX, QueryBatch, draw_queries
from eswm_gym.rooms.lattice.regions import RegionConfig
from eswm_gym.rooms.lattice.trajectories import add_walks, trajectory_banks
from eswm_gym.rooms.lattice.vocabulary import CODES, N_NAMES, move_numbers
from eswm_gym.rooms.transitions import ACTION, END, MASKED, SOURCE, Problems, to_problems

Bank = Literal["minimal", "dense", "walk", "chain", "trajectory", "clusters"]
LONGEST_CHAIN = 32  # locations
NO_CONTEXT = 0.1  # share of training banks without the context that their source gives them


@dataclass(frozen=True)
class LatticeSource:
    """Problems about rooms on a lattice.

    Attributes:
        rooms: the family of rooms.
        bank: "minimal" spanning banks, "dense" ones with extra transitions, banks from a "walk", one long way of a
            minimal bank (a "chain"), a minimal spanning "trajectory" in order, or two minimal ones of "clusters" side
            by side, which are asked about moves from one to the other.
        share: how often it is drawn in a mixture, relative to the other sources.
        mix: shares of the kinds of query.
        components: those that may be masked.
        context: length of a walk in the last rows of each bank, which ends where the queries of that bank start.
        actions: "numbered" as the lattice does, "known" by their numbers in the vocabulary of moves, or "permuted":
            each room has codes of its own for its actions, drawn anew.
        held: least and greatest share of the observed moves on the lattice that a dense bank holds. None: any number
            of moves.
        rows: of the padded banks, the context among them. None: as many as banks of these rooms may have.
        doubtful: share of the banks whose context ends where another location shows the same state, if there is one;
            the contexts of the others end anywhere.
        noise: share of the training banks whose memories contradict each other; what is asked and true stays, also of
            a state that no memory names any more.
        elsewhere: share of the queries of a bank with a context that start anywhere, at a state which no other
            location shows: they ask how the bank hangs together.

    Raises:
        ValueError: if there is no such kind of bank or of actions, the context is negative or leaves no row,
            shares are not shares, noise has no state to show that a room lacks, or options do
            not go together.
    """

    rooms: RoomConfig | RegionConfig
    bank: Bank = "minimal"
    share: float = 1.0
    mix: tuple[float, ...] = TRAINING_MIX
    components: tuple[int, ...] = (SOURCE, ACTION, END)
    context: int = 0
    actions: Literal["numbered", "known", "permuted"] = "numbered"
    held: tuple[float, float] | None = None
    rows: int | None = None
    doubtful: float = 0.0
    noise: float = 0.0
    elsewhere: float = 0.0

    def __post_init__(self) -> None:
        require_choices(
            bank=(self.bank, get_args(Bank)),
            actions=(self.actions, ("numbered", "known", "permuted")),
        )
        if self.context < 0:
            raise ValueError(f"context must not be negative, got {self.context}")
        if self.rows is not None and self.rows <= self.context:
            raise ValueError(f"rows must be more than the {self.context} of the context, got {self.rows}")
        if self.held is not None and not 0 <= self.held[0] <= self.held[1] <= 1:
            raise ValueError(f"held must be two shares, the least first, got {self.held}")
        for name in ("doubtful", "noise", "elsewhere"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        states = getattr(self.rooms, "states", ())  # which regions do not have
        if self.noise and len(states) <= self.rooms.lattice.n_locations:
            raise ValueError(f"noise needs states that rooms lack, got {self.rooms}")
        if self.elsewhere and not self.context:
            raise ValueError(f"elsewhere is for banks with a context, got {self.elsewhere} without one")
        if self.noise and self.context:
            raise ValueError(f"banks with noise have no context, got {self.context}")
        if self.bank == "clusters":
            whole = RoomConfig.random_wall(2).n_locations
            if not states or self.rooms.most_observed < whole or self.context or self.actions != "numbered":
                raise ValueError(
                    f"clusters are drawn in whole rooms of RoomConfig with {whole} locations at least, without context "
                    f"and with numbered actions, got {self}"
                )

    @property
    def cells(self) -> int:
        return 1

    @property
    def n_actions(self) -> int:
        return self.rooms.lattice.n_actions if self.actions == "numbered" else N_NAMES

    @property
    def capacity(self) -> int:
        """Rows of the padded banks.

        A minimal bank has one row less than there are observed locations. A trajectory has two more for each wall
        location, which it bumps into and goes around. Other banks have up to twice as many rows as locations. The
        context comes on top, and so does a row for noise.
        """
        if self.rows is not None:
            return self.rows
        n = self.rooms.most_observed
        detours = {"minimal": 0, "clusters": 0, "trajectory": 2 * self.rooms.most_walls}
        added = self.noise > 0  # a contradiction takes a row
        return self.context + added + (n - 1 + detours[self.bank] if self.bank in detours else 2 * n)

    def draw_banks(self, rng: np.random.Generator, n: int) -> BankBatch:
        """Draw n rooms with a bank each, the context behind it."""
        if self.context:
            rows = self.rows and self.rows - self.context
            banks = replace(self, context=0, rows=rows, elsewhere=0.0).draw_banks(rng, n)
            end = None
            if self.doubtful:
                doubtful = banks.rooms.duplicated() & banks.rooms.observed & banks.rooms.passable
                end = np.where(doubtful, rng.random(doubtful.shape), -1).argmax(1)
                end[~doubtful.any(1) | (rng.random(n) >= self.doubtful)] = -1
            return add_walks(rng, banks, self.context, self.capacity, end)
        if self.bank == "clusters":
            rooms, cluster, joined = draw_clusters(rng, n, self.rooms)  # type: ignore[arg-type]  # a RoomConfig
            return replace(cluster_banks(rng, rooms, cluster), cluster=cluster, joined=joined)
        rooms = self._number(rng, self.rooms.generate(rng, n))
        if self.bank == "walk":
            banks = walk_banks(rng, rooms, rng.integers(self.capacity + 1, size=n), orderly=0.75)
            return replace(banks, rooms=self.rooms.name(rng, banks.rooms))
        if self.bank == "chain":
            return chain_banks(rng, rooms, LONGEST_CHAIN)
        if self.bank == "trajectory":
            return trajectory_banks(rng, rooms, self.capacity)
        banks = spanning_banks(rng, rooms)
        if self.bank == "dense" and self.held is not None:
            there = observed_moves(rooms) & rooms.lattice.on_lattice
            most = rng.uniform(*self.held, n) * there.sum((1, 2))
            has = (banks.source >= 0).sum(1)
            extra = np.clip(np.minimum(most.round().astype(int), self.capacity) - has, 0, None)
            banks = add_transitions(rng, banks, extra, off_lattice=False)
        elif self.bank == "dense":
            banks = add_transitions(rng, banks, rng.integers(self.capacity - (banks.source >= 0).sum(1) + 1))
        return banks

    def _number(self, rng: np.random.Generator, rooms: RoomBatch) -> RoomBatch:
        """Number the actions of rooms."""
        if self.actions == "numbered":
            return rooms
        shape = len(rooms), rooms.lattice.n_actions
        if self.actions == "known":
            return replace(rooms, numbers=np.broadcast_to(move_numbers(rooms.lattice.actions), shape))
        codes = rng.permuted(np.broadcast_to(CODES, (len(rooms), len(CODES))), axis=1)
        return replace(rooms, numbers=codes[:, : shape[1]])

    def ask(self, rng: np.random.Generator, banks: BankBatch, n: int) -> QueryBatch:
        """Draw n queries about each bank; with a context, those not `elsewhere` start where it ends."""
        if apart := int(self.elsewhere * n):
            unique = np.broadcast_to(~banks.rooms.duplicated()[..., None], banks.holds().shape)
            others = draw_queries(rng, banks, apart, TRAINING_MIX, unique)
            return replace(self, elsewhere=0.0).ask(rng, banks, n - apart).beside(self._mask(rng, others))
        among = None
        if self.context:  # the padding of a bank without context leads anywhere
            room, here = np.arange(len(banks.source)), np.arange(banks.rooms.lattice.n_locations)
            start = banks.rooms.targets()[room, banks.source[:, -1], banks.action[:, -1]]
            among = np.broadcast_to((here == start[:, None])[..., None], banks.holds().shape)
        elif banks.cluster is not None:
            among = gap_moves(banks.rooms, banks.cluster)
        return self._mask(rng, draw_queries(rng, banks, n, self.mix, among))

    def _mask(self, rng: np.random.Generator, queries: QueryBatch) -> QueryBatch:
        """Mask only the components that may be."""
        if self.components == (SOURCE, ACTION, END):
            return queries
        # The component is drawn a second time: drawing it once would change all problems of a seed.
        return replace(queries, masked=rng.choice(self.components, size=queries.masked.shape))

    def draw(self, rng: np.random.Generator, n_rooms: int, n_queries: int) -> Problems:
        """Draw a batch for training. Some banks lack their context, so that a model learns what it can answer without.

        Raises:
            ValueError: if mix has not one share for each kind of query.
        """
        banks = self.draw_banks(rng, n_rooms)
        problems = to_problems(banks, self.ask(rng, banks, n_queries), self.capacity)
        if self.context:
            problems.memories[rng.random(n_rooms) < NO_CONTEXT, -self.context :] = MASKED
        if self.noise:
            self._contradict(rng, problems.memories, banks.rooms.states)
        return problems

    def _contradict(self, rng: np.random.Generator, memories: np.ndarray, states: np.ndarray) -> None:
        """Let memories (B, N, 3) of some banks contradict each other, in place."""
        strange = partial(strange_states, vocabulary=self.rooms.states)  # type: ignore[union-attr]  # a RoomConfig
        noises: tuple[Callable[..., np.ndarray], ...] = (contradict_states, contradict_transitions, strange)
        noisy = (rng.random(len(memories)) < self.noise) & (memories[:, 0, 0] >= 0)
        which = np.where(noisy, rng.integers(len(noises), size=len(memories)), -1)
        for i, noise in enumerate(noises):
            memories[which == i] = noise(rng, memories[which == i], states[which == i])[:, : self.capacity]

    def is_true(self, banks: BankBatch, transitions: np.ndarray) -> np.ndarray:
        """(B, Q) bool, which transitions (B, Q, 3) happen in the rooms; none that has a -1 does."""
        return banks.rooms.is_true(transitions)
