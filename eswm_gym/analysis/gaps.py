"""What a model believes of the gap between clusters of memories that no memory connects (paper: "Disjoint Memory
Cluster" in "Additional Analyses")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from eswm_gym.analysis.activations import CHUNK
from eswm_gym.rooms import BankBatch, HexLattice
from eswm_gym.world_model import ESWM, MASKED


@dataclass(frozen=True)
class GapBelief:
    """Where moves across the gap end, as the model predicts: one value for each of B rooms, mean over its moves.

    Attributes:
        neighbor: (B,) float, probability of the true neighbour in the other cluster.
        other_cluster: (B,) float, of any free state of the other cluster.
        stays: (B,) float, of the state itself: the move is expected to be blocked.
        unknown: (B,) float, of "I don't know".
    """

    neighbor: np.ndarray
    other_cluster: np.ndarray
    stays: np.ndarray
    unknown: np.ndarray


@torch.inference_mode()
def gap_belief(model: ESWM, banks: BankBatch, cluster: np.ndarray, chunk: int = CHUNK) -> GapBelief:
    """Predict the end of every move from a free location of one cluster to a free location of another.

    Args:
        model: one that predicts end states.
        banks: B banks, as `cluster_banks` makes them.
        cluster: (B, L) int, -1 for what no bank observes.
        chunk: banks in one pass.

    Raises:
        ValueError: if a room has no such move.
    """
    rooms = banks.rooms
    ahead = rooms.lattice.next_location
    free = (cluster >= 0) & ~rooms.walls
    crosses = (free[..., None] & free[:, ahead]) & (cluster[:, ahead] != cluster[..., None])
    if not crosses.any((1, 2)).all():
        raise ValueError("a room has no two clusters side by side")
    memories = torch.from_numpy(banks.transitions().astype(np.int64)).to(model.device)
    beliefs = []
    for first in range(0, len(memories), chunk):
        part = slice(first, first + chunk)
        encoded = model.encode(memories[part])
        states = rooms.states[part]
        query = np.full((*ahead.shape, 3), MASKED)[None].repeat(len(states), 0)
        query[..., 0], query[..., 1] = states[..., None], np.arange(ahead.shape[1])
        p = model.predict(encoded, torch.from_numpy(query).flatten(1, 2).to(model.device)).end.float().softmax(-1)
        p = p.unflatten(1, ahead.shape).cpu().numpy()  # (b, L, 6, n_states + 1)
        for i, room in enumerate(range(first, first + len(states))):
            start, action = np.nonzero(crosses[room])
            from_there, move = p[i, start, action], np.arange(len(start))
            other = free[room] & (cluster[room] != cluster[room, start][:, None])
            beliefs.append(
                (
                    from_there[move, states[i, ahead[start, action]]].mean(),
                    (from_there[:, states[i]] * other).sum(1).mean(),
                    from_there[move, states[i, start]].mean(),
                    from_there[:, -1].mean(),
                )
            )
    return GapBelief(*np.array(beliefs).T)


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
    as_it_is = (first.shift[:, None] == second.shift).all(2)
    return float((ways * as_it_is).sum() / ways.sum()) if ways.any() else float("nan")


@dataclass(frozen=True, eq=False)
class _Placements:
    """P ways to shift a cluster that keep it on the lattice.

    Attributes:
        shift: (P, 2) int, in axial coordinates.
        covered: (P, L) float, 1 for the locations that it takes.
        fits: (P, N) float, 1 where it agrees with the walls of a room.
    """

    shift: np.ndarray
    covered: np.ndarray
    fits: np.ndarray


def _placements(lattice: HexLattice, inside: np.ndarray, walls: np.ndarray, prior: np.ndarray) -> _Placements:
    index = {tuple(cell): i for i, cell in enumerate(lattice.axial.tolist())}
    shifts = np.unique((lattice.axial[:, None] - lattice.axial).reshape(-1, 2), axis=0)
    moved = [[index.get(tuple(cell), -1) for cell in (lattice.axial[inside] + shift).tolist()] for shift in shifts]
    kept = (np.array(moved) >= 0).all(1)
    places = np.array(moved)[kept]
    covered = np.zeros((len(places), lattice.n_locations))
    np.put_along_axis(covered, places, 1, 1)
    agrees = (prior[:, places] == walls[inside]).all(2)
    return _Placements(shifts[kept], covered, agrees.T.astype(float))
