"""What a model's tokens are as it completes queries about places (paper: "ISOMAP" in "Extended Methods").

An activation belongs to the place of the state that is given: of s_s where end or action are predicted, of s_e where
the source is. Places are locations of a hexagonal room, or poses in MiniGrid's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from eswm_gym.checks import require_choices
from eswm_gym.rooms.transitions import SOURCE, Banks, mask
from eswm_gym.world_model import ESWM, ModelConfig
from eswm_gym.world_model.pretrained import build_model

Task = Literal["source", "action", "end"]
TASKS: tuple[Task, ...] = ("source", "action", "end")
CHUNK = 8  # banks in one pass; more leave the cache of a CPU and are slower


@dataclass(frozen=True, eq=False)
class PlaceQueries:
    """Queries about B memory banks, and the place that each activation belongs to.

    Build them with `queries_of`, or by hand for worlds of your own.

    Attributes:
        memories: (B, N, C) int, the banks as the model reads them.
        query: (B, Q, C) int, with one component masked.
        place: (B, Q) int, -1 where a query only fills up its row.
        n_places: places of a room, L.
    """

    memories: np.ndarray
    query: np.ndarray
    place: np.ndarray
    n_places: int

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(frozen=True, eq=False)
class Activations:
    """N activations.

    Attributes:
        vectors: (depth, N, dim) float32, one layer after the other.
        place: (N,) int, where each belongs.
        bank: (N,) int, which bank each was asked about.
    """

    vectors: np.ndarray
    place: np.ndarray
    bank: np.ndarray

    def means(self, n_places: int) -> np.ndarray:
        """(depth, n_places, dim) float32, mean vector of each place, nan where there is none."""
        count = np.bincount(self.place, minlength=n_places).astype(np.float32)
        total = np.zeros((len(self.vectors), n_places, self.vectors.shape[2]), np.float32)
        for layer, vectors in zip(total, self.vectors, strict=True):
            np.add.at(layer, self.place, vectors)
        return total / np.where(count > 0, count, np.nan)[:, None]


def queries_of(banks: Banks, task: Task) -> PlaceQueries:
    """Ask for one component of all observed transitions of each room that stay on its lattice.

    In MiniGrid these are all moves from poses on the floor; the banks should show the whole room.

    Args:
        banks: B banks.
        task: the component to mask.

    Raises:
        ValueError: if there is no such component.
    """
    require_choices(task=(task, TASKS))
    component = TASKS.index(task)
    moves = banks.moves()
    query = mask(moves.transitions, np.full(moves.start.shape, component))
    place = np.where(moves.start < 0, -1, moves.end if component == SOURCE else moves.start)
    return PlaceQueries(banks.transitions().astype(np.int64), query, place, moves.n_places)


def activations(model: ESWM, queries: PlaceQueries, chunk: int = CHUNK) -> Activations:
    """Collect the activations of every query in every layer.

    Args:
        model: on any device.
        queries: about B banks.
        chunk: banks in one pass.
    """
    vectors, place, bank = [], [], []
    for first, x in _passes(model, queries, chunk):
        here = queries.place[first : first + x.shape[1]]
        keep = here >= 0
        vectors.append(x.cpu().numpy()[:, keep])
        place.append(here[keep])
        bank.append(np.nonzero(keep)[0] + first)
    return Activations(np.concatenate(vectors, 1), np.concatenate(place), np.concatenate(bank))


def place_means(
    model: ESWM, queries: PlaceQueries, layers: Sequence[int] | None = None, chunk: int = CHUNK
) -> np.ndarray:
    """Mean activation of each place, bank by bank: of many rooms, all activations would not fit into memory.

    Args:
        model, queries, chunk: as for `activations`.
        layers: those to keep, counted from 0; None: all.

    Returns:
        (layers, B, L, dim) float32, nan where a place was not asked about.
    """
    found = []
    for first, x in _passes(model, queries, chunk):
        if layers is not None:
            x = x[list(layers)]
        here = torch.from_numpy(queries.place[first : first + x.shape[1]]).to(x.device)
        belongs = nn.functional.one_hot(here + 1, queries.n_places + 1)[..., 1:].mT.to(x.dtype)
        count = belongs.sum(2, keepdim=True)
        found.append((belongs @ x / torch.where(count > 0, count, torch.nan)).cpu().numpy())
    return np.concatenate(found, 1)


def untrained(config: ModelConfig, seed: int = 0) -> ESWM:
    """A random network of the shape of a trained one: the control of the paper.

    Training starts with residual branches of zero, so that an untrained model would only pass the query on. Therefore
    weights that start from zero are drawn as torch draws those of a linear layer.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build_model(config)
        for layer in model.modules():
            if isinstance(layer, nn.Linear) and not layer.weight.any():
                layer.reset_parameters()
    return model.eval().requires_grad_(False)


@torch.inference_mode()
def _passes(model: ESWM, queries: PlaceQueries, chunk: int) -> Iterator[tuple[int, torch.Tensor]]:
    """The first bank of each pass and its activations (depth, b, Q, dim)."""
    for first in range(0, len(queries), chunk):
        part = slice(first, first + chunk)
        encoded = model.encode(torch.from_numpy(queries.memories[part]).to(model.device))
        yield first, model.activations(encoded, torch.from_numpy(queries.query[part]).to(model.device)).float()
