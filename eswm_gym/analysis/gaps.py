"""What a model believes of the gap between clusters of memories that no memory connects (paper: "Disjoint Memory
Cluster" in "Additional Analyses")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from eswm_gym.analysis.activations import CHUNK
from eswm_gym.rooms import BankBatch
from eswm_gym.rooms.lattice.clusters import gap_moves
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
    crosses = gap_moves(rooms, cluster)
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
