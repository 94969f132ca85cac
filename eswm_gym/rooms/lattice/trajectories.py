"""Trajectories of batches of rooms: those that span them, and walks that lead to where a query starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eswm_gym.rooms.lattice.banks import BankBatch, observed_moves
from eswm_gym.rooms.lattice.generation import RoomBatch


def free_distances(rooms: RoomBatch) -> np.ndarray:
    """(B, L, L) int16, steps between observed free locations along such locations; L where there is no way. A location
    where an episode ends is on no way."""
    n, n_locations = rooms.states.shape
    free = rooms.observed & rooms.passable
    around = rooms.lattice.neighbors
    distances = np.full((n, n_locations + 1, n_locations), n_locations, np.int16)  # last row: off the lattice
    room, here = np.nonzero(free)
    distances[room, here, here] = 0
    for _ in range(n_locations):  # relax every move at once until nothing gets nearer
        nearer = np.minimum(distances[:, :-1], distances[:, around].min(2) + 1)
        nearer[~free] = n_locations
        if (nearer == distances[:, :-1]).all():
            break
        distances[:, :-1] = nearer
    return distances[:, :-1]


def trajectory_banks(rng: np.random.Generator, rooms: RoomBatch, longest: int) -> BankBatch:
    """Walk through every observed free location and bump into every observed wall location beside them.

    Paper: "TEM-T Implementation".

    The walk starts anywhere in the largest cluster of observed free locations and always goes to the nearest location
    that it has not visited; of several, to the one with the fewest unvisited neighbours. Its length is close to that
    of a travelling salesman's tour. It bumps into a wall location when it first stands beside it. Locations that it
    does not touch become unobserved.

    Args:
        rng: source of randomness.
        rooms: B rooms.
        longest: length at which walks are cut.

    Returns:
        B banks of consecutive transitions in order, some of them held twice.
    """
    lattice = rooms.lattice
    n, n_locations = rooms.states.shape
    batch = np.arange(n)
    distances = free_distances(rooms)
    reach = (distances < n_locations).sum(2)
    here = (reach + rng.random(reach.shape, dtype=np.float32)).argmax(1)
    walking = reach[batch, here] > 0
    unvisited = distances[batch, here] < n_locations
    unvisited[batch, here] = False
    unbumped = np.zeros((n, n_locations + 1), bool)  # last column: off the lattice
    unbumped[:, :-1] = rooms.walls & rooms.observed
    observed = np.zeros((n, n_locations), bool)
    observed[batch[walking], here[walking]] = True
    source, action = np.full((n, longest), -1), np.full((n, longest), -1)
    for step in range(longest):
        bumps = unbumped[batch[:, None], lattice.neighbors[here]]
        bumping = bumps.any(1)
        walking &= bumping | unvisited.any(1)
        if not walking.any():
            break
        # Nearest first, then the fewest unvisited locations around it, then chance.
        open_around = np.zeros((n, n_locations + 1), np.int8)
        open_around[:, :-1] = unvisited
        score = 8.0 * distances[batch, here] + open_around[:, lattice.neighbors].sum(2)
        score += rng.random(score.shape, dtype=np.float32)
        target = np.where(unvisited, score, np.inf).argmin(1)
        around = lattice.neighbors[here]
        on_the_way = (around >= 0) & (
            distances[batch[:, None], around, target[:, None]] < distances[batch, here, target][:, None]
        )
        chance = rng.random((n, lattice.n_actions), dtype=np.float32)
        move = np.where(bumping, (chance * bumps).argmax(1), (chance * on_the_way).argmax(1))
        ahead = lattice.neighbors[here, move]
        walkers = np.flatnonzero(walking)
        source[walkers, step], action[walkers, step] = here[walkers], move[walkers]
        observed[walkers, ahead[walkers]] = True
        unbumped[walkers, ahead[walkers]] = False
        unvisited[walkers, ahead[walkers]] = False
        here = np.where(walking & ~bumping, ahead, here)
    steps = max(1, (source >= 0).sum(1).max(initial=0))
    seen = replace(rooms, observed=observed)
    return BankBatch(seen, source[:, :steps], action[:, :steps])


def add_walks(
    rng: np.random.Generator, banks: BankBatch, steps: int, rows: int, end: np.ndarray | None = None
) -> BankBatch:
    """Put a random walk, in order, into the last rows of each bank: the way to where a query starts.

    A walk starts anywhere in the observed region, never leaves it and goes nowhere an episode ends. It takes moves on
    the lattice, bumps into walls among them. Where there are no such moves, its rows are padding. Paper: figure
    "duplicated states".

    Args:
        rng: source of randomness.
        banks: B banks.
        steps: length of each walk.
        rows: length of the banks with the walks; between a bank and its walk there is padding.
        end: (B,) int, where each walk ends; anywhere if that is -1, there are no moves there, or it is None.
    """
    rooms = banks.rooms
    n, length = banks.source.shape
    source, action = np.full((n, rows), -1), np.full((n, rows), -1)
    source[:, :length], action[:, :length] = banks.source, banks.action
    batch = np.arange(n)
    moves = observed_moves(rooms) & rooms.lattice.on_lattice
    targets = rooms.targets()
    moves &= rooms.passable[batch[:, None, None], targets]
    here = (moves.any(2) * (1 - rng.random(rooms.states.shape))).argmax(1)
    if end is not None:
        end = np.where(moves[batch, end].any(1), end, -1)
        here = np.where(end < 0, here, end)
    for row in range(rows - steps, rows):
        walks = moves[batch, here].any(1)
        move = (moves[batch, here] * (1 - rng.random((n, rooms.lattice.n_actions)))).argmax(1)
        source[walks, row], action[walks, row] = here[walks], move[walks]
        here = np.where(walks, targets[batch, here, move], here)
    if end is not None:  # these walks began where they shall end: they are walked backwards
        back = (end >= 0) & (source[:, -1] >= 0)
        start, move = source[back, -steps:], action[back, -steps:]
        there = targets[np.flatnonzero(back)[:, None], start, move]
        source[back, -steps:] = there[:, ::-1]
        action[back, -steps:] = np.where(there == start, move, rooms.lattice.reverse[move])[:, ::-1]
    return BankBatch(rooms, source, action)
