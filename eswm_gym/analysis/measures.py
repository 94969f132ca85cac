"""How far a latent space is a map: sRSA, the distance probe, latent geodesics, ISOMAP and its fit to the room
(paper: "ISOMAP", "Euclidean Distance Estimation From Activation", "sRSA" in "Extended Methods")."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist
from scipy.stats import rankdata
from torch import nn

from eswm_gym.analysis.activations import PlaceQueries
from eswm_gym.rooms import BankBatch, RoomConfig, generate_rooms, spanning_banks
from eswm_gym.world_model import MASKED


def srsa(vectors: np.ndarray, positions: np.ndarray, metric: str = "cosine") -> float:
    """Spatial representational similarity: Spearman's correlation of latent and physical distances.

    Args:
        vectors: (L, dim) float, mean activation of each place; places that are nan are left out.
        positions: (L, 2) float, where the places are; physical distances are Euclidean.
        metric: of the latent distances, as scipy names it.

    Returns:
        1 for a perfect map; nan where all distances are the same.
    """
    keep = np.isfinite(vectors).all(1)
    return spearman(pdist(vectors[keep], metric), pdist(positions[keep]))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's rank correlation of two (N,) arrays; nan where one is constant."""
    ranks = [rankdata(np.round(x, 9)) for x in (a, b)]  # distances that should be ties are equal up to rounding
    if len(a) < 2 or min(np.ptp(x) for x in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def r_squared(a: np.ndarray, b: np.ndarray) -> float:
    """R2 of the linear fit of one (N,) array by the other."""
    return float(np.corrcoef(a, b)[0, 1] ** 2)


def latent_geodesics(vectors: np.ndarray, radius: float, weight: Literal["angle", "cosine"] = "angle") -> np.ndarray:
    """Shortest ways through the latent space from place to place (paper: "Compute Geodesic Distance Table").

    Args:
        vectors: (L, dim) float, mean activation of each place.
        radius: cosine distance up to which two places are neighbours.
        weight: what a way from neighbour to neighbour costs: their cosine distance, as in the paper, or the angle
            between them, in radians. Small angles on the way add up, cosine distances do not.

    Returns:
        (L, L) float; inf between parts that do not touch, nan for places that are nan.
    """
    keep = np.isfinite(vectors).all(1)
    distance = cdist(vectors[keep], vectors[keep], "cosine")
    cost = distance if weight == "cosine" else np.arccos(np.clip(1 - distance, -1, 1))
    near = np.where(distance <= radius, np.maximum(cost, 1e-9), 0)  # an edge that costs 0 would be none
    found = np.full((len(vectors), len(vectors)), np.nan)
    found[np.ix_(keep, keep)] = shortest_path(near, directed=False)
    return found


@dataclass(frozen=True, eq=False)
class Triplets:
    """A triplet of places A, B and C in each of N rooms; is B farther from A than C is?

    Attributes:
        banks: one of each room.
        places: (N, 3) int.
        farther: (N,) bool, whether B is the farther one, in Euclidean distance; they are never equally far.
    """

    banks: BankBatch
    places: np.ndarray
    farther: np.ndarray

    def queries_to_reference(self) -> PlaceQueries:
        """Which action leads from A, B and C to A: action predictions that start from the three places.

        So each vector knows of A. A linear layer adds up a score for each of its three vectors, and by itself it could
        not compare the places of B and C with that of A.
        """
        states = np.take_along_axis(self.banks.rooms.states, self.places, 1)
        return self._ask(states, np.repeat(states[:, :1], 3, 1))

    def queries_of_own_moves(self, rng: np.random.Generator) -> PlaceQueries:
        """Which action leads from A, B and C to where a random move from there ends: nothing links the three."""
        rooms = self.banks.rooms
        room = np.arange(len(self.places))[:, None]
        allowed = rooms.lattice.on_lattice[self.places]
        action = np.where(allowed, rng.random(allowed.shape), -1).argmax(2)
        end = rooms.targets()[room, self.places, action]
        return self._ask(rooms.states[room, self.places], rooms.states[room, end])

    def _ask(self, source: np.ndarray, end: np.ndarray) -> PlaceQueries:
        query = np.stack([source, np.full_like(source, MASKED), end], 2).astype(np.int64)
        memories = self.banks.transitions().astype(np.int64)
        return PlaceQueries(memories, query, self.places, self.banks.rooms.lattice.n_locations)


def draw_triplets(rng: np.random.Generator, n: int, config: RoomConfig) -> Triplets:
    """One triplet of free places in each of n new rooms, whose two distances differ."""
    rooms = generate_rooms(rng, n, config)
    may = rooms.observed & ~rooms.walls
    places = np.zeros((n, 3), np.int64)
    position = rooms.lattice.xy
    left = np.arange(n)
    while len(left):
        places[left] = np.where(may[left], rng.random(may[left].shape), -1).argsort(1)[:, -3:]
        left = left[np.isclose(*_distances(position, places[left]).T)]
    b, c = _distances(position, places).T
    return Triplets(spanning_banks(rng, rooms), places, b > c)


def _distances(position: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(N, 2) Euclidean distances of B and C from A."""
    return np.linalg.norm(position[places[:, 1:]] - position[places[:, :1]], axis=2)


L2 = 1e-3  # penalty on the weights of the probe


class DistanceProbe:
    """One linear layer that says whether B is farther from A than C is.

    Args:
        x: (N, 3 dim) float, three concatenated activations, which are standardised here.
        farther: (N,) bool.
        seed: of the layer's first weights.
    """

    def __init__(self, x: np.ndarray, farther: np.ndarray, seed: int = 0) -> None:
        inputs = torch.from_numpy(np.ascontiguousarray(x, np.float32))
        target = torch.from_numpy(farther.astype(np.float32))
        self.mean, self.scale = inputs.mean(0), inputs.std(0) + 1e-6
        inputs = self._standardise(inputs)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.layer = nn.Linear(x.shape[1], 1)
        optimizer = torch.optim.LBFGS(self.layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            wrong = nn.functional.binary_cross_entropy_with_logits(self.layer(inputs)[:, 0], target)
            value = wrong + L2 * self.layer.weight.square().sum()
            value.backward()
            return value

        optimizer.step(loss)  # type: ignore[arg-type]

    def _standardise(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.scale

    @torch.inference_mode()
    def accuracy(self, x: np.ndarray, farther: np.ndarray) -> float:
        """Share of right answers."""
        inputs = self._standardise(torch.from_numpy(np.ascontiguousarray(x, np.float32)))
        return float(((self.layer(inputs)[:, 0] > 0).numpy() == farther).mean())


def isomap(vectors: np.ndarray, dimensions: int = 2, neighbors: int = 30, metric: str = "cosine") -> np.ndarray:
    """Embed N activations by ISOMAP (paper: cosine distance, 20 to 60 neighbours, about 1,000 vectors).

    Args:
        vectors: (N, dim) float.
        dimensions: of the embedding.
        neighbors: of each vector, fewer if there are not so many.
        metric: of the distances.

    Returns:
        (N, dimensions) float. Parts that do not touch are joined by their nearest vectors, as scikit-learn does.

    Raises:
        ImportError: without scikit-learn, saying how to get it.
    """
    model = _sklearn_isomap()(
        n_neighbors=min(neighbors, len(vectors) - 1), n_components=dimensions, metric=metric, eigen_solver="dense"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that do not touch
        return model.fit_transform(vectors)


def _sklearn_isomap() -> Any:
    try:
        from sklearn.manifold import Isomap
    except ImportError as error:
        raise ImportError("ISOMAP needs scikit-learn: pip install 'eswm-gym[plot]'") from error
    return Isomap


@dataclass(frozen=True)
class MapFit:
    """How an embedding fits the room, place by place.

    Attributes:
        disparity: Procrustes' of the mean embedding of each place: the share of variance that no turn, scale, shift
            or mirror explains; 0 for a perfect map, near 1 for none.
        correlation: Spearman's, of distances in the embedding and in the room.
    """

    disparity: float
    correlation: float


def map_fit(embedding: np.ndarray, place: np.ndarray, positions: np.ndarray) -> MapFit:
    """Compare an embedding with the room.

    Args:
        embedding: (N, 2) float.
        place: (N,) int, the place of each.
        positions: (L, 2) float.
    """
    places = np.unique(place)
    middle = np.stack([embedding[place == i].mean(0) for i in places])
    if np.ptp(middle, axis=0).max() < 1e-12:
        return MapFit(1.0, float("nan"))
    disparity = procrustes(positions[places], middle)[2]
    return MapFit(float(disparity), spearman(pdist(middle), pdist(positions[places])))
