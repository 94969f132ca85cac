"""TEM-T: positions follow actions alone, and a query starts where its source was last seen."""

from __future__ import annotations

import pytest
import torch

from eswm_gym.world_model.blocks import Reads
from eswm_gym.world_model.tem_t import TEMT, TEMTConfig

every_model = pytest.mark.parametrize("codec", ["integer", "binary"])
WALK = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 2, 4], [4, 0, 0], [-1, -1, -1]]])
QUERY = torch.tensor([[[0, 5, -1], [2, 1, -1], [4, 1, -1], [7, 1, -1]]])


def random_model(codec: str) -> TEMT:
    torch.manual_seed(0)
    model = TEMT(TEMTConfig(8, 6, 24, 2, 20, 2, codec)).double().eval()
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            parameter.normal_(std=0.5)
    return model


def test_positions_are_moved_by_actions_alone():
    model = random_model("integer")
    path = model.positions(WALK[..., 1].clamp(min=0))
    position = model.start
    for t, action in enumerate(WALK[0, :, 1].clamp(min=0).tolist()):
        torch.testing.assert_close(path[0, t], position)
        position = (position @ model.moves[action]).sigmoid()
    torch.testing.assert_close(path[0, -1], position)


def test_moves_begin_as_rotations_around_the_middle():
    moves = TEMT(TEMTConfig(8, dim=24)).moves
    middle = torch.full((12,), 0.5)
    assert ((middle @ moves).sigmoid() - 0.5).abs().max() < 1e-5
    step = 0.01 * torch.randn(12)
    for move in moves:
        moved = ((middle + step) @ move).sigmoid() - 0.5
        torch.testing.assert_close(moved.norm(), (step - step.mean()).norm(), rtol=1e-2, atol=1e-5)


@every_model
def test_a_query_is_the_step_after_the_last_visit(codec):
    """Asked at the end of a trajectory, as in the paper, it is the same as one more action."""
    model = random_model(codec)
    asked = model(WALK, QUERY).end
    assert asked.shape == (1, 4, 9)
    bank = model.encode(WALK)
    _, _, observation, position = bank.cache
    assert observation.tolist() == [[0, 2, 4, 4, 0, -1]]
    for q, last in enumerate((4, 1, 3)):
        x = model.embed(torch.tensor([[-1]]), model.move(position[:, last : last + 1], QUERY[:, q : q + 1, 1]))
        for block, kv in zip(model.blocks, bank.cache[0], strict=True):
            x = block(x, kv, bank.cache[1], Reads(bank.cache[1]))
        expected = model.codec.to_logits(model.end_head(model.norm(x)))
        torch.testing.assert_close(asked[:, q : q + 1], expected)


@every_model
def test_padding_and_other_queries_change_nothing_and_an_empty_bank_has_an_answer(codec):
    model = random_model(codec)
    whole, alone = model(WALK, QUERY), model(WALK[:, :4], QUERY[:, 2:3])
    torch.testing.assert_close(alone.end, whole.end[:, 2:3])
    assert not whole.source.any() and not whole.action.any()
    assert (whole.source.shape, whole.action.shape) == ((1, 4, 9), (1, 4, 7))
    empty = model(torch.full((1, 1, 3), -1), QUERY).end
    assert empty.isfinite().all()


@every_model
def test_answers_depend_on_observations_and_on_order(codec):
    model = random_model(codec)
    whole = model(WALK, QUERY).end
    other = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 2, 4], [4, 0, 5], [-1, -1, -1]]])
    assert not torch.allclose(model(other, QUERY).end, whole)
    assert not torch.allclose(model(WALK[:, [1, 0, 2, 3, 4]], QUERY).end, whole)


def test_activations_end_in_the_answer():
    model = random_model("integer")
    bank = model.encode(WALK)
    depth = model.activations(bank, QUERY)
    assert depth.shape == (2, 1, 4, 24)
    torch.testing.assert_close(model.end_head(model.norm(depth[-1])), model.predict(bank, QUERY).end)


@pytest.mark.parametrize(("options", "message"), [({"dim": 9}, "dim 9"), ({"codec": "ternary"}, "ternary")])
def test_wrong_shapes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TEMTConfig(**options)
