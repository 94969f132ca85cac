"""Banks that hold one long way between two neighbours (ours): what a window around a wall holds of a large world."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
        around: dict[int, list[int]] = {at: [] for at in np.flatnonzero(free).tolist()}
        for start, end in zip(starts[joins].tolist(), ends[joins].tolist(), strict=True):
            around[start].append(end)
            around[end].append(start)
        # From each location, the way to each of its neighbours that is no step in the tree and not too long.
        found = [
            way
            for here in around
            for near in [set(lattice.neighbors[here].tolist())]
            for there, way in _ways(around, here).items()
            if 2 < len(way) <= longest and there in near
        ]
        chain = free.copy()
        if found:
            apart = np.array(list(map(len, found)))
            weight = apart / np.bincount(apart)[apart]
            on_way = found[rng.choice(len(found), p=weight / weight.sum())]
            chain[:] = False
            chain[on_way] = True
            if rng.random() < FROM_CHAIN:
                near = sorted({at for here in on_way for at in around[here]} - set(on_way))
                chain[rng.permutation(near)[: rng.integers(BESIDE + 1)].astype(int)] = True
        kept = (starts >= 0) & chain[starts] & (chain[ends] | ~joins)
        starts[~kept], ways[~kept] = -1, -1
        observed[room] = chain
        observed[room, ends[kept]] = True
    return _shuffle(rng, replace(rooms, observed=observed), source, action)


def _ways(around: dict[int, list[int]], start: int) -> dict[int, list[int]]:
    """The way from a location to each that a tree joins to it, both ends included."""
    ways, queue = {start: [start]}, [start]
    for here in queue:
        for there in around[here]:
            if there not in ways:
                ways[there] = [*ways[here], there]
                queue.append(there)
    return ways
