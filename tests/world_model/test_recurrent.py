"""ESWM-LSTM and ESWM-Mamba: each query reads the bank, in order, and nothing else; Mamba is Mamba-2."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.world_model import recurrent
from eswm_gym.world_model.recurrent import LSTMBlock, MambaBlock, Recurrent, RecurrentConfig, state_space

few = settings(max_examples=10)
CONFIGS = [
    RecurrentConfig(8, 6, 12, 2, 20, cell, codec) for cell in ("lstm", "mamba") for codec in ("integer", "binary")
]
every_model = pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.cell}-{config.codec}")
BANK = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 0, 0], [-1] * 3], [[5, 1, 6], [-1] * 3, [-1] * 3, [-1] * 3]])
QUERY = torch.tensor([[[0, -1, 2], [0, 1, -1], [-1, 1, 2]], [[5, -1, 6], [5, 1, -1], [-1, 1, 6]]])


def random_model(config) -> Recurrent:
    torch.manual_seed(0)
    return Recurrent(config).double().eval()


def assert_same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine, theirs)


@every_model
def test_padding_and_other_banks_and_queries_change_nothing(config):
    model = random_model(config)
    whole = model(BANK, QUERY)
    assert [head.shape for head in whole] == [(2, 3, 9), (2, 3, 7), (2, 3, 9)]
    for i, length in enumerate((3, 1)):
        for j in range(3):
            alone = model(BANK[i : i + 1, :length], QUERY[i : i + 1, j : j + 1])
            assert_same(alone, [head[i : i + 1, j : j + 1] for head in whole])


@every_model
def test_answers_depend_on_every_memory_and_on_the_query(config):
    model = random_model(config)
    whole = model(BANK, QUERY)
    assert torch.pdist(whole.end[0].softmax(-1)).min() > 1e-6
    for i in range(3):
        changed = BANK.clone()
        changed[0, i, 1] = 5
        assert not torch.allclose(model(changed, QUERY).end[0], whole.end[0])


@every_model
def test_activations_end_in_the_answer_and_an_empty_bank_has_one(config):
    model = random_model(config)
    bank = model.encode(BANK)
    depth = model.activations(bank, QUERY)
    assert depth.shape == (2, 2, 3, 12)
    assert_same(model.classify(model.norm(depth[-1])), model.predict(bank, QUERY))
    assert model(torch.full((1, 1, 3), -1), QUERY[:1]).end.isfinite().all()
    with pytest.raises(ValueError, match="21 memories"):
        model.encode(torch.full((1, 21, 3), -1))


def rough_state_space(step, rate, channel, write, read):
    """The same, token by token, with its states."""
    h, y = torch.zeros(()), []
    for t in range(step.shape[-1]):
        written = (step[..., t, None] * channel[:, :, t])[..., None] * write[:, None, None, t]  # (S, H, P, K)
        h = (step[..., t] * rate).exp()[..., None, None] * h + written
        y.append(h @ read[:, None, t, :, None])
    return torch.cat(y, -1).mT


@few
@given(n=st.integers(1, 6), s=st.integers(1, 3), seed=st.integers(0, 1000))
def test_state_space(n, s, seed):
    torch.manual_seed(seed)
    shapes = [(s, 2, n), (2,), (s, 2, n, 3), (s, n, 4), (s, n, 4)]
    step, rate, channel, write, read = (torch.randn(shape, dtype=torch.double) for shape in shapes)
    inputs = step.abs(), -rate.abs(), channel, write, read
    torch.testing.assert_close(state_space(*inputs), rough_state_space(*inputs))


def test_long_and_strong_decays_stay_numbers():
    step = torch.full((1, 1, 300), 50.0, requires_grad=True)
    y = state_space(
        step,
        torch.tensor([-16.0]),
        *(torch.ones(shape) for shape in ((1, 1, 300, 2), (1, 300, 1))),
        torch.ones(1, 300, 1),
    )
    torch.testing.assert_close(y, torch.full_like(y, 50.0))  # of the last token alone
    y.sum().backward()
    assert step.grad.isfinite().all()


def test_a_block_of_mamba_token_by_token():
    """Convolution by PyTorch, then states that decay and are written to: what Mamba-2 says of one token at a time."""
    torch.manual_seed(0)
    block = MambaBlock(8).double()
    torch.nn.init.normal_(block.skip)
    torch.nn.init.normal_(block.convolution_bias)
    x = torch.randn(3, 7, 8, dtype=torch.double)
    width, keys, heads = block.width, recurrent.STATE, recurrent.HEADS
    gate, mixed, step = (block.norm(x) @ block.enter.weight.T).split([width, width + 2 * keys, heads], -1)
    weight = block.convolution.T[:, None]  # (channels, 1, taps)
    mixed = F.conv1d(F.pad(mixed.mT, (3, 0)), weight, block.convolution_bias, groups=len(weight)).mT
    channel, write, read = F.silu(mixed).split([width, keys, keys], -1)
    step, rate = F.softplus(step + block.step_bias), -block.decay_log.exp()
    h, outputs = torch.zeros(3, heads, width // heads, keys, dtype=torch.double), []
    for t in range(7):
        now = channel[:, t].view(3, heads, -1)
        decay = (step[:, t] * rate).exp()[..., None, None]
        h = decay * h + (step[:, t, :, None] * now)[..., None] * write[:, None, None, t]
        outputs.append(((h * read[:, None, None, t]).sum(-1) + block.skip[:, None] * now).flatten(1))
    y = block.gate_norm(torch.stack(outputs, 1) * F.silu(gate)) @ block.leave.weight.T
    torch.testing.assert_close(block(x), x + y, rtol=1e-6, atol=1e-6)


def test_unknown_choices_are_named():
    for option in ({"cell": "gru"}, {"codec": "ternary"}):
        with pytest.raises(ValueError, match=str(*option.values())):
            RecurrentConfig(**option)
    with pytest.raises(ValueError, match="dim of Mamba must be a multiple of 4, got 10"):
        RecurrentConfig(dim=10, cell="mamba")


def test_an_lstm_begins_with_cells_that_remember():
    """Cells of one layer forget after 1 to 12 tokens: by forget gates alone, of an input of 0, evenly spread."""
    torch.manual_seed(0)
    block = LSTMBlock(600)
    forget = (block.bias_ih_l0 + block.bias_hh_l0)[600:1200].sigmoid().detach()
    lasts = 1 / (1 - forget) - 1  # expected tokens until one is forgotten
    assert lasts.min() >= 1 and lasts.max() <= 12
    assert lasts.mean().item() == pytest.approx(6.5, abs=0.5)
