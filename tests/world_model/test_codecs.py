"""Codecs: which row of which table a state becomes, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.world_model.codecs import BinaryCodec, EgocentricCodec, IntegerCodec, ViewCodec

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


def binary(seed=0, **options) -> BinaryCodec:
    torch.manual_seed(seed)
    return BinaryCodec(8, dim=6, **options)


@given(states=st.lists(st.integers(-1, 7), min_size=1, max_size=6))
def test_binary_embeds_each_bit_by_itself(states):
    codec = binary()
    tokens = codec.look_up(codec.embed_source, torch.tensor(states))
    for token, state in zip(tokens, states, strict=True):
        for bit in range(3):
            row = 3 * bit + (2 if state < 0 else state >> bit & 1)
            assert torch.equal(token[2 * bit : 2 * bit + 2], codec.embed_source.weight[row])
    both = codec.embed(torch.tensor(states), torch.tensor(states[::-1]))
    assert torch.equal(both, tokens + codec.look_up(codec.embed_end, torch.tensor(states[::-1])))


def test_binary_reads_out_the_product_of_its_bits():
    codec = binary()
    x = torch.randn(2, 4, 6)
    for head, found in zip((codec.source_head, codec.end_head), codec.read_out(x), strict=True):
        chances = head(x).sigmoid()
        for state in range(8):
            product = 1 - chances[..., 3]
            for bit in range(3):
                product = product * (chances[..., bit] if state >> bit & 1 else 1 - chances[..., bit])
            torch.testing.assert_close(found[..., state].exp(), product)
        torch.testing.assert_close(found[..., 8].exp(), chances[..., 3])
        torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 4))


def test_binary_has_only_the_weights_it_needs_and_refuses_what_is_not_bits():
    assert {name.split(".")[0] for name in binary(heads=False).state_dict()} == {"embed_source", "embed_end"}
    for n_states, dim in ((9, 8), (8, 7)):
        with pytest.raises(ValueError, match=f"{n_states} states|dim {dim}"):
            BinaryCodec(n_states, dim)
    with pytest.raises(ValueError, match="state 8 is outside"):
        binary().check(torch.tensor([8]))


def test_a_codec_of_views_that_embeds_none():
    """It says what a view is, and nothing else; the one that embeds them is of the same kind."""
    codec = ViewCodec()
    assert (codec.cells, codec.n_classes) == (25, 9) and not list(codec.parameters())
    codec.check(torch.arange(9))
    with pytest.raises(ValueError, match="cell 9 of a view is outside the classes 0 ... 8"):
        codec.check(torch.tensor([2, 9]))
    view = torch.zeros(1, 25, dtype=torch.int64)
    with pytest.raises(NotImplementedError, match="ViewCodec embeds no views"):
        codec.embed(view, view)
    with pytest.raises(NotImplementedError, match="ViewCodec has no heads"):
        codec.read_out(torch.zeros(1, 8))
    assert isinstance(EgocentricCodec(8, 2), ViewCodec)
