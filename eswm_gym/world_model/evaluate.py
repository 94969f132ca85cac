"""Held-out evaluation by kind of query and masked component (paper: "Query Selection" and tables)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from eswm_gym.rooms import Kind
from eswm_gym.rooms.transitions import ACTION, COMPONENTS, SOURCE, Problems, Source, parts, to_problems
from eswm_gym.world_model.eswm import ESWM
from eswm_gym.world_model.predictions import Answer
from eswm_gym.world_model.stream import to_tensors

QUERIES = 48  # of each room
# Seeds of rooms. Training draws from [seed of the run, step, ...], so that it meets neither of these; benchmarks use
# others, see `benchmarks/common/cli.py`.
VALIDATION_SEED = 2**31 + 7  # watched while training, and to choose by
HELD_OUT_SEED = 2**32 + 11  # the figures in the JSON of a finished model


class Judged(NamedTuple):
    """Answers to the queries of R rooms, all (R, 48) but the loss.

    Attributes:
        kind, masked: int, of each query.
        accurate: bool, as `evaluate` counts answers.
        valid: bool, the same; None where the source does not say what is true.
        cells: float, share of the cells of the masked state that are right; where the action is masked, of the end.
        loss: mean over all queries.
    """

    kind: np.ndarray
    masked: np.ndarray
    accurate: np.ndarray
    valid: np.ndarray | None
    cells: np.ndarray
    loss: float = float("nan")

    def metrics(self) -> dict[str, float]:
        """What `evaluate` returns, but the loss."""
        found: dict[str, float] = {}
        for kind, component, name, chosen in cells_of(self.kind, self.masked):
            found[f"accuracy/{name}"] = float(self.accurate[chosen].mean())
            if self.valid is not None:
                found[f"validity/{name}"] = float(self.valid[chosen].mean())
            elif component != ACTION and kind != Kind.UNSOLVABLE:
                found[f"cells/{name}"] = float(self.cells[chosen].mean())
            found[f"n/{name}"] = int(chosen.sum())
        return found


def cells_of(kind: np.ndarray, masked: np.ndarray) -> Iterator[tuple[Kind, int, str, np.ndarray]]:
    """The cells of a table of measures: kind, component, name such as `unseen/end`, and bool which queries."""
    for k in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE):
        for component, name in enumerate(COMPONENTS):
            chosen = (kind == k) & (masked == component)
            if chosen.any():
                yield k, component, f"{k.name.lower()}/{name}", chosen


def evaluate(
    model: ESWM, source: Source, n_rooms: int = 500, seed: int = VALIDATION_SEED, chunk: int = 100
) -> dict[str, float]:
    """Measure a model on fresh rooms with 48 queries each.

    For each kind and component the result holds:

    - `accuracy/unseen/end`: share of answers that equal the generating transition, "I don't know" if the query is
      unsolvable: the paper's measure. A view equals another if all of its cells do.
    - `validity/unseen/end`: share of answers that complete the query to a transition that is true in the room, or say
      "I don't know" to an unsolvable query. A query may have several true answers: a move that leads here from an
      unobserved location may also be a blocked move that leaves the agent here. Not of views.
    - `cells/unseen/end`: of views instead, share of the cells that are right. Not of unsolvable queries.
    - `n/unseen/end`: how many queries.

    Args:
        model: on any device; its mode is left as it is found.
        source: what it is asked.
        n_rooms: number of rooms.
        seed: seed of the rooms.
        chunk: rooms in one forward pass; other rooms are drawn with another chunk.

    Returns:
        All of these by name, and `loss`.
    """
    judged = judge(model, source, n_rooms, seed, chunk)
    return {"loss": judged.loss} | judged.metrics()


@torch.inference_mode()
def judge(model: ESWM, source: Source, n_rooms: int = 500, seed: int = VALIDATION_SEED, chunk: int = 100) -> Judged:
    """The answers that `evaluate` measures, query by query. Those of one room depend on each other."""
    training = model.training
    model.eval()
    found, loss = [], 0.0
    for banks, queries, problems in held_out(source, n_rooms, seed, chunk):
        asked = to_tensors(problems, model.device)
        prediction = model(asked.memories, asked.query)
        loss += len(asked.query) / n_rooms * prediction.loss(asked).item()
        answer = Answer(*(part.cpu().numpy() for part in prediction.answer(asked.masked)))
        found.append(judge_answers(answer, source, banks, queries, problems))
    model.train(training)
    return concatenate(found)._replace(loss=loss)


def held_out(source: Source, n_rooms: int, seed: int, chunk: int) -> Iterator[tuple[Any, Any, Problems]]:
    """Banks, queries and problems of fresh rooms, `chunk` rooms at a time."""
    rng = np.random.default_rng(seed)
    for start in range(0, n_rooms, chunk):
        banks = source.draw_banks(rng, min(chunk, n_rooms - start))
        queries = source.ask(rng, banks, QUERIES)
        yield banks, queries, to_problems(banks, queries, source.capacity)


def judge_answers(answer: Answer, source: Source, banks: Any, queries: Any, problems: Problems) -> Judged:
    """Compare answers, NumPy arrays, with what was asked."""
    accurate, cells = compare(answer, problems)
    true = source.is_true(banks, complete(answer, problems))
    valid = None if true is None else true | (answer.unknown & (problems.unknown == 1))
    return Judged(queries.kind, problems.masked, accurate, valid, cells)


def compare(answer: Answer, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
    """Which answers are right, and how much of them: both NumPy arrays.

    Returns:
        (B, Q) bool, whether an answer equals the truth, or is "I don't know" where that is right; and (B, Q) float,
        the share of right cells of the masked state, of the end where the action is masked.
    """
    cells = (answer.cells == _masked_state(problems)).mean(-1)
    action = parts(problems.truth)[1][..., 0]
    equal = np.where(problems.masked == ACTION, answer.action == action, cells == 1)
    return np.where(problems.unknown == 1, answer.unknown, equal & ~answer.unknown), cells


def complete(answer: Answer, problems: Problems) -> np.ndarray:
    """(B, Q, W) int, the queries with the answers put in; those answered with "I don't know" as they are."""
    completed = problems.query.copy()
    for component, part in enumerate(parts(completed)):
        value = answer.action[..., None] if component == ACTION else answer.cells
        np.copyto(part, value, where=((problems.masked == component) & ~answer.unknown)[..., None])
    return completed


def concatenate(judged: list[Judged]) -> Judged:
    """The answers of several batches of rooms as one; the loss is left out."""
    kind, masked, accurate, valid, cells, _ = zip(*judged, strict=True)
    return Judged(
        np.concatenate(kind),
        np.concatenate(masked),
        np.concatenate(accurate),
        None if valid[0] is None else np.concatenate(valid),
        np.concatenate(cells),
    )


def baselines(source: Source, n_rooms: int = 500, seed: int = VALIDATION_SEED, chunk: int = 100) -> dict[str, Judged]:
    """The answers of "majority", the commonest class of each cell and action, and "copy", the given state. Neither ever
    says "I don't know"."""
    others = [problems for *_, problems in held_out(source, 100, seed + 1, chunk)]
    states = np.concatenate([_masked_state(p)[p.masked != ACTION] for p in others])
    actions = np.concatenate([parts(p.truth)[1][p.masked == ACTION, 0] for p in others])
    common = np.array([np.bincount(cell).argmax() for cell in states.T])
    action = np.bincount(actions).argmax()
    found: dict[str, list[Judged]] = {"majority": [], "copy": []}
    for banks, queries, problems in held_out(source, n_rooms, seed, chunk):
        shape = problems.masked.shape
        before, _, after = parts(problems.query)
        given = np.where((problems.masked == SOURCE)[..., None], after, before)
        for name, cells in (("majority", np.broadcast_to(common, given.shape)), ("copy", given)):
            answer = Answer(cells, np.full(shape, action), np.zeros(shape, bool))
            found[name].append(judge_answers(answer, source, banks, queries, problems))
    return {name: concatenate(judged) for name, judged in found.items()}


def _masked_state(problems: Problems) -> np.ndarray:
    """(B, Q, C) int, the true source where it is masked, else the true end."""
    source, _, end = parts(problems.truth)
    return np.where((problems.masked == SOURCE)[..., None], source, end)
