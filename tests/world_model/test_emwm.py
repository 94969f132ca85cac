"""EMWM: the end states of the K memories whose keys are nearest, and nothing else."""

from __future__ import annotations

import pytest
import torch

from eswm_gym.world_model.emwm import EMWM, EMWMConfig

BANK = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 2, 4], [-1, -1, -1]], [[5, 1, 6], [-1] * 3, [-1] * 3, [-1] * 3]])
QUERY = torch.tensor([[[0, 1, -1], [4, 1, -1]], [[5, 1, -1], [6, 2, -1]]])
every_k = pytest.mark.parametrize("nearest", [1, 2, 5])


def random_model(nearest: int, codec="integer") -> EMWM:
    torch.manual_seed(0)
    return EMWM(EMWMConfig(8, 6, 12, 1, 20, nearest, codec)).eval()


@every_k
@pytest.mark.parametrize("codec", ["integer", "binary"])
def test_the_answer_is_read_out_of_the_nearest_memories(nearest, codec):
    """Key by key, with a plain GRU fed bank and query in one sequence."""
    model = random_model(nearest, codec)
    found = model(BANK, QUERY)
    assert not found.source.any() and not found.action.any()
    for i, length in enumerate((3, 1)):
        for j in range(2):
            tokens = model.embed(torch.cat([BANK[i : i + 1, :length], QUERY[i : i + 1, j : j + 1]], 1))
            *keys, asked = model.blocks[0](tokens)[0][0]
            distances = torch.stack([((key - asked) ** 2).sum() / 12**0.5 for key in keys])
            chosen = distances.argsort()[:nearest]
            weights = (-distances[chosen]).softmax(0)
            ends = model.codec.look_up(model.codec.embed_end, BANK[i, chosen, 2])
            expected = model.codec.to_logits(model.end_head(weights @ ends))
            torch.testing.assert_close(found.end[i, j], expected)


def test_one_nearest_gives_its_end_state_whatever_the_distance():
    model = random_model(1)
    with torch.no_grad():
        model.codec.embed_end.weight.copy_(torch.eye(9, 12))
        model.end_head.weight[:8] = 100 * torch.eye(8, 12)
    ends = model(BANK, QUERY).end.argmax(-1)
    assert set(ends[0].tolist()) <= {2, 4} and ends[1].tolist() == [6, 6]


def test_activations_and_an_empty_bank():
    model = random_model(5)
    assert model.activations(model.encode(BANK), QUERY).shape == (1, 2, 2, 12)
    assert model(torch.full((1, 1, 3), -1), QUERY[:1]).end.isfinite().all()


@pytest.mark.parametrize(("options", "message"), [({"nearest": 0}, "nearest"), ({"codec": "ternary"}, "ternary")])
def test_wrong_shapes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EMWMConfig(**options)
