"""Held-out figures of MiniGrid's rooms with models whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import one_hot

from eswm_gym.rooms import Kind
from eswm_gym.rooms.grid import LOOK, PARTLY, UNDECIDED, GridConfig, GridSource
from eswm_gym.rooms.transitions import COMPONENTS
from eswm_gym.world_model import ACTION, END, SOURCE, ViewPrediction, ViewTransformer, ViewTransformerConfig
from eswm_gym.world_model.evaluate import QUERIES, baselines, evaluate, held_out
from eswm_gym.world_model.stream import to_tensors

ROOMS = GridSource(GridConfig(), "cover", hidden=0.6)
SEED = 7
N_ROOMS = 45  # two chunks of 20 and one of 5


class Answers(ViewTransformer):
    """Answers the held-out queries in their order from what they were made of."""

    def __init__(
        self, spoil=lambda prediction, queries: prediction, chunk: int = 20, rooms: GridSource = ROOMS
    ) -> None:
        super().__init__(ViewTransformerConfig(dim=4, layers=1, heads=1, cell_dim=1))
        self.problems = held_out(rooms, N_ROOMS, SEED, chunk)
        self.spoil = spoil

    def forward(self, memories, query):
        _, queries, problems = next(self.problems)
        problems = to_tensors(problems)
        assert torch.equal(problems.memories, memories) and torch.equal(problems.query, query)
        assert not self.training
        row = torch.from_numpy(queries.transitions)
        unsolvable = problems.unknown == 1  # what is known in part, too
        wrong = (row + 1) % 9  # what the heads of the components that are not masked say does not count
        masked = problems.masked[..., None]
        source = torch.where(masked == SOURCE, row[..., :25], wrong[..., :25])
        end = torch.where(masked == END, row[..., 26:], wrong[..., 26:])
        unknown = torch.stack([unsolvable, unsolvable], -1) * 100.0 - 50
        return self.spoil(
            ViewPrediction(one_hot(source, 9) * 50.0, one_hot(row[..., 25], 4) * 50.0, one_hot(end, 9) * 50.0, unknown),
            queries,
        )


def figures(model, **kwargs):
    return evaluate(model, ROOMS, N_ROOMS, SEED, **{"chunk": 20} | kwargs)


def counts():
    found = {}
    for _, queries, problems in held_out(ROOMS, N_ROOMS, SEED, 20):
        assert problems.query.shape[1] == QUERIES
        for kind, masked in zip(queries.kind.ravel(), queries.masked.ravel(), strict=True):
            found[int(kind), int(masked)] = found.get((int(kind), int(masked)), 0) + 1
    return found


def test_the_truth_is_right_everywhere():
    model = Answers().train()
    metrics = figures(model)
    assert model.training
    expected = {
        f"{kind.name.lower()}/{part}"
        for kind in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE)
        for part in COMPONENTS
        if (kind, part) != (Kind.UNSOLVABLE, "action")
    }
    assert {key.partition("/")[2] for key in metrics if key != "loss"} == expected
    assert all(value == 1 for key, value in metrics.items() if key.startswith(("accuracy/", "cells/")))
    assert {key for key in metrics if key.startswith("cells/unsolvable")} == set()
    # Of undecided queries neither answer is right, but their cells count; the truth costs nothing.
    assert metrics["loss"] == pytest.approx(0, abs=1e-4)
    n = counts()
    for kind in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE):
        for masked, part in enumerate(COMPONENTS):
            assert metrics.get(f"n/{kind.name.lower()}/{part}", 0) == n.get((kind, masked), 0)


def test_where_views_have_errors_the_answer_without_them_is_right():
    """Looks count in no figure but the loss."""
    rooms = replace(ROOMS, wrong_cells=(0.2, 0.2), looks=0.2)
    metrics = evaluate(Answers(rooms=rooms), rooms, N_ROOMS, SEED, chunk=20)
    assert all(value == 1 for key, value in metrics.items() if key.startswith(("accuracy/", "cells/")))
    assert metrics["loss"] == pytest.approx(0, abs=1e-4)
    n, looks = sum(value for key, value in metrics.items() if key.startswith("n/")), 0
    for _, queries, _ in held_out(rooms, N_ROOMS, SEED, 20):
        n += (
            np.isin(queries.kind, (PARTLY, UNDECIDED))
            | ((queries.kind == Kind.UNSOLVABLE) & (queries.masked == ACTION))
        ).sum()
        looks += (queries.transitions[..., 25] == LOOK).sum()
    assert n + looks == N_ROOMS * QUERIES and looks > 0.1 * N_ROOMS * QUERIES


def test_one_wrong_cell_is_a_wrong_view():
    def spoil(prediction, queries):
        prediction.end[:, :, 3] = prediction.end[:, :, 3].roll(1, -1)
        return prediction

    metrics = figures(Answers(spoil))
    for kind in ("unseen", "seen"):
        assert metrics[f"accuracy/{kind}/end"] == 0
        assert metrics[f"cells/{kind}/end"] == pytest.approx(24 / 25)
        assert metrics[f"accuracy/{kind}/source"] == metrics[f"accuracy/{kind}/action"] == 1
    assert metrics["accuracy/unsolvable/end"] == 1  # which asks for "I don't know" only
    assert metrics["loss"] > 1


@pytest.mark.parametrize("says", [True, False])
def test_dont_know_everywhere_or_nowhere(says):
    def spoil(prediction, queries):
        prediction.unknown[:] = 50.0 if says else -50.0
        return prediction

    metrics = figures(Answers(spoil))
    for part in ("source", "end"):
        assert metrics[f"accuracy/unsolvable/{part}"] == says
        assert metrics[f"accuracy/unseen/{part}"] == metrics[f"accuracy/seen/{part}"] == (not says)
        assert metrics[f"cells/unseen/{part}"] == 1
    assert metrics["accuracy/unseen/action"] == 1


def test_the_two_dont_knows_belong_to_source_and_end():
    def spoil(prediction, queries):
        prediction.unknown[..., 0] = 50.0
        return prediction

    metrics = figures(Answers(spoil))
    assert (metrics["accuracy/unseen/source"], metrics["accuracy/unseen/end"]) == (0, 1)


def test_wrong_actions():
    def spoil(prediction, queries):
        prediction.action[:] = prediction.action.roll(1, -1)
        return prediction

    metrics = figures(Answers(spoil))
    assert metrics["accuracy/unseen/action"] == metrics["accuracy/seen/action"] == 0
    assert metrics["accuracy/unseen/end"] == 1


def test_chunks_make_no_difference():
    torch.manual_seed(0)
    model = ViewTransformer(ViewTransformerConfig(dim=16, layers=1, heads=2, cell_dim=2))
    one = evaluate(model, ROOMS, 10, SEED, chunk=10)
    assert evaluate(model, ROOMS, 10, SEED, chunk=10) == one
    # The rooms of other chunks are other draws, but as many queries.
    other = evaluate(model, ROOMS, 10, SEED, chunk=4)
    assert other["loss"] == pytest.approx(one["loss"], rel=0.2)
    assert evaluate(model, ROOMS, 10, SEED + 1, chunk=10) != one


def test_baselines():
    found = {name: judged.metrics() for name, judged in baselines(ROOMS, N_ROOMS, SEED, 20).items()}
    assert set(found) == {"majority", "copy"}
    views, given = [], []
    for _, queries, _ in held_out(ROOMS, N_ROOMS, SEED, 20):
        chosen = (queries.kind == Kind.UNSEEN) & (queries.masked == END)
        views.append(queries.transitions[chosen][:, 26:])
        given.append(queries.transitions[chosen][:, :25])
    views, given = np.concatenate(views), np.concatenate(given)
    copy, majority = found["copy"], found["majority"]
    assert copy["cells/unseen/end"] == pytest.approx((views == given).mean())
    assert copy["accuracy/unseen/end"] == pytest.approx((views == given).all(1).mean())
    # The commonest class of each cell in these very rooms is the best that one answer for all can be.
    best = np.mean([np.bincount(cell).max() / len(cell) for cell in views.T])
    assert 0.25 < majority["cells/unseen/end"] <= best
    for metrics in found.values():
        for kind in ("unseen", "seen"):
            for part in ("source", "end"):
                assert 0 < metrics[f"cells/{kind}/{part}"] < 1
                assert metrics[f"accuracy/{kind}/{part}"] < 0.1
            assert 0.2 < metrics[f"accuracy/{kind}/action"] < 0.7
        assert metrics["accuracy/unsolvable/end"] == 0  # neither says "I don't know"
    assert copy["accuracy/unseen/action"] == majority["accuracy/unseen/action"]
