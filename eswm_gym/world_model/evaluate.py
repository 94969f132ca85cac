"""Held-out evaluation by kind of query and masked component (paper: "Query Selection" and tables)."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import torch

from eswm_gym.rooms import PAPER_MIX, BankBatch, Kind, QueryBatch, RoomConfig, draw_queries
from eswm_gym.rooms.grid import GridConfig
from eswm_gym.world_model.data import Source, cells_of, to_problems
from eswm_gym.world_model.eswm import ACTION, ESWM, MASKED, ModelConfig
from eswm_gym.world_model.grid_evaluate import evaluate_views
from eswm_gym.world_model.view_transformer import ViewTransformer


class Judged(NamedTuple):
    """Answers to the queries of R rooms, all (R, 48) but the loss.

    Attributes:
        kind, masked: int, of each query.
        accurate, valid: bool, as `evaluate` counts answers.
        loss: mean over all queries.
    """

    kind: np.ndarray
    masked: np.ndarray
    accurate: np.ndarray
    valid: np.ndarray
    loss: float


def evaluate(
    model: ESWM, rooms: RoomConfig | GridConfig | Source, n_rooms: int = 500, seed: int = 10**6, chunk: int = 100
) -> dict[str, float]:
    """Measure a model on fresh rooms with 48 queries each.

    Args:
        model: on any device; its mode is left as it is found.
        rooms: the family of rooms, for minimal banks and queries in the paper's mix; or a source of other problems.
        n_rooms: number of rooms.
        seed: seed of the rooms; training never uses it.
        chunk: rooms in one forward pass.

    Returns:
        For each kind and component:

        - `accuracy/unseen/end`: share of answers that equal the generating transition, "I don't know" if the query
          is unsolvable: the paper's measure.
        - `validity/unseen/end`: share of answers that complete the query to a transition that is true in the room,
          or say "I don't know" to an unsolvable query. A query may have several true answers: a move that leads
          here from an unobserved location may also be a blocked move that leaves the agent here.
        - `n/unseen/end`: how many queries.

        And `loss`. MiniGrid's rooms have other measures: see `evaluate_views`.
    """
    if isinstance(rooms, GridConfig):
        return evaluate_views(cast(ViewTransformer, model), rooms, n_rooms, seed, chunk)
    judged = judge(model, rooms, n_rooms, seed, chunk)
    metrics = {"loss": judged.loss}
    for _, _, name, cell in cells_of(judged.kind, judged.masked):
        metrics[f"accuracy/{name}"] = float(judged.accurate[cell].mean())
        metrics[f"validity/{name}"] = float(judged.valid[cell].mean())
        metrics[f"n/{name}"] = int(cell.sum())
    return metrics


@torch.inference_mode()
def judge(model: ESWM, rooms: RoomConfig | Source, n_rooms: int = 500, seed: int = 10**6, chunk: int = 100) -> Judged:
    """The answers that `evaluate` measures, query by query. Those of one room depend on each other."""
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    training = model.training
    model.eval()
    rng = np.random.default_rng(seed)
    source = rooms if isinstance(rooms, Source) else Source(rooms, "minimal", mix=PAPER_MIX)
    rows, loss = [], 0.0
    for start in range(0, n_rooms, chunk):
        banks = source.draw_banks(rng, min(chunk, n_rooms - start))
        queries = source.mask(rng, draw_queries(rng, banks, 48, source.mix, source.start(banks)))
        problems = to_problems(banks, queries, source.capacity, model.config.n_states)
        memories, query, target, component = (part.to(device) for part in problems)
        prediction = model(memories, query)
        share = len(problems.query) / n_rooms
        loss += share * prediction.loss(target, component).item()
        answer = prediction.answer(component).cpu().numpy()
        accurate = answer == problems.target.numpy()
        valid = is_valid(answer, banks, queries, model.config)
        rows.append((queries.kind, queries.masked, accurate, valid))
    model.train(training)
    kind, masked, accurate, valid = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return Judged(kind, masked, accurate, valid, loss)


def is_valid(answer: np.ndarray, banks: BankBatch, queries: QueryBatch, config: ModelConfig) -> np.ndarray:
    """Which answers are true in their rooms, or say "I don't know" to what is unsolvable.

    Args:
        answer: (B, Q) int, a class of the head of each masked component.
        banks, queries: what was asked.
        config: of the model that answered.

    Returns:
        (B, Q) bool.
    """
    dont_know = answer == np.where(queries.masked == ACTION, config.n_actions, config.n_states)
    completed = queries.transitions.copy()
    np.put_along_axis(completed, queries.masked[..., None], np.where(dont_know, MASKED, answer)[..., None], 2)
    return banks.rooms.is_true(completed) | (dont_know & (queries.kind == Kind.UNSOLVABLE))
