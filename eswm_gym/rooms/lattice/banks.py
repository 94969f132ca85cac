"""Memory banks of batches of rooms (paper: "Generating Memory Banks").

A batch of banks is a (B, M, 3) int array of (s_s, a, s_e) rows in random order, padded with -1 at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.rooms.lattice.generation import RoomBatch
from eswm_gym.rooms.lattice.geometry import N_ACTIONS, HexLattice, reverse_action
from eswm_gym.rooms.streams import Streams, random_at
from eswm_gym.rooms.transitions import Moves, pack

PRIM = 1024  # rooms whose spanning forests grow at a time: as many as a processor's cache holds


@dataclass(frozen=True, eq=False)
class BankBatch:
    """The moves of each room that its memory bank holds.

    Attributes:
        rooms: the rooms; `rooms.observed` is what the banks observe.
        source: (B, M) int, location where each move starts, -1 for padding.
        action: (B, M) int, its action, -1 for padding.
    """

    rooms: RoomBatch
    source: np.ndarray
    action: np.ndarray

    def transitions(self) -> np.ndarray:
        """(B, M, 3) int, the moves as (s_s, a, s_e), -1 for padding."""
        rows = np.arange(len(self.source))[:, None]
        ahead = self.rooms.lattice.next_location[self.source, self.action]
        end = np.where(self.rooms.walls[rows, ahead], self.source, ahead)
        states = self.rooms.states
        bank = np.stack([states[rows, self.source], self.action, states[rows, end]], axis=2)
        bank[self.source < 0] = -1
        return bank

    def holds(self) -> np.ndarray:
        """(B, L, 6) bool, whether the bank holds the move from each location by each action."""
        held = np.zeros((*self.rooms.states.shape, N_ACTIONS), bool)
        room, slot = np.nonzero(self.source >= 0)
        held[room, self.source[room, slot], self.action[room, slot]] = True
        return held

    def moves(self) -> Moves:
        """The observed moves of each room that stay on its lattice."""
        rooms, room = self.rooms, np.arange(len(self.source))[:, None]
        start, action = pack(observed_moves(rooms) & rooms.lattice.on_lattice)
        end = rooms.targets()[room, start, action]
        rows = np.stack([rooms.states[room, start], action, rooms.states[room, end]], 2)
        return Moves(start, end, rows.astype(np.int64), rooms.lattice.n_locations)


def _shuffle(rng: np.random.Generator | Streams, rooms: RoomBatch, source: np.ndarray, action: np.ndarray) -> BankBatch:
    """Put the moves in random order, padding last, and cut columns that are padding everywhere."""
    key = rng.random(source.shape, dtype=np.float32)
    key[source < 0] = 2
    order = key.argsort(1)[:, : max(1, (source >= 0).sum(1).max(initial=0))]
    return BankBatch(rooms, np.take_along_axis(source, order, 1), np.take_along_axis(action, order, 1))


def spanning_banks(rng: np.random.Generator | Streams, rooms: RoomBatch) -> BankBatch:
    """Draw one minimal spanning bank for each room.

    A random-weight minimum spanning forest over the observed free locations, each edge walked in a random
    direction, plus one bump into each observed wall location that has an observed free neighbour.

    Args:
        rng: source of randomness; `Streams` draw each bank from a generator of its own.
        rooms: B rooms.

    Returns:
        B banks of at most L - 1 transitions.
    """
    lattice = rooms.lattice
    n, n_locations = rooms.states.shape
    free = rooms.observed & ~rooms.walls
    weight = rng.random((n, len(lattice.edges)), dtype=np.float32)
    first = np.zeros(free.shape, np.float32)
    first[free] = 2 + random_at(rng, free)
    action = np.concatenate(
        [
            _joining_moves(lattice, free[i : i + PRIM], weight[i : i + PRIM], first[i : i + PRIM])
            for i in range(0, n, PRIM)
        ]
        or [np.zeros(free.shape, np.int64)]
    )
    source = np.where(action < 0, -1, lattice.neighbors[np.arange(n_locations), reverse_action(action)])
    flip = (rng.random(source.shape, dtype=np.float32) < 0.5) & (source >= 0)
    source = np.where(flip, np.arange(n_locations), source)
    action = np.where(flip, reverse_action(action), action)

    # A wall location has no edge in the forest, so its bump takes its place in the arrays.
    walls = rooms.walls & rooms.observed
    room, wall = np.nonzero(walls)
    around = lattice.neighbors[wall]
    score = random_at(rng, np.repeat(walls, N_ACTIONS, axis=1)).reshape(around.shape)
    score *= (around >= 0) & free[room[:, None], around]
    toward = score.argmax(1)
    reachable = score.max(1, initial=0) > 0
    room, wall, toward = room[reachable], wall[reachable], toward[reachable]
    source[room, wall] = lattice.neighbors[wall, toward]
    action[room, wall] = reverse_action(toward)
    return _shuffle(rng, rooms, source, action)


def _joining_moves(lattice: HexLattice, free: np.ndarray, weight: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Grow minimum spanning forests by Prim's algorithm, in all rooms at once.

    Args:
        lattice: the lattice.
        free: (B, L) bool, the locations to join.
        weight: (B, E) float32 below 1, of each edge, a multiple of 2**-24.
        first: (B, L) float32 from 2 to 3, a multiple of 2**-22; the location with the least starts the next tree.

    Returns:
        (B, L) int, the action that joins each location to its tree, -1 for those that start one or are not free.
    """
    n, n_locations = free.shape
    bits = n_locations.bit_length()
    whole = np.int64 if bits > 6 else np.int32
    # The lightest edge from the tree to each location, as a whole number with the location as its last bits; what is
    # joined, not free or off the lattice is -1, as unsigned number the greatest and as signed number the least.
    key = np.full((n_locations + 1, n), -1, whole)
    order = 2**24 + (first - 2) * 2**22
    key[:-1] = np.where(free, (order.astype(whole) << bits) + np.arange(n_locations, dtype=whole), -1).T
    unsigned = key.view(np.uint64 if bits > 6 else np.uint32)
    joined_by = np.full(key.shape, -1, np.int8)
    heavy = np.ascontiguousarray((weight * 2**24).astype(whole).T) << bits
    room = np.arange(n)
    row_of = np.full(2**bits, n_locations)
    row_of[:n_locations] = np.arange(n_locations)
    around_of = np.full((N_ACTIONS, 2**bits), n_locations)
    around_of[:, :n_locations] = np.where(lattice.on_lattice, lattice.neighbors, n_locations).T
    edge_of = np.zeros((N_ACTIONS, 2**bits), np.int64)
    edge_of[:, :n_locations] = _edge_index(lattice).T
    actions = np.repeat(np.arange(N_ACTIONS, dtype=np.int8), n)
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
        flat_joined_by[place] = actions[lighter]
    return joined_by[:-1].T.astype(np.int64)


def _edge_index(lattice: HexLattice) -> np.ndarray:
    """(L, 6) int, index into lattice.edges of each on-lattice move (0 elsewhere)."""
    index = np.zeros(lattice.neighbors.shape, np.int64)
    source, action = np.nonzero(lattice.neighbors[:, :3] >= 0)
    number = np.arange(len(lattice.edges))
    index[source, action] = number
    index[lattice.neighbors[source, action], reverse_action(action)] = number
    return index


def add_transitions(
    rng: np.random.Generator, banks: BankBatch, extra: np.ndarray, off_lattice: bool = True
) -> BankBatch:
    """Make banks non-minimal: add observed moves that they do not hold yet.

    Args:
        rng: source of randomness.
        banks: B banks.
        extra: (B,) int, how many to add; fewer are added where a room has no more.
        off_lattice: whether moves off the lattice, which stay in place, may be added.
    """
    rooms = banks.rooms
    candidates = observed_moves(rooms) & ~banks.holds()
    if not off_lattice:
        candidates &= rooms.lattice.on_lattice
    candidates = candidates.reshape(len(rooms), -1)
    extra = np.minimum(extra, candidates.sum(1))
    key = np.where(candidates, rng.random(candidates.shape, dtype=np.float32), 2)
    chosen = key.argsort(1)[:, : extra.max(initial=0)]
    chosen = np.where(np.arange(chosen.shape[1]) < extra[:, None], chosen, -1)
    source = np.where(chosen >= 0, chosen // N_ACTIONS, -1)
    action = np.where(chosen >= 0, chosen % N_ACTIONS, -1)
    return _shuffle(rng, rooms, np.hstack([banks.source, source]), np.hstack([banks.action, action]))


def walk_banks(
    rng: np.random.Generator, rooms: RoomBatch, steps: np.ndarray, curiosity: float = 0.8, orderly: float = 0.0
) -> BankBatch:
    """Draw banks from walks, each transition kept once; what the walk did not touch becomes unobserved.

    Args:
        rng: source of randomness.
        rooms: B rooms; their own unobserved regions are ignored.
        steps: (B,) int, length of each walk.
        curiosity: probability of preferring a move that was not tried at this location yet.
        orderly: share of the walks that explore as a good explorer does: to the neighbour not visited yet that is
            most hemmed in by the rim and by visited ones. They zig-zag, so that neighbours may be long walks apart.
    """
    lattice = rooms.lattice
    n, n_locations = rooms.states.shape
    batch = np.arange(n)
    here = np.where(rooms.walls, 0, 1 + rng.random(rooms.walls.shape, dtype=np.float32)).argmax(1)
    targets = rooms.targets()
    tried = np.zeros((n, n_locations, N_ACTIONS), bool)
    observed = np.zeros((n, n_locations + 1), bool)
    observed[batch, here] = True
    visited = np.zeros((n, n_locations + 1), bool)  # the last column stands for all that is off the lattice
    in_order = rng.random((n, 1)) < orderly
    for step in range(steps.max(initial=0)):
        walking = step < steps
        score = rng.random((n, N_ACTIONS), dtype=np.float32)
        score += ~tried[batch, here] * (rng.random((n, 1)) < curiosity)
        # A user's explorer reads the action mask, so moves off the lattice are rare.
        score += (lattice.on_lattice[here] | (rng.random((n, 1)) < 0.1)) * np.float32(2)
        visited[batch, here] = True
        there = lattice.neighbors[here]
        hemmed_in = (visited[batch[:, None, None], lattice.neighbors[there]] | (lattice.neighbors[there] < 0)).sum(2)
        fresh = ~visited[batch[:, None], there] & ~tried[batch, here] & lattice.on_lattice[here]
        score += (in_order & fresh) * (4 + hemmed_in).astype(np.float32)
        action = score.argmax(1)
        tried[batch[walking], here[walking], action[walking]] = True
        observed[batch[walking], lattice.neighbors[here, action][walking]] = True
        here = np.where(walking, targets[batch, here, action], here)
    seen = RoomBatch(lattice, rooms.states, rooms.walls, observed[:, :-1])
    room, source, action = np.nonzero(tried)
    slot = np.arange(len(room)) - np.searchsorted(room, batch)[room]
    sources = np.full((n, max(1, slot.max(initial=0) + 1)), -1)
    actions = sources.copy()
    sources[room, slot], actions[room, slot] = source, action
    return _shuffle(rng, seen, sources, actions)


def observed_moves(rooms: RoomBatch) -> np.ndarray:
    """(B, L, 6) bool, moves from an observed free location to an observed location or off the lattice."""
    free = rooms.observed & ~rooms.walls
    around = rooms.lattice.neighbors
    return free[:, :, None] & (rooms.observed[:, around] | (around < 0))
