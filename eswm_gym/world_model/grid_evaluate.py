"""Held-out evaluation on MiniGrid's rooms by kind of query and masked component, with two baselines beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from eswm_gym.rooms.grid import N_ACTIONS, N_CELLS, GridConfig, GridQueries, draw_queries
from eswm_gym.rooms.lattice.queries import Kind
from eswm_gym.world_model.data import Problems, cells_of
from eswm_gym.world_model.eswm import ACTION, SOURCE
from eswm_gym.world_model.grid_data import GridSource, to_problems
from eswm_gym.world_model.view_transformer import ViewTransformer

QUERIES = 48
HIDDEN = 0.6  # greatest share of a room that its bank does not show, in half of the rooms


@torch.inference_mode()
def evaluate_views(
    model: ViewTransformer, rooms: GridConfig, n_rooms: int = 500, seed: int = 10**6, chunk: int = 100
) -> dict[str, float]:
    """Measure a model on fresh rooms with cover banks and 48 queries each.

    Args:
        model: on any device; its mode is left as it is found.
        rooms: the family of rooms.
        n_rooms: number of rooms.
        seed: seed of the rooms; training never uses it.
        chunk: rooms in one forward pass; other rooms are drawn with another chunk.

    Returns:
        For each kind and component, over the queries that `eswm_gym.rooms.grid.move_kinds` decides:

        - `accuracy/unseen/end`: share of whole views that are right, of right actions, or of "I don't know".
        - `cells/unseen/end`: share of the cells of these views that are right.
        - `n/unseen/end`: how many queries.

        And `loss`.
    """
    device = next(model.parameters()).device
    training = model.training
    model.eval()
    answers, problems_of, loss = [], [], 0.0
    for problems, queries in held_out(rooms, n_rooms, seed, chunk):
        prediction = model(problems.memories.to(device), problems.query.to(device))
        masked = problems.masked.to(device)
        loss += len(problems.query) / n_rooms * prediction.loss(problems.target.to(device), masked).item()
        view = prediction.masked_view(masked).argmax(-1)
        unknown = prediction.masked_unknown(masked) > 0
        action = prediction.action.argmax(-1)
        answers.append(np.concatenate([t.cpu().numpy() for t in (view, action[..., None], unknown[..., None])], 2))
        problems_of.append((problems, queries))
    model.train(training)
    return {"loss": loss} | _score(answers, problems_of)


def baselines(
    rooms: GridConfig, n_rooms: int = 500, seed: int = 10**6, chunk: int = 100
) -> dict[str, dict[str, float]]:
    """The same measures for "majority", the commonest class of each cell and action, and "copy", the given view."""
    problems_of = list(held_out(rooms, n_rooms, seed, chunk))
    others = [problems for problems, _ in held_out(rooms, 100, seed + 1, chunk)]
    views = np.concatenate([p.target[p.masked != ACTION][:, :N_CELLS].numpy() for p in others])
    actions = np.concatenate([p.target[p.masked == ACTION][:, 0].numpy() for p in others])
    common = np.array([np.bincount(cell).argmax() for cell in views.T])
    action = np.bincount(actions, minlength=N_ACTIONS).argmax()
    found = {}
    for name in ("majority", "copy"):
        answers = []
        for problems, _ in problems_of:
            query = problems.query.numpy()
            given = np.where(
                (problems.masked.numpy() == SOURCE)[..., None], query[..., N_CELLS + 1 :], query[..., :N_CELLS]
            )
            answer = np.zeros((*given.shape[:2], N_CELLS + 2), np.int64)
            answer[..., :N_CELLS] = common if name == "majority" else given
            answer[..., N_CELLS] = action
            answers.append(answer)
        found[name] = _score(answers, problems_of)
    return found


def held_out(rooms: GridConfig, n_rooms: int, seed: int, chunk: int) -> Iterator[tuple[Problems, GridQueries]]:
    """Draw problems of fresh rooms, `chunk` rooms at a time."""
    rng = np.random.default_rng(seed)
    source = GridSource(rooms, "cover", hidden=HIDDEN)
    for start in range(0, n_rooms, chunk):
        banks = source.draw_banks(rng, min(chunk, n_rooms - start))
        queries = draw_queries(rng, banks, QUERIES)
        yield to_problems(banks, queries, source.capacity), queries


def _score(answers: list[np.ndarray], problems_of: list[tuple[Problems, GridQueries]]) -> dict[str, float]:
    """Measures of answers (B, Q, 27): the cells of the masked view, the action, whether "I don't know"."""
    answer = np.concatenate([a.reshape(-1, N_CELLS + 2) for a in answers])
    target = np.concatenate([p.target.flatten(0, 1).numpy() for p, _ in problems_of])
    masked = np.concatenate([p.masked.flatten().numpy() for p, _ in problems_of])
    kind = np.concatenate([q.kind.ravel() for _, q in problems_of])
    dont_know = answer[:, -1] > 0
    cells = (answer[:, :N_CELLS] == target[:, :N_CELLS]).mean(1)
    right = np.where(masked == ACTION, answer[:, N_CELLS] == target[:, 0], (cells == 1) & ~dont_know)
    right = np.where((kind == Kind.UNSOLVABLE) & (masked != ACTION), dont_know, right)
    metrics = {}
    for k, m, name, cell in cells_of(kind, masked):
        if k == Kind.UNSOLVABLE and m == ACTION:
            continue
        metrics[f"accuracy/{name}"] = float(right[cell].mean())
        metrics[f"n/{name}"] = int(cell.sum())
        if m != ACTION and k != Kind.UNSOLVABLE:
            metrics[f"cells/{name}"] = float(cells[cell].mean())
    return metrics
