"""Memory banks of batches of rooms (paper: "Generating Memory Banks").

A batch of banks is a (B, M, 3) int array of (s_s, a, s_e) rows in random order, padded with -1 at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eswm_gym.rooms.lattice.generation import RoomBatch
from eswm_gym.rooms.lattice.geometry import Lattice
from eswm_gym.rooms.transitions import Moves, pack

CHUNK = 1024  # rooms whose spanning forests grow at the same time: as many as a processor's cache holds


@dataclass(frozen=True, eq=False)
class BankBatch:
    """A memory bank for each of B rooms, as moves.

    Attributes:
        rooms: the rooms; `rooms.observed` is the region that the banks cover.
        source: (B, M) int, location where each move starts, -1 for padding.
        action: (B, M) int, its action, -1 for padding.
        cluster: (B, L) int, of a bank that falls into parts which no memory connects: to which each observed location
            belongs. None: it does not.
        joined: (B,) bool, whether the bank tells how its clusters lie to each other.
    """

    rooms: RoomBatch
    source: np.ndarray
    action: np.ndarray
    cluster: np.ndarray | None = None
    joined: np.ndarray | None = None

    def transitions(self) -> np.ndarray:
        """(B, M, 3) int, the moves as (s_s, a, s_e), -1 for padding."""
        rows = np.arange(len(self.source))[:, None]
        ahead = self.rooms.lattice.next_location[self.source, self.action]
        end = np.where(self.rooms.walls[rows, ahead], self.source, ahead)
        states = self.rooms.states
        action = self.rooms.numbered(self.action)
        bank = np.stack([states[rows, self.source], action, states[rows, end]], axis=2)
        bank[self.source < 0] = -1
        return bank

    def holds(self) -> np.ndarray:
        """(B, L, A) bool, whether the bank holds the move from each location by each action."""
        held = np.zeros(self.rooms.states.shape + (self.rooms.lattice.n_actions,), bool)
        room, slot = np.nonzero(self.source >= 0)
        held[room, self.source[room, slot], self.action[room, slot]] = True
        return held

    def moves(self) -> Moves:
        """The observed moves of each room that stay on its lattice."""
        rooms, room = self.rooms, np.arange(len(self.source))[:, None]
        start, action = pack(observed_moves(rooms) & rooms.lattice.on_lattice)
        end = rooms.targets()[room, start, action]
        rows = np.stack([rooms.states[room, start], rooms.numbered(action), rooms.states[room, end]], 2)
        return Moves(start, end, rows.astype(np.int64), rooms.lattice.n_locations)


def _shuffle(rng: np.random.Generator, rooms: RoomBatch, source: np.ndarray, action: np.ndarray) -> BankBatch:
    """Put the moves in random order, padding last, and cut off the columns that hold nothing but padding."""
    key = rng.random(source.shape, dtype=np.float32)
    key[source < 0] = 2
    order = key.argsort(1)[:, : max(1, (source >= 0).sum(1).max(initial=0))]
    return BankBatch(rooms, np.take_along_axis(source, order, 1), np.take_along_axis(action, order, 1))


def spanning_banks(rng: np.random.Generator, rooms: RoomBatch) -> BankBatch:
    """Draw one minimal spanning bank for each room.

    A minimum spanning forest with random weights over the observed free locations, each edge walked in a random
    direction (in its own, if no action leads back), plus one move into each observed wall or terminal location that
    an observed free one lies beside.

    Args:
        rng: source of randomness.
        rooms: B rooms.

    Returns:
        B banks of at most L - 1 transitions.
    """
    lattice = rooms.lattice
    n, n_locations = rooms.states.shape
    free = rooms.observed & rooms.passable
    weight = rng.random((n, len(lattice.edges)), dtype=np.float32)
    first = np.zeros(free.shape, np.float32)
    first[free] = 2 + rng.random(free.sum(), dtype=np.float32)
    joined_by = np.concatenate(
        [_join(lattice, free[i : i + CHUNK], weight[i : i + CHUNK], first[i : i + CHUNK]) for i in range(0, n, CHUNK)]
        or [np.zeros(free.shape, np.int64)]
    )
    # A location is joined by a move to it or, where no action leads back, by one from it.
    here, reverse = np.arange(n_locations), lattice.reverse
    leaves = joined_by >= lattice.n_actions
    way = np.concatenate([np.arange(lattice.n_actions), np.flatnonzero(reverse < 0), [-1]])  # its action; -1 for none
    action = way[joined_by]
    source = np.where(action < 0, -1, np.where(leaves, here, lattice.arrivals[here, action]))
    flip = (rng.random(source.shape, dtype=np.float32) < 0.5) & (source >= 0) & (reverse[action] >= 0)
    source = np.where(flip, here, source)
    action = np.where(flip, reverse[action], action)

    # A wall or terminal location has no edge in the forest, so the move into it takes its place in the arrays.
    walls = rooms.observed & ~rooms.passable
    room, wall = np.nonzero(walls)
    into = np.where(reverse < 0, np.arange(lattice.n_actions), reverse)  # every action once
    around = lattice.arrivals[wall[:, None], into]
    score = rng.random(around.shape, dtype=np.float32)
    score *= (around >= 0) & free[room[:, None], around]
    best = score.argmax(1)
    reachable = score.max(1, initial=0) > 0
    room, wall, bump = room[reachable], wall[reachable], into[best[reachable]]
    source[room, wall] = lattice.arrivals[wall, bump]
    action[room, wall] = bump
    return _shuffle(rng, rooms, source, action)


def _join(lattice: Lattice, free: np.ndarray, weight: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Grow minimum spanning forests by Prim's algorithm, in all rooms at once.

    Args:
        lattice: the lattice.
        free: (B, L) bool, the locations to join.
        weight: (B, E) float32 below 1, of each edge, a multiple of 2**-24.
        first: (B, L) float32 from 2 to 3, a multiple of 2**-22; the location with the least starts the next tree.

    Returns:
        (B, L) int, the column of `lattice.adjacent` by which its tree reached each location, -1 for locations that
        start a tree or are not free.
    """
    n, n_locations = free.shape
    n_ways = lattice.adjacent.shape[1]
    bits = n_locations.bit_length()
    whole = np.int64 if bits > 6 else np.int32
    # The key of a location is the weight of the lightest edge from the tree to it, as a whole number, with the location
    # in its last bits. What is joined, not free or off the lattice has -1: read as unsigned it is the greatest number,
    # never the next to join; read as signed it is the least, so that no edge is lighter.
    key = np.full((n_locations + 1, n), -1, whole)
    order = 2**24 + (first - 2) * 2**22
    key[:-1] = np.where(free, (order.astype(whole) << bits) + np.arange(n_locations, dtype=whole), -1).T
    unsigned = key.view(np.uint64 if bits > 6 else np.uint32)
    joined_by = np.full(key.shape, -1, np.int8)
    heavy = np.ascontiguousarray((weight * 2**24).astype(whole).T) << bits
    room = np.arange(n)
    row_of = np.full(2**bits, n_locations)
    row_of[:n_locations] = np.arange(n_locations)
    around_of = np.full((n_ways, 2**bits), n_locations)
    around_of[:, :n_locations] = np.where(lattice.adjacent < 0, n_locations, lattice.adjacent).T
    edge_of = np.zeros((n_ways, 2**bits), np.int64)
    edge_of[:, :n_locations] = lattice.edge_of.T
    ways = np.repeat(np.arange(n_ways, dtype=np.int8), n)
    flat, flat_joined_by, flat_heavy = key.ravel(), joined_by.ravel(), heavy.ravel()
    for _ in range(free.sum(1).max(initial=0)):
        here = (unsigned.min(0) & (2**bits - 1)).astype(np.int64)
        flat[row_of[here] * n + room] = -1
        around = around_of.take(here, axis=1)
        place = (around * n + room).ravel()
        new = flat_heavy.take((edge_of.take(here, axis=1) * n + room).ravel()) + around.ravel().astype(whole)
        lighter = np.flatnonzero(new < flat.take(place))
        place = place[lighter]
        flat[place] = new[lighter]
        flat_joined_by[place] = ways[lighter]
    return joined_by[:-1].T.astype(np.int64)


def add_transitions(
    rng: np.random.Generator, banks: BankBatch, extra: np.ndarray, off_lattice: bool = True
) -> BankBatch:
    """Make banks dense: add observed moves that they do not hold yet.

    Args:
        rng: source of randomness.
        banks: B banks.
        extra: (B,) int, how many to add; fewer are added where a room has no more.
        off_lattice: whether moves off the lattice, which stay in place, may be added.
    """
    rooms, n_actions = banks.rooms, banks.rooms.lattice.n_actions
    candidates = observed_moves(rooms) & ~banks.holds()
    if not off_lattice:
        candidates &= rooms.lattice.on_lattice
    candidates = candidates.reshape(len(rooms), -1)
    extra = np.minimum(extra, candidates.sum(1))
    key = np.where(candidates, rng.random(candidates.shape, dtype=np.float32), 2)
    chosen = key.argsort(1)[:, : extra.max(initial=0)]
    chosen = np.where(np.arange(chosen.shape[1]) < extra[:, None], chosen, -1)
    source = np.where(chosen >= 0, chosen // n_actions, -1)
    action = np.where(chosen >= 0, chosen % n_actions, -1)
    return _shuffle(rng, rooms, np.hstack([banks.source, source]), np.hstack([banks.action, action]))


def walk_banks(
    rng: np.random.Generator, rooms: RoomBatch, steps: np.ndarray, curiosity: float = 0.8, orderly: float = 0.0
) -> BankBatch:
    """Draw banks from walks, each transition kept once; locations that a walk did not touch become unobserved.

    Args:
        rng: source of randomness.
        rooms: B rooms; their own unobserved regions are ignored.
        steps: (B,) int, length of each walk.
        curiosity: probability of preferring a move that was not tried at this location yet.
        orderly: share of the walks that explore as a good explorer does: they go to the neighbour, of those not
            visited yet, that has most of the rim and of visited locations around it. Such walks zigzag: two
            neighbours may come many steps after each other.
    """
    lattice = rooms.lattice
    n, n_locations = rooms.states.shape
    batch = np.arange(n)
    start = here = np.where(rooms.passable, 1 + rng.random(rooms.walls.shape, dtype=np.float32), 0).argmax(1)
    targets = rooms.targets()
    tried = np.zeros((n, n_locations, lattice.n_actions), bool)
    observed = np.zeros((n, n_locations + 1), bool)
    observed[batch, here] = True
    visited = np.zeros((n, n_locations + 1), bool)  # last column: off the lattice
    in_order = rng.random((n, 1)) < orderly
    for step in range(steps.max(initial=0)):
        walking = step < steps
        score = rng.random((n, lattice.n_actions), dtype=np.float32)
        score += ~tried[batch, here] * (rng.random((n, 1)) < curiosity)
        # A user's explorer reads the action mask, so moves off the lattice are rare.
        score += (lattice.on_lattice[here] | (rng.random((n, 1)) < 0.1)) * np.float32(2)
        visited[batch, here] = True
        there = lattice.neighbors[here]
        enclosed = (visited[batch[:, None, None], lattice.neighbors[there]] | (lattice.neighbors[there] < 0)).sum(2)
        fresh = ~visited[batch[:, None], there] & ~tried[batch, here] & lattice.on_lattice[here]
        score += (in_order & fresh) * (4 + enclosed).astype(np.float32)
        action = score.argmax(1)
        tried[batch[walking], here[walking], action[walking]] = True
        observed[batch[walking], lattice.neighbors[here, action][walking]] = True
        here = np.where(walking, targets[batch, here, action], here)
        here = np.where(rooms.passable[batch, here], here, start)  # the next episode begins
    seen = replace(rooms, observed=observed[:, :-1])
    room, source, action = np.nonzero(tried)
    slot = np.arange(len(room)) - np.searchsorted(room, batch)[room]
    sources = np.full((n, max(1, slot.max(initial=0) + 1)), -1)
    actions = sources.copy()
    sources[room, slot], actions[room, slot] = source, action
    return _shuffle(rng, seen, sources, actions)


def observed_moves(rooms: RoomBatch) -> np.ndarray:
    """(B, L, A) bool, moves from an observed free location to an observed location or off the lattice."""
    free = rooms.observed & rooms.passable
    around = rooms.lattice.neighbors
    return free[:, :, None] & (rooms.observed[:, around] | (around < 0))
