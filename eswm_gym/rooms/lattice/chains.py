"""Banks that hold one long way between two neighbours (ours): what a window around a wall holds of a large world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from eswm_gym.rooms.lattice.banks import BankBatch, _shuffle, spanning_banks
from eswm_gym.rooms.lattice.generation import RoomBatch

FROM_CHAIN = 0.5  # share of the chains with neighbours beside them
BESIDE = 8  # the most that are kept of those


def chain_banks(rng: np.random.Generator, rooms: RoomBatch, longest: int) -> BankBatch:
    """Of a minimal spanning bank, keep the way between two neighbours that it does not join, and the bumps beside it.

    A length is the likelier the greater it is, however many ways have it. What is not on the way is not observed.

    Args:
        rng: source of randomness.
        rooms: B rooms.
        longest: the greatest number of locations on a way.
    """
    banks, lattice = spanning_banks(rng, rooms), rooms.lattice
    source, action = banks.source.copy(), banks.action.copy()
    observed = np.zeros_like(rooms.observed)
    for room, (free, starts, ways) in enumerate(zip(rooms.observed & rooms.passable, source, action, strict=True)):
        ends = np.where(starts >= 0, lattice.next_location[starts, ways], -1)
        joins = (starts >= 0) & rooms.passable[room, ends]
        tree = csr_array((np.ones(joins.sum()), (starts[joins], ends[joins])), (len(free), len(free)))
        length, before = shortest_path(tree, directed=False, unweighted=True, return_predecessors=True)
        first, way = np.nonzero(free[:, None] & lattice.on_lattice)
        last = lattice.neighbors[first, way]
        apart = length[first, last]
        possible = (apart > 1) & (apart < longest)
        chain = np.zeros(len(free), bool)
        if possible.any():
            first, last, apart = first[possible], last[possible], apart[possible].astype(int)
            weight = apart / np.bincount(apart)[apart]
            chosen = rng.choice(len(apart), p=weight / weight.sum())
            here = last[chosen]
            while here >= 0:
                chain[here] = True
                here = before[first[chosen], here]
            if rng.random() < FROM_CHAIN:
                near = np.flatnonzero(free & ~chain & (length[chain].min(0) == 1))
                chain[rng.permutation(near)[: rng.integers(BESIDE + 1)]] = True
        else:
            chain = free.copy()
        kept = (starts >= 0) & chain[starts] & (chain[ends] | ~joins)
        starts[~kept], ways[~kept] = -1, -1
        observed[room] = chain
        observed[room, ends[kept]] = True
    return _shuffle(rng, replace(rooms, observed=observed), source, action)
