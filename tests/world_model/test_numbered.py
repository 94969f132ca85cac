"""A model under other numbers of actions says what the model itself says when it is asked in its own numbers."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.world_model import END, NumberedActions, Transformer, TransformerConfig

N_STATES, N_ACTIONS = 9, 7
KINDS = ("codes", "names", "joint")
few = settings(max_examples=15)


@cache
def model_of(kind: str) -> Transformer:
    options = {"codes": {"codes": 4}, "names": {}, "joint": {"query_attention": "joint"}}[kind]
    config = TransformerConfig(
        N_STATES, N_ACTIONS, dim=16, layers=2, loops=2, max_memories=20, state_embeddings=False, **options
    )
    model = Transformer(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5, generator=generator)
    return model.requires_grad_(False)


def numbers_of_actions():
    return st.permutations(range(N_ACTIONS)).flatmap(lambda p: st.integers(1, N_ACTIONS).map(lambda n: list(p[:n])))


def rows(rng, n: int, n_actions: int) -> np.ndarray:
    return np.stack(
        [rng.integers(N_STATES, size=n), rng.integers(n_actions, size=n), rng.integers(N_STATES, size=n)], 1
    )


def translated(transitions: np.ndarray, numbers: list[int]) -> torch.Tensor:
    """Row by row and in plain Python."""
    return torch.tensor([[[s, numbers[a] if a >= 0 else -1, e] for s, a, e in bank] for bank in transitions.tolist()])


@few
@given(numbers=numbers_of_actions(), seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS))
def test_answers_are_the_models_own(numbers, seed, kind):
    model, rng = model_of(kind), np.random.default_rng(seed)
    memories = np.stack([rows(rng, 6, len(numbers)) for _ in range(2)])
    memories[1, 4:] = -1  # padding
    query = np.stack([rows(rng, 6, len(numbers)) for _ in range(2)])
    query[:, np.arange(6), np.arange(6) % 3] = -1
    before = memories.copy(), query.copy()
    mine = NumberedActions(model, numbers)(torch.from_numpy(memories), torch.from_numpy(query))
    theirs = model(translated(memories, numbers), translated(query, numbers))
    torch.testing.assert_close(mine.source, theirs.source)
    torch.testing.assert_close(mine.end, theirs.end)
    assert mine.action.shape == (2, 6, len(numbers) + 1)
    for i, number in enumerate(numbers):
        torch.testing.assert_close(mine.action[..., i], theirs.action[..., number])
    torch.testing.assert_close(mine.action[..., -1], theirs.action[..., N_ACTIONS])  # "I don't know"
    assert (memories == before[0]).all() and (query == before[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_imagined_is_the_same(kind):
    model, numbers = model_of(kind), [5, 0, 3]
    wrapped = NumberedActions(model, numbers)
    memories = rows(np.random.default_rng(0), 8, 3)[None]
    source, action = torch.arange(9).repeat_interleave(3)[None, :, None], torch.arange(3).repeat(9)[None]
    mine = wrapped.imagine(wrapped.encode(torch.from_numpy(memories)), source, action)
    encoded = model.encode(translated(memories, numbers))
    theirs = model.imagine(encoded, source, torch.tensor(numbers)[action])
    torch.testing.assert_close(mine.cells, theirs.cells)
    torch.testing.assert_close(mine.unknown, theirs.unknown)


@pytest.mark.parametrize("kind", ["codes", "names"])  # a model with joint attention reads out in one pass only
def test_tokens_are_the_same_and_read_out_the_same(kind):
    model, numbers = model_of(kind), [6, 2]
    wrapped = NumberedActions(model, numbers)
    memories, query = (rows(np.random.default_rng(seed), 5, 2)[None] for seed in (0, 1))
    query[..., END] = -1
    mine, theirs = wrapped.encode(torch.from_numpy(memories)), model.encode(translated(memories, numbers))
    tokens = wrapped.activations(mine, torch.from_numpy(query))
    torch.testing.assert_close(tokens, model.activations(theirs, translated(query, numbers)))
    read = wrapped.read_out(tokens[-1], mine)
    for one, other in zip(read, wrapped.predict(mine, torch.from_numpy(query)), strict=True):
        torch.testing.assert_close(one, other)


def test_weights_and_configuration_are_the_models():
    model = model_of("codes")
    model.latent_radius = 1.5
    try:
        wrapped = NumberedActions(model, (4, 1))
    finally:
        model.latent_radius = None
    assert {id(weight) for weight in wrapped.parameters()} == {id(weight) for weight in model.parameters()}
    assert wrapped.codec is model.codec and wrapped.device == model.device and wrapped.latent_radius == 1.5
    config = wrapped.config
    assert (config.n_states, config.n_actions, config.max_memories) == (N_STATES, 2, 20)
    assert "numbers" not in wrapped.state_dict()  # nothing of its own to save


def test_the_same_numbers_change_nothing():
    model = model_of("names")
    wrapped = NumberedActions(model, np.arange(N_ACTIONS))  # as `move_numbers` gives them
    memories, query = (torch.from_numpy(rows(np.random.default_rng(seed), 5, N_ACTIONS)[None]) for seed in (0, 1))
    query[..., END] = -1
    for mine, theirs in zip(wrapped(memories, query), model(memories, query), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("numbers", [[], [7], [-1, 2], [3, 3], [0, 1, 2, 3, 4, 5, 6, 6]], ids=str)
def test_wrong_numbers_are_refused(numbers):
    with pytest.raises(ValueError, match=r"different numbers from 0 to 6, got \[") as error:
        NumberedActions(model_of("codes"), numbers)
    assert str(numbers) in str(error.value)


@pytest.mark.parametrize("action", [2, 3, 6])
def test_an_action_that_does_not_exist_is_not_read_as_a_masked_one(action):
    wrapped = NumberedActions(model_of("codes"), [5, 0])
    with pytest.raises(IndexError):
        wrapped.encode(torch.tensor([[[0, action, 1]]]))
    bank = wrapped.encode(torch.tensor([[[0, 1, 1]]]))
    with pytest.raises(IndexError):
        wrapped.predict(bank, torch.tensor([[[0, action, -1]]]))
    with pytest.raises(ValueError, match=f"action {action} is outside the actions 0 ... 1"):
        wrapped.imagine(bank, torch.tensor([[[0]]]), torch.tensor([[action]]))


def test_banks_that_are_too_long_and_states_outside_are_refused():
    wrapped = NumberedActions(model_of("codes"), [5, 0])
    with pytest.raises(ValueError, match="21 memories is longer than the 20"):
        wrapped.encode(torch.zeros((1, 21, 3), dtype=torch.long))
    with pytest.raises(ValueError, match="state 9 is outside"):
        wrapped.imagine(wrapped.encode(torch.tensor([[[0, 1, 1]]])), torch.tensor([[[9]]]), torch.tensor([[0]]))
