"""The map in the model's latent space, as distances to plan with (paper: section "Planning by Guided Imagination",
algorithm "Compute Geodesic Distance Table h_latent")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.planning import every_move, require_numbers
from eswm_gym.world_model import ESWM


@dataclass(frozen=True)
class LatentMap:
    """Where K states lie in the latent space.

    Attributes:
        states: (K,) int.
        activations: (K, dim) float, what the last block computes when it predicts where the moves from each state
            end, averaged over the moves.
    """

    states: np.ndarray
    activations: np.ndarray

    def geodesic(self, radius: float) -> np.ndarray:
        """(K, K) float, h_latent: the fewest hops between neighbours; inf between parts that do not touch.

        The paper adds up the cosine distances on the way; a hop is one step, the unit of a plan's cost.

        Args:
            radius: states at most this far apart are neighbours. The unit is the median over states of the distance
                to the nearest other state, which stands for one step in any room.
        """
        distance = cdist(self.activations, self.activations, "cosine")
        return shortest_path(distance <= radius * _step(distance), directed=False, unweighted=True)

    def euclidean(self) -> np.ndarray:
        """(K, K) float, straight distances in the latent space, in the same unit; geodesics improve on these."""
        distance = cdist(self.activations, self.activations)
        return distance / _step(distance)

    def distances_to(self, goal: int, table: np.ndarray) -> dict[int, float]:
        """The column of a (K, K) table that belongs to a goal, by state; empty if the goal is not on the map."""
        column = np.flatnonzero(self.states == goal)
        return dict(zip(self.states.tolist(), table[:, column[0]].tolist(), strict=True)) if len(column) else {}


@torch.inference_mode()
def latent_maps(model: ESWM, banks: Sequence[MemoryBank]) -> list[LatentMap]:
    """Map the states of each bank in the latent space.

    Raises:
        ValueError: if a state is outside the model's vocabulary, or the model's activations are not numbers.
    """
    maps: list[LatentMap] = []
    for known, memories, query in every_move(model, banks):
        model.codec.check(query[..., 0])
        last = model.activations(model.encode(memories), query)[-1]
        x = last.unflatten(1, (-1, model.config.n_actions)).mean(2).float()  # (b, K, A, dim) -> (b, K, dim)
        require_numbers(model, x)
        maps += [LatentMap(np.array(states), x[i, : len(states)].cpu().numpy()) for i, states in enumerate(known)]
    return maps


def _step(distance: np.ndarray) -> float:
    """Median over states of the distance to the nearest other one."""
    others = distance + np.where(np.eye(len(distance), dtype=bool), np.inf, 0)
    return float(np.median(others.min(1))) if len(distance) > 1 else 1.0
