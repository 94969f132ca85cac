"""Codecs: which row of which table a state becomes, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.world_model.codecs import IntegerCodec

SIZE = 5
anything = st.lists(st.integers(-1, SIZE - 1), min_size=1, max_size=6)


def numbered(codec: IntegerCodec) -> IntegerCodec:
    """Row r of the source table becomes (r, r, ...), of the end table (100 r, 100 r, ...)."""
    with torch.no_grad():
        for table, unit in ((codec.embed_source, 1.0), (codec.embed_end, 100.0)):
            table.weight.copy_(unit * torch.arange(len(table.weight))[:, None].expand_as(table.weight))
    return codec


@given(source=anything, data=st.data())
def test_embed_adds_one_row_of_each_table(source, data):
    """States find the row of their number, masked ones the row after the last state's."""
    end = data.draw(st.lists(st.integers(-1, SIZE - 1), min_size=len(source), max_size=len(source)))
    tokens = numbered(IntegerCodec(SIZE, dim=3)).embed(torch.tensor([source]), torch.tensor([end]))
    rows = [(s if s >= 0 else SIZE) + 100 * (e if e >= 0 else SIZE) for s, e in zip(source, end, strict=True)]
    assert tokens.tolist() == [[[row] * 3 for row in rows]]


@given(source=anything, data=st.data())
def test_without_embeddings_only_given_or_masked_is_known(source, data):
    end = data.draw(st.lists(st.integers(-1, SIZE - 1), min_size=len(source), max_size=len(source)))
    codec = numbered(IntegerCodec(SIZE, dim=3, embeddings=False))
    assert len(codec.embed_source.weight) == len(codec.embed_end.weight) == 2
    tokens = codec.embed(torch.tensor([source]), torch.tensor([end]))
    rows = [(s < 0) + 100 * (e < 0) for s, e in zip(source, end, strict=True)]
    assert tokens.tolist() == [[[row] * 3 for row in rows]]


def test_read_out_is_one_logit_for_each_state_and_one_for_i_dont_know():
    codec = IntegerCodec(SIZE, dim=3)
    x = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    source, end = codec.read_out(x)
    assert source.shape == end.shape == (2, 4, SIZE + 1)
    torch.testing.assert_close(source, x @ codec.source_head.weight.T + codec.source_head.bias)
    torch.testing.assert_close(end, x @ codec.end_head.weight.T + codec.end_head.bias)


def test_a_codec_without_heads_has_no_weights_for_them():
    names = {name.split(".")[0] for name, _ in IntegerCodec(SIZE, dim=3, heads=False).named_parameters()}
    assert names == {"embed_source", "embed_end"}


@given(states=st.lists(st.integers(-10, 2 * SIZE), max_size=8))
def test_check_names_the_first_state_outside_the_vocabulary(states):
    codec = IntegerCodec(SIZE, dim=1)
    outside = [state for state in states if not 0 <= state < SIZE]
    if not outside:
        codec.check(torch.tensor([states], dtype=torch.int64))
        return
    with pytest.raises(ValueError) as caught:
        codec.check(torch.tensor([states]))
    assert str(caught.value) == f"state {outside[0]} is outside the vocabulary 0 ... 4"
