"""ESWM-LSTM and ESWM-Mamba: each query reads the bank, in order, and nothing else; Mamba is Mamba."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.world_model.recurrent import (
    LSTMBlock,
    MambaBlock,
    Recurrent,
    RecurrentConfig,
    Scan,
    advance,
    advance_gradient,
)

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


def rough_scan(step, taken, rate, write, read):
    """The same, number by number, with torch's own gradient."""
    h, y = torch.zeros(()), []
    for t in range(len(step)):
        h = (step[t, ..., None] * rate).exp() * h + taken[t, ..., None] * write[t, :, None]
        y.append((h * read[t, :, None]).sum(-1))
    return torch.stack(y)


@few
@given(n=st.integers(1, 6), s=st.integers(1, 3), seed=st.integers(0, 1000))
def test_scan_and_its_gradient(n, s, seed):
    torch.manual_seed(seed)
    shapes = [(n, s, 4), (n, s, 4), (4, 3), (n, s, 3), (n, s, 3)]
    step, taken, rate, write, read = (torch.randn(shape, dtype=torch.double) for shape in shapes)
    inputs = [v.requires_grad_() for v in (step.abs(), taken, -rate.abs(), write, read)]
    weight = torch.randn(n, s, 4, dtype=torch.double)
    mine, theirs = Scan.apply(advance, advance_gradient, *inputs), rough_scan(*inputs)
    torch.testing.assert_close(mine, theirs)
    gradient = torch.autograd.grad((mine * weight).sum(), inputs)
    expected = torch.autograd.grad((theirs * weight).sum(), inputs, materialize_grads=True)
    for a, b in zip(gradient, expected, strict=True):
        torch.testing.assert_close(a, b)


MAMBAPY = {"mixer.in_proj": "enter", "mixer.conv1d": "convolution", "mixer.x_proj": "select", "mixer.dt_proj": "step",
           "mixer.A_log": "decay_log", "mixer.D": "skip", "mixer.out_proj": "leave"}  # fmt: skip


def test_mamba_agrees_with_mambapy():
    mamba = pytest.importorskip("mambapy.mamba")
    torch.manual_seed(0)
    theirs = mamba.ResidualBlock(mamba.MambaConfig(d_model=24, n_layers=1))
    weights = {}
    for name, value in theirs.state_dict().items():
        for old, new in MAMBAPY.items():
            name = name.replace(old, new)
        weights[name] = value
    mine = MambaBlock(24)
    mine.load_state_dict(weights)
    x = torch.randn(11, 37, 24)
    torch.testing.assert_close(mine(x), theirs(x), rtol=1e-5, atol=1e-5)


def test_unknown_choices_are_named():
    for option in ({"cell": "gru"}, {"codec": "ternary"}):
        with pytest.raises(ValueError, match=str(*option.values())):
            RecurrentConfig(**option)


def test_compiling_one_block_of_mamba_leaves_others_as_they_are():
    one, other = MambaBlock(24), MambaBlock(24)
    one.compile(backend="eager")
    assert one.advance is not advance and (other.advance, other.advance_gradient) == (advance, advance_gradient)
    one.load_state_dict(other.state_dict())
    x = torch.randn(2, 5, 24)
    torch.testing.assert_close(one(x), other(x))


def test_an_lstm_begins_with_cells_that_remember():
    """Cells of one layer forget after 1 to 12 tokens: by forget gates alone, of an input of 0, evenly spread."""
    torch.manual_seed(0)
    block = LSTMBlock(600)
    forget = (block.bias_ih_l0 + block.bias_hh_l0)[600:1200].sigmoid().detach()
    lasts = 1 / (1 - forget) - 1  # expected tokens until one is forgotten
    assert lasts.min() >= 1 and lasts.max() <= 12
    assert lasts.mean().item() == pytest.approx(6.5, abs=0.5)
