"""Loss and answers of predictions, of symbols and of views, against figures worked out by hand."""

import math

import pytest
import torch

from eswm_gym.rooms.transitions import Problems
from eswm_gym.world_model import ACTION, END, SOURCE, Prediction, ViewPrediction


def problems(truth, masked, unknown) -> Problems:
    """Neither the bank nor the query counts for the loss."""
    return Problems(None, None, truth, masked, unknown)


def test_loss():
    """Mean over the queries of -log p(right class of the masked component); the other heads do not count."""
    source = torch.tensor([[[0.5, 0.25, 0.25], [0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.1, 0.2, 0.7]]]).log()
    action = torch.tensor([[[0.9, 0.1], [0.125, 0.875], [0.9, 0.1], [0.9, 0.1]]]).log()
    end = torch.tensor([[[0.9, 0.05, 0.05], [0.9, 0.05, 0.05], [0.3, 0.3, 0.4], [0.9, 0.05, 0.05]]]).log()
    prediction = Prediction(source + 3.0, action - 2.0, end)  # logits may be shifted
    masked = torch.tensor([[SOURCE, ACTION, END, SOURCE]])
    # The class of the last two queries is "I don't know", whatever is true.
    truth = torch.tensor([[[1, 9, 9], [9, 0, 9], [9, 9, 1], [0, 9, 9]]])
    unknown = torch.tensor([[0, 0, 1, 1]])
    by_hand = -(math.log(0.25) + math.log(0.125) + math.log(0.4) + math.log(0.7)) / 4
    assert prediction.loss(problems(truth, masked, unknown)).item() == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("part", [SOURCE, ACTION, END])
def test_loss_when_one_component_is_masked_everywhere(part):
    """Heads that were not asked add nothing, not even a nan."""
    heads = [torch.zeros(1, 2, n) for n in (10, 7, 10)]
    truth = torch.tensor([[[0, 0, 0], [6, 5, 6]]])
    loss = Prediction(*heads).loss(problems(truth, torch.full((1, 2), part), torch.zeros(1, 2, dtype=torch.long)))
    assert loss.item() == pytest.approx(math.log((10, 7, 10)[part]), rel=1e-6)


def logits(*classes: int, n: int) -> torch.Tensor:
    """(1, Q, n) logits that are sure of one class for each query."""
    return torch.nn.functional.one_hot(torch.tensor([classes]), n) * 9.0


def test_answers_of_symbols():
    """Of 5 states and 3 actions; the last class of each head is "I don't know"."""
    prediction = Prediction(logits(4, 5, 1, 1, n=6), logits(3, 0, 3, 2, n=4), logits(2, 2, 2, 5, n=6))
    masked = torch.tensor([[SOURCE, SOURCE, ACTION, END]])
    cells, action, unknown = prediction.answer(masked)
    assert cells.shape == (1, 4, 1) and cells[0, :2, 0].tolist() == [4, 5] and cells[0, 3, 0] == 5
    assert action.tolist() == [[3, 0, 3, 2]]
    assert unknown.tolist() == [[False, True, True, True]]


def test_answers_of_views():
    """Two logits of "I don't know", of source and end; the action head has a class of its own for it."""
    source = torch.nn.functional.one_hot(torch.full((1, 4, 25), 3), 9) * 9.0
    end = torch.nn.functional.one_hot(torch.full((1, 4, 25), 7), 9) * 9.0
    unknown = torch.tensor([[[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]])
    prediction = ViewPrediction(source, logits(0, 1, 2, 3, n=4), end, unknown)
    answer = prediction.answer(torch.tensor([[SOURCE, SOURCE, END, ACTION]]))
    assert [set(view) for view in answer.cells[0].tolist()] == [{3}, {3}, {7}, {7}]
    assert answer.action.tolist() == [[0, 1, 2, 3]]
    assert answer.unknown.tolist() == [[True, False, False, True]]


def logits_of(p):
    return torch.tensor(p).log()


def test_loss_of_views_by_hand():
    even = torch.zeros(1, 4, 25, 9)
    source, end = even.clone(), even.clone()
    source[0, 0, :, 4] = math.log(8)  # half of the probability
    end[0, 1, 0, 2] = math.log(8)
    action = torch.zeros(1, 4, 4)
    action[0, 2] = logits_of([0.1, 0.2, 0.3, 0.4])
    unknown = torch.zeros(1, 4, 2)
    unknown[0, 0, 0] = math.log(3)  # says "I don't know" with three to one
    unknown[0, 1] = torch.tensor([50.0, math.log(3)])
    prediction = ViewPrediction(source, action, end, unknown)
    masked = torch.tensor([[SOURCE, END, ACTION, END]])
    truth = torch.zeros(1, 4, 51, dtype=torch.long)
    truth[0, 0, :25] = 4
    truth[0, 1, 26:] = 2
    truth[0, 2, 25] = 1  # only the action counts
    unknown_is = torch.tensor([[0, 1, 1, -1]])  # -1: neither answer is right
    by_hand = [
        25 * math.log(2) + math.log(4),
        math.log(2) + 24 * math.log(9) + math.log(4 / 3),
        math.log(5),
        25 * math.log(9),
    ]
    assert prediction.loss(problems(truth, masked, unknown_is)).item() == pytest.approx(sum(by_hand) / 4, rel=1e-5)
    for i, expected in enumerate(by_hand):
        one = ViewPrediction(*(part[:, i : i + 1] for part in prediction[:4]))
        found = one.loss(problems(*(part[:, i : i + 1] for part in (truth, masked, unknown_is)))).item()
        assert found == pytest.approx(expected, rel=1e-5)


def test_the_masked_view():
    source, end = torch.zeros(1, 3, 25, 9), torch.ones(1, 3, 25, 9)
    prediction = ViewPrediction(source, torch.zeros(1, 3, 4), end, torch.zeros(1, 3, 2))
    view = prediction.masked_view(torch.tensor([[SOURCE, ACTION, END]]))
    assert view[0, :, 0, 0].tolist() == [0, 1, 1]


def test_of_symbols_what_is_not_known_is_new():
    logits = torch.tensor([[[0.0, 0.0, math.log(2)]]])  # p(I don't know) = 2 / 4
    imagined = Prediction(logits, logits, logits).imagined()
    torch.testing.assert_close(imagined.new, torch.tensor([[0.5]]))
    torch.testing.assert_close(imagined.unknown, imagined.new)


def test_of_views_the_new_cells_are_counted_if_the_model_counts_them():
    cells, action = torch.zeros(1, 2, 25, 9), torch.zeros(1, 2, 4)
    unknown = torch.tensor([[[0.0, math.log(3)], [0.0, -math.log(3)]]])
    imagined = ViewPrediction(cells, action, cells, unknown).imagined()
    torch.testing.assert_close(imagined.new, torch.tensor([[0.75, 0.25]]))
    counted = ViewPrediction(cells, action, cells, unknown, torch.tensor([[3.0, 0.0]])).imagined()
    assert counted.new.tolist() == [[3.0, 0.0]]
    torch.testing.assert_close(counted.unknown, imagined.new)
