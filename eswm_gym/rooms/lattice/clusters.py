"""Clusters of memories that no memory connects, and what tells how they lie to each other (paper: "Disjoint Memory
Cluster" in "Additional Analyses")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from eswm_gym.rooms.lattice.banks import BankBatch, _shuffle, spanning_banks
from eswm_gym.rooms.lattice.generation import RoomBatch, RoomConfig, random_regions, random_walls
from eswm_gym.rooms.lattice.geometry import HexLattice

PRIOR = 2000  # rooms by which training judges what a bank tells
SMALLEST = 8  # locations that two clusters have together
DOUBTED, SURE = 0.2, 0.8  # probabilities of the true placement between which clusters are left out
FEW = 2 / 3  # share of the locations: of fewer, only obstacles can tell how clusters lie
DRAWS = 24  # pairs of clusters for each that is kept
JUDGED = 1.5  # of these, how many are judged with obstacles in both of few locations; of the others half as many


def cluster_banks(rng: np.random.Generator, rooms: RoomBatch, cluster: np.ndarray) -> BankBatch:
    """Minimal spanning banks of each cluster by itself, put together.

    Args:
        rng: source of randomness.
        rooms: B rooms.
        cluster: (B, L) int, -1 for what no bank observes.
    """
    parts = [spanning_banks(rng, replace(rooms, observed=cluster == i)) for i in range(cluster.max() + 1)]
    source, action = (np.concatenate([getattr(p, name) for p in parts], 1) for name in ("source", "action"))
    return _shuffle(rng, replace(rooms, observed=cluster >= 0), source, action)


def draw_clusters(rng: np.random.Generator, n: int, config: RoomConfig) -> tuple[RoomBatch, np.ndarray, np.ndarray]:
    """Rooms with two clusters of locations side by side.

    A region of random size and shape, half of them around an obstacle, is cut in two: each location belongs to the
    nearer one of two, obstacles if there are any. A third of the banks, where enough are found, tell how the clusters
    lie by obstacles alone, a third by the shape of the room too, and the rest hardly.

    Args:
        rng: source of randomness.
        n: how many rooms.
        config: their family, of radius 2 at least; everything is observed and has a state of its own.

    Returns:
        The rooms, (n, L) int clusters: 0, 1, -1 for what neither holds, and (n,) bool, whether obstacles and the shape
        of the room leave hardly any other placement than the true one.
    """
    lattice, tried, prior = config.lattice, DRAWS * max(n, 8), _prior(config)
    most = int(JUDGED * max(n, 8))
    drawn: list[tuple[np.ndarray, ...]] = []
    while sum(len(known) for *_, known in drawn) < n:
        rooms = config.generate(rng, tried)
        sizes = rng.integers(SMALLEST, lattice.n_locations + 1, size=tried)
        begin = (rng.random(rooms.walls.shape) + rooms.walls * (rng.random((tried, 1)) < 0.5)).argmax(1)
        region = random_regions(rng, sizes, lattice, ragged=config.radius, around=begin)
        middles = np.where(region, rng.random(region.shape) + rooms.walls, -1).argsort(1)[:, -2:]
        nearer = lattice.distances[middles[:, 0]] < lattice.distances[middles[:, 1]]
        cluster = _shown(rooms, np.where(region, nearer, -1))
        good = _two_in_touch(rooms, cluster)
        cued = np.logical_and(*(((cluster == i) & rooms.walls).any(1) for i in (0, 1)))
        cued &= sizes < FEW * lattice.n_locations
        some, others = np.flatnonzero(good & cued)[:most], np.flatnonzero(good & ~cued)[: most // 2]
        chosen = rng.permutation(np.concatenate([some, others]))
        belief = np.array([placement_belief(lattice, cluster[i], rooms.walls[i], prior) for i in chosen])
        chosen, belief = (x[(belief < DOUBTED) | (belief > SURE)] for x in (chosen, belief))
        known = belief > SURE
        kind = np.stack([known & cued[chosen], known & ~cued[chosen], ~known])
        order = np.argsort((kind * kind.cumsum(1)).max(0), kind="stable")  # turn by turn
        kept = chosen[order]
        drawn.append((rooms.states[kept], rooms.walls[kept], cluster[kept], known[order]))
    states, walls, cluster, known = (np.concatenate(part)[:n] for part in zip(*drawn, strict=True))
    return RoomBatch(lattice, states, walls, np.ones_like(walls)), cluster, known


def gap_moves(rooms: RoomBatch, cluster: np.ndarray) -> np.ndarray:
    """(B, L, A) bool, the moves from a free location of one cluster (B, L) to a free location of another."""
    ahead = rooms.lattice.next_location
    free = (cluster >= 0) & ~rooms.walls
    across: np.ndarray = cluster[:, ahead] != cluster[..., None]
    return free[..., None] & free[:, ahead] & across


def _shown(rooms: RoomBatch, cluster: np.ndarray) -> np.ndarray:
    """The clusters (B, L) without obstacles that none of their free locations lies beside: no memory shows those."""
    around = rooms.lattice.neighbors
    free = (cluster >= 0) & ~rooms.walls
    beside = (around >= 0) & free[:, around] & (cluster[:, around] == cluster[..., None])
    return np.where(rooms.walls & ~beside.any(2), -1, cluster)


def _two_in_touch(rooms: RoomBatch, cluster: np.ndarray) -> np.ndarray:
    """(B,) bool, whether a move leads from one cluster to the other and each hangs together."""
    good = np.asarray(gap_moves(rooms, cluster).any((1, 2)))
    for i in (0, 1):
        inside = (cluster == i) & ~rooms.walls
        reached = replace(rooms, walls=~inside).distances_from(inside.argmax(1)) >= 0
        good &= (reached == inside).all(1)
    return good


@lru_cache(maxsize=8)
def _prior(config: RoomConfig) -> np.ndarray:
    return random_walls(np.random.default_rng(0), PRIOR, config)


def placement_belief(lattice: HexLattice, cluster: np.ndarray, walls: np.ndarray, prior: np.ndarray) -> float:
    """How well one can know how two clusters lie, given the lattice, the walls that there may be and all moves.

    Counts all ways to lay both clusters into the rooms of the prior so that free locations lie on free ones, obstacles
    on walls, and no location is taken twice.

    Args:
        lattice: of the room.
        cluster: (L,) int, 0 or 1, -1 for what neither observes.
        walls: (L,) bool; only those that a cluster observes are known.
        prior: (N, L) bool, walls of rooms as `random_walls` draws them.

    Returns:
        The probability that the clusters lie to each other as they do; nan if no room of the prior holds them.
    """
    first, second = (_placements(lattice, cluster == i, walls, prior) for i in (0, 1))
    apart = first.covered @ second.covered.T == 0
    ways = (first.fits @ second.fits.T) * apart
    as_it_is = first.shift[:, None] == second.shift
    return float((ways * as_it_is).sum() / ways.sum()) if ways.any() else float("nan")


@dataclass(frozen=True, eq=False)
class _Placements:
    """P ways to shift a cluster that keep it on the lattice.

    Attributes:
        shift: (P,) int, which of all shifts.
        covered: (P, L) float32, 1 for the locations that it takes.
        fits: (P, N) float32, 1 where it agrees with the walls of a room.
    """

    shift: np.ndarray
    covered: np.ndarray
    fits: np.ndarray


def _placements(lattice: HexLattice, inside: np.ndarray, walls: np.ndarray, prior: np.ndarray) -> _Placements:
    places = _shifted(lattice)[:, inside]
    shift = np.flatnonzero((places >= 0).all(1))
    places = places[shift]
    covered = np.zeros((len(places), lattice.n_locations), np.float32)
    np.put_along_axis(covered, places, 1, 1)
    obstacles = np.zeros_like(covered)
    np.put_along_axis(obstacles, places[:, walls[inside]], 1, 1)
    wrong = (covered - obstacles) @ prior.T.astype(np.float32) + obstacles @ ~prior.T
    return _Placements(shift, covered, (wrong == 0).astype(np.float32))


@lru_cache(maxsize=8)
def _shifted(lattice: HexLattice) -> np.ndarray:
    """(S, L) int, where each shift that keeps some location on the lattice takes each one; -1 off the lattice."""
    index = {tuple(cell): i for i, cell in enumerate(lattice.axial.tolist())}
    shifts = np.unique((lattice.axial[:, None] - lattice.axial).reshape(-1, 2), axis=0)
    moved = (lattice.axial + shifts[:, None]).tolist()
    return np.array([[index.get(tuple(cell), -1) for cell in cells] for cells in moved])
