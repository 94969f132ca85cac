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
from eswm_gym.rooms import BankBatch, observed_moves
from eswm_gym.rooms.grid import N_CELLS, GridBanks, rows_of
from eswm_gym.world_model import ACTION, END, ESWM, MASKED, SOURCE, ModelConfig
from eswm_gym.world_model.pretrained import build_model

Task = Literal["source", "action", "end"]
TASKS: tuple[Task, ...] = ("source", "action", "end")
COMPONENT = {"source": SOURCE, "action": ACTION, "end": END}
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


def queries_of(banks: BankBatch | GridBanks, task: Task) -> PlaceQueries:
    """Ask for one component of all observed transitions of each room that stay on its lattice.

    In MiniGrid these are all moves from poses on the floor, with banks that show the whole room.

    Args:
        banks: B banks.
        task: the component to mask.

    Raises:
        ValueError: if there is no such component.
    """
    require_choices(task=(task, TASKS))
    if isinstance(banks, GridBanks):
        targets = banks.rooms.targets
        moves = np.repeat(banks.rooms.free[..., None], targets.shape[2], 2)
    else:
        moves, targets = observed_moves(banks.rooms) & banks.rooms.lattice.on_lattice, banks.rooms.targets()
    start, action = _packed(moves)
    room = np.arange(len(targets))[:, None]
    end = targets[room, start, action]
    if isinstance(banks, GridBanks):
        query = rows_of(banks.rooms, np.maximum(start, 0), action)
        parts = (slice(0, N_CELLS), slice(N_CELLS, N_CELLS + 1), slice(N_CELLS + 1, None))
    else:
        states = banks.rooms.states
        query = np.stack([states[room, start], action, states[room, end]], 2).astype(np.int64)
        parts = (slice(0, 1), slice(1, 2), slice(2, 3))
    query[..., parts[COMPONENT[task]]] = MASKED
    place = np.where(start < 0, -1, end if task == "source" else start)
    return PlaceQueries(banks.transitions().astype(np.int64), query, place, moves.shape[1])


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
    """Mean activation of each place, bank by bank: all that many rooms leave in memory.

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

    Training here starts from residual branches of zero, of which nothing would remain but the query itself; so weights
    that start from zero are drawn as torch draws those of a linear layer.
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
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    for first in range(0, len(queries), chunk):
        part = slice(first, first + chunk)
        encoded = model.encode(torch.from_numpy(queries.memories[part]).to(device))
        yield first, model.activations(encoded, torch.from_numpy(queries.query[part]).to(device)).float()


def _packed(moves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, Q) int place and action of the moves (B, L, A) bool that are True, the rest place -1 and action 0."""
    count = moves.sum((1, 2))
    room, start, action = np.nonzero(moves)
    slot = np.arange(len(room)) - np.repeat(np.cumsum(count) - count, count)
    packed = np.full((2, len(moves), max(1, count.max(initial=0))), -1)
    packed[:, room, slot] = start, action
    packed[1] = np.maximum(packed[1], 0)
    return packed[0], packed[1]
