"""Held-out figures of models whose answers are known, counted again one query at a time."""

import math

import numpy as np
import pytest
import torch

from eswm_gym.rooms import PAPER_MIX, Kind, LatticeSource, Room, RoomConfig
from eswm_gym.world_model import ESWM, EncodedBank, ModelConfig, Prediction
from eswm_gym.world_model.evaluate import HELD_OUT_SEED, VALIDATION_SEED, evaluate
from eswm_gym.world_model.presets import Preset

N_STATES = 10
IDK = (N_STATES, 6, N_STATES)  # class of "I don't know" of the source, action and end head
ROOMS = RoomConfig.random_wall(1, states=tuple(range(N_STATES)), wall_length=(1, 2))
SOURCE = LatticeSource(ROOMS, mix=PAPER_MIX)
PARTS = ("source", "action", "end")


class Known(ESWM):
    """Gives answers[b][q] to query q of the b-th bank it is ever asked about, with probability 0.5."""

    def __init__(self, answers):
        super().__init__(ModelConfig(N_STATES))
        self.answers, self.banks_seen = answers, 0
        self.anything = torch.nn.Parameter(torch.zeros(1))  # says on which device the model is

    def encode(self, memories):
        assert not self.training
        return EncodedBank(memories)

    def predict(self, bank, query):
        now = slice(self.banks_seen, self.banks_seen + len(query))
        self.banks_seen += len(query)
        answer = torch.tensor(self.answers[now])
        heads = []
        for idk in IDK:
            chances = torch.full((*answer.shape, idk + 1), 0.5 / idk)
            heads.append(chances.scatter(2, answer.clamp(max=idk)[..., None], 0.5).log())
        return Prediction(*heads)

    def activations(self, bank, query):
        raise NotImplementedError


class Question:
    """A query of the evaluation, as the true room tells it."""

    def __init__(self, room: Room, transition, masked: int, kind: int):
        self.room, self.transition, self.masked, self.kind = room, transition, masked, Kind(kind)

    def is_true(self, source, action, end) -> bool:
        free = self.room.states[~self.room.walls]
        return source in free and action < 6 and self.room.next_state(source, action) == end

    @property
    def right(self) -> int:
        """The answer that counts as accurate."""
        return IDK[self.masked] if self.kind == Kind.UNSOLVABLE else self.transition[self.masked]

    def is_valid(self, answer: int) -> bool:
        """Whether it says something true: that it does not know the unsolvable, or what happens in the room."""
        if self.kind == Kind.UNSOLVABLE and answer == IDK[self.masked]:
            return True
        return self.is_true(*(answer if i == self.masked else x for i, x in enumerate(self.transition)))


def questions_of(monkeypatch, **options) -> list[list[Question]]:
    """What `evaluate` asks with these options, a list for each room."""
    asked = []
    ask = LatticeSource.ask

    def record(self, rng, banks, n):
        queries = ask(self, rng, banks, n)
        for i in range(len(banks.source)):
            room = Room.from_batch(banks.rooms, i)
            rows = zip(queries.transitions[i].tolist(), queries.masked[i], queries.kind[i], strict=True)
            asked.append([Question(room, *row) for row in rows])
        return queries

    with monkeypatch.context() as patched:
        patched.setattr(LatticeSource, "ask", record)
        evaluate(Known(np.zeros((10**4, 48), np.int64)), SOURCE, **options)
    return asked


def counted_by_hand(asked, answers) -> dict[str, float]:
    cells = {}
    for questions, given in zip(asked, answers, strict=True):
        for question, answer in zip(questions, given, strict=True):
            cell = cells.setdefault(f"{question.kind.name.lower()}/{PARTS[question.masked]}", [])
            cell.append((answer == question.right, question.is_valid(answer)))
    metrics = {}
    for name, cell in cells.items():
        accurate, valid = zip(*cell, strict=True)
        metrics[f"accuracy/{name}"] = sum(accurate) / len(cell)
        metrics[f"validity/{name}"] = sum(valid) / len(cell)
        metrics[f"n/{name}"] = len(cell)
    return metrics


def loss_by_hand(asked, answers) -> float:
    """0.5 for the given answer, the other half shared by the other classes."""
    losses = [
        -math.log(0.5 if answer == question.right else 0.5 / IDK[question.masked])
        for questions, given in zip(asked, answers, strict=True)
        for question, answer in zip(questions, given, strict=True)
    ]
    return sum(losses) / len(losses)


def random_answers(asked):
    """About half of them right, the rest any class at all, "I don't know" among them."""
    rng = np.random.default_rng(0)
    return [[q.right if rng.random() < 0.5 else int(rng.integers(IDK[q.masked] + 1)) for q in r] for r in asked]


def ignorant_answers(asked):
    return [[IDK[question.masked] for question in questions] for questions in asked]


def other_answers(asked):
    """Where there is one, another answer that is true in the room; else the right one."""
    return [
        [next((x for x in range(IDK[q.masked]) if x != q.right and q.is_valid(x)), q.right) for q in r] for r in asked
    ]


# The last chunk is smaller than the others.
SIZE = {"n_rooms": 25, "chunk": 10, "seed": 3}


@pytest.mark.parametrize("answer", [random_answers, ignorant_answers, other_answers])
def test_figures(monkeypatch, answer):
    asked = questions_of(monkeypatch, **SIZE)
    answers = answer(asked)
    found = evaluate(Known(answers), SOURCE, **SIZE)
    assert found.pop("loss") == pytest.approx(loss_by_hand(asked, answers), rel=1e-5)
    assert found == pytest.approx(counted_by_hand(asked, answers))


def test_a_perfect_model(monkeypatch):
    asked = questions_of(monkeypatch, **SIZE)
    found = evaluate(Known([[q.right for q in questions] for questions in asked]), SOURCE, **SIZE)
    assert sum(value for key, value in found.items() if key.startswith("n/")) == 25 * 48
    assert found.pop("loss") == pytest.approx(math.log(2), rel=1e-5)
    cells = {f"{kind}/{part}" for kind in ("unseen", "seen", "unsolvable") for part in PARTS}
    assert {key for key in found if not key.startswith("n/")} == {
        f"{measure}/{cell}" for measure in ("accuracy", "validity") for cell in cells
    }
    assert all(value == 1.0 for key, value in found.items() if not key.startswith("n/"))


def test_never_sure(monkeypatch):
    """Always "I don't know": right about the unsolvable and about nothing else."""
    asked = questions_of(monkeypatch, **SIZE)
    found = evaluate(Known(ignorant_answers(asked)), SOURCE, **SIZE)
    for key, value in found.items():
        if key.startswith(("accuracy", "validity")):
            assert value == ("unsolvable" in key), key


def test_validity_counts_every_true_completion(monkeypatch):
    """Which action stays at s? With two blocked moves there are two right answers, and one that generated it."""
    asked = questions_of(monkeypatch, **SIZE)
    found = evaluate(Known(other_answers(asked)), SOURCE, **SIZE)
    assert found["validity/unseen/action"] == 1.0 > found["accuracy/unseen/action"]
    assert found["validity/unseen/end"] == found["accuracy/unseen/end"] == 1.0  # a move has one end


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_is_left_as_it_is_found(training):
    model = Known(np.zeros((100, 48), np.int64)).train(training)
    evaluate(model, SOURCE, n_rooms=3)
    assert model.training is training


def test_the_seed_chooses_the_rooms():
    def figures(seed):
        return evaluate(Known(np.zeros((100, 48), np.int64)), SOURCE, n_rooms=10, seed=seed)

    assert figures(1) == figures(1) != figures(2)


def test_seeds_that_are_watched_are_not_those_that_are_reported():
    """Benchmarks use multiples of a million."""
    assert len({VALIDATION_SEED, HELD_OUT_SEED}) == 2
    assert VALIDATION_SEED % 10**6 and HELD_OUT_SEED % 10**6


def test_a_preset_has_as_many_actions_as_its_problems():
    with pytest.raises(ValueError, match="has 6 actions, the model has 4"):
        Preset(ModelConfig(n_actions=4), (SOURCE,), {})
    with pytest.raises(ValueError, match="has 6 actions, the model has 3"):
        Preset(ModelConfig(n_actions=3), (), {"rooms": SOURCE})
    with pytest.raises(ValueError, match=f"has banks of {SOURCE.capacity}, more than 5"):
        Preset(ModelConfig(max_memories=5), (SOURCE,), {})
