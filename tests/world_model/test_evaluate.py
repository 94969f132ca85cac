"""The figures that evaluation reports, for models whose answers are known beforehand."""

import pytest
import torch
from torch import nn

from eswm_gym.rooms import PAPER_MIX, RoomConfig, draw_queries
from eswm_gym.world_model import ESWM, ModelConfig, Prediction
from eswm_gym.world_model.data import Source, to_problems
from eswm_gym.world_model.evaluate import evaluate

CONFIG = ModelConfig(n_states=19)
ROOMS = RoomConfig.random_wall(2)
CELLS = [f"{kind}/{part}" for kind in ("unseen", "seen", "unsolvable") for part in ("source", "action", "end")]


class Constant(ESWM):
    """Gives each query the same class in each head."""

    def __init__(self, state: int, action: int) -> None:
        super().__init__(CONFIG)
        self.state, self.action = state, action
        self.weight = nn.Parameter(torch.zeros(()))

    def encode(self, memories):
        return memories

    def predict(self, bank, query):
        batch, n = query.shape[:2]
        states = nn.functional.one_hot(torch.tensor(self.state), 20).float().expand(batch, n, -1)
        actions = nn.functional.one_hot(torch.tensor(self.action), 7).float().expand(batch, n, -1)
        return Prediction(states, actions, states)


class Truth(Constant):
    """Answers from the very problems that evaluation draws."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        import numpy as np

        source = Source(ROOMS)
        rng = np.random.default_rng(3)
        banks = source.draw_banks(rng, 40)
        self.problems = to_problems(banks, draw_queries(rng, banks, 48, PAPER_MIX), source.capacity, 19)

    def predict(self, bank, query):
        assert torch.equal(bank, self.problems.memories) and torch.equal(query, self.problems.query)
        target = self.problems.target
        states = nn.functional.one_hot(target.clamp(max=19), 20) * 30.0
        return Prediction(states, nn.functional.one_hot(target.clamp(max=6), 7) * 30.0, states)


def test_a_model_that_knows_nothing():
    found = evaluate(Constant(19, 6), ROOMS, n_rooms=40, seed=3)
    for cell in CELLS:
        expected = 1.0 if cell.startswith("unsolvable") else 0.0
        assert found[f"accuracy/{cell}"] == found[f"validity/{cell}"] == expected
    assert sum(found[f"n/{cell}"] for cell in CELLS) == 40 * 48


def test_a_model_that_knows_everything():
    found = evaluate(Truth(), ROOMS, n_rooms=40, seed=3)
    assert found["loss"] == pytest.approx(0, abs=1e-6)
    for cell in CELLS:
        assert found[f"accuracy/{cell}"] == found[f"validity/{cell}"] == 1


def test_a_guess_is_right_as_often_as_chance_and_valid_at_least_so_often():
    found = evaluate(Constant(5, 2), ROOMS, n_rooms=200, seed=3)
    assert found["accuracy/unseen/action"] == pytest.approx(1 / 6, abs=0.03)
    assert found["accuracy/unseen/end"] == pytest.approx(1 / 19, abs=0.02)
    for cell in CELLS:
        assert found[f"validity/{cell}"] >= found[f"accuracy/{cell}"]
        if cell.startswith("unsolvable"):
            assert found[f"accuracy/{cell}"] == 0


def test_chunks_do_not_matter_to_kinds_and_mode_is_kept():
    model = Constant(5, 2).train()
    found = evaluate(model, ROOMS, n_rooms=30, seed=3, chunk=7)
    assert model.training and sum(found[f"n/{cell}"] for cell in CELLS) == 30 * 48
