"""What a user may take for granted of the transformer over views."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from eswm_gym.rooms.grid import GridBatch, GridConfig, cover_banks, draw_queries, generate_grids
from eswm_gym.rooms.transitions import to_problems
from eswm_gym.world_model import (
    END,
    CheckpointError,
    ViewTransformer,
    ViewTransformerConfig,
    load_model,
    save_model,
)
from eswm_gym.world_model.codecs import EgocentricCodec
from eswm_gym.world_model.pretrained import build_model, read_info, write_info
from eswm_gym.world_model.stream import to_tensors

CONFIG = ViewTransformerConfig(dim=32, layers=2, heads=2, cell_dim=4)


@cache
def scrambled(config: ViewTransformerConfig = CONFIG) -> ViewTransformer:
    """A model with random weights everywhere: as it is born, it has zeros in its output matrices."""
    model = ViewTransformer(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1, generator=generator)
    return model.requires_grad_(False)


@cache
def problems(n: int = 4, queries: int = 12):
    rng = np.random.default_rng(1)
    banks = cover_banks(rng, GridBatch.of(generate_grids(rng, n, GridConfig())), np.linspace(0.5, 1, n))
    return to_tensors(to_problems(banks, draw_queries(rng, banks, queries), 24))


def close(a, b, **kwargs):
    for x, y in zip(a[:4], b[:4], strict=True):  # of a prediction all but what is new, which it does not count
        torch.testing.assert_close(x, y, **{"atol": 1e-4, "rtol": 1e-4} | kwargs)


def test_shapes():
    memories, query, *_ = problems()
    model = scrambled()
    prediction = model(memories, query)
    assert prediction.source.shape == prediction.end.shape == (4, 12, 25, 9)
    assert prediction.action.shape == (4, 12, 4)
    assert prediction.unknown.shape == (4, 12, 2)
    assert prediction.new is None and all(part.isfinite().all() for part in prediction[:4])
    bank = model.encode(memories)
    assert model.activations(bank, query).shape == (2, 4, 12, 32)
    p, unknown, _ = model.imagine(bank, memories[:, :3, :25].clamp(min=0), memories[:, :3, 25].clamp(min=0))
    assert p.shape == (4, 3, 25, 9) and unknown.shape == (4, 3)
    torch.testing.assert_close(p.sum(3), torch.ones(4, 3, 25))
    assert ((unknown >= 0) & (unknown <= 1)).all()


def test_answers_depend_on_all_that_they_should():
    memories, query, *_ = problems()
    model = scrambled()
    answer = model(memories, query)
    for other in (model(memories.roll(1, 0), query), model(memories, query.roll(1, 1))):
        assert (answer.end - other.end).abs().max() > 1e-2


def test_a_bank_is_a_set():
    memories, query, *_ = problems()
    order = torch.from_numpy(np.random.default_rng(0).permutation(memories.shape[1]))
    model = scrambled()
    close(model(memories, query), model(memories[:, order], query))


def test_padding_changes_nothing():
    memories, query, *_ = problems()
    model = scrambled()
    n = int((memories[:, :, 0] >= 0).any(0).sum())
    more = torch.cat([torch.full((4, 7, 51), -1), memories], 1)
    close(model(memories, query), model(memories[:, :n], query))
    close(model(memories, query), model(more, query))


def test_batched_as_one_by_one():
    memories, query, *_ = problems()
    model = scrambled()
    together = model(memories, query)
    for i in range(4):
        close(model(memories[i : i + 1], query[i : i + 1]), [part[i : i + 1] for part in together[:4]])
    for q in (0, 7):
        close(model(memories, query[:, q : q + 1]), [part[:, q : q + 1] for part in together[:4]])
    bank = model.encode(memories)
    close(model.predict(bank, query), together)


def test_an_empty_bank():
    _, query, *_ = problems()
    model = scrambled()
    answers = [model(torch.full((4, n, 51), -1), query) for n in (1, 5)]
    assert all(part.isfinite().all() for part in answers[0][:4])
    close(*answers)


def test_too_long_a_bank():
    model = scrambled()
    longest = torch.full((1, CONFIG.max_memories, 51), -1)
    model.encode(longest)
    with pytest.raises(ValueError, match="a bank of 81 memories is longer than the 80"):
        model.encode(torch.cat([longest, longest[:, :1]], 1))


def test_imagining_is_asking_for_the_end():
    memories, query, _, masked, _ = problems()
    model = scrambled()
    bank = model.encode(memories)
    row, column = (t[0] for t in torch.nonzero(masked == END, as_tuple=True))
    asked = query[:, column : column + 1]
    source, action = asked[row, :, :25], asked[row, :, 25]
    one = model.encode(memories[row : row + 1])
    p, unknown, _ = model.imagine(one, source[None], action[None])
    answer = model.predict(bank, query)
    torch.testing.assert_close(p[0, 0], answer.end[row, column].softmax(-1), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(unknown[0, 0], answer.unknown[row, column, 1].sigmoid(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("cell", "action", "message"),
    [
        (9, 0, "cell 9 of a view"),
        (-1, 0, "cell -1 of a view"),
        (2, 3, "action 3 is outside"),
        (2, -1, "action -1 is outside"),
    ],
)
def test_what_is_no_view_or_action_is_refused(cell, action, message):
    model = scrambled()
    bank = model.encode(problems().memories[:1])
    view = torch.full((1, 1, 25), 2)
    view[0, 0, 7] = cell
    with pytest.raises(ValueError, match=message):
        model.imagine(bank, view, torch.tensor([[action]]))


def test_it_cannot_tell_what_is_contradicted():
    memories = problems().memories
    found = scrambled().contradicted(memories, (memories[:, 0] + 1) % 9)
    assert found.shape == (4, 24, 2, 25) and found.dtype == torch.bool and not found.any()


def test_a_step_was_blocked_where_the_view_stays_the_same():
    view = torch.arange(25) % 9
    after = torch.stack([view, view.roll(1)])
    assert scrambled().is_blocked(view.expand(2, 25), after).tolist() == [True, False]


def test_to_look_is_a_question_of_its_own():
    """What one sees where a view was seen: neither the end of a move, nor the view as it was given."""
    memories = problems().memories
    bank = scrambled().encode(memories)
    views = memories[:, :2, :25]
    p, unknown, _ = scrambled().look(bank, views)
    assert p.shape == (4, 2, 25, 9) and unknown.shape == (4, 2)
    torch.testing.assert_close(p.sum(3), torch.ones(4, 2, 25))
    for action in range(3):
        moved = scrambled().imagine(bank, views, torch.full((4, 2), action))
        assert (moved.cells - p).abs().max() > 1e-3


def test_every_weight_learns():
    """Where some matrices are no longer the zeros that they are born as."""
    torch.manual_seed(0)
    model = ViewTransformer(CONFIG)
    asked = problems()
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(std=0.02)
    model(asked.memories, asked.query).loss(asked).backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


# Configurations and files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_states": 64}, "views have 9 classes and 3 actions"),
        ({"n_actions": 6}, "views have 9 classes and 3 actions"),
        ({"dim": 30, "heads": 4}, "dim 30 is not a multiple of heads 4"),
    ],
)
def test_config_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        ViewTransformerConfig(**arguments)


def test_save_and_load(tmp_path):
    memories, query, *_ = problems()
    model = scrambled()
    save_model(model, tmp_path / "some.name", note="a test")
    loaded = load_model(tmp_path / "some.name.json")
    assert type(loaded) is ViewTransformer and loaded.config == CONFIG and not loaded.training
    assert loaded.latent_radius is None
    assert not any(p.requires_grad for p in loaded.parameters())
    close(model(memories, query), loaded(memories, query), atol=0, rtol=0)
    assert type(build_model(CONFIG)) is ViewTransformer


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    save_model(scrambled(), tmp_path / "model")
    description = tmp_path / "model.json"
    info = read_info(description)
    write_info(description, info | {"config": info["config"] | {"layers": 3}})
    with pytest.raises(CheckpointError, match="does not fit its JSON"):
        load_model(description)
    write_info(description, info | {"config": info["config"] | {"heads": 3}})
    with pytest.raises(CheckpointError, match="does not describe a model"):
        load_model(description)


# Codec


def test_codec_check_names_the_cell():
    codec = EgocentricCodec(8, 4)
    codec.check(torch.arange(9))
    for cell in (9, 100, -1):
        with pytest.raises(ValueError, match=f"cell {cell} of a view is outside the classes 0 ... 8"):
            codec.check(torch.tensor([[0, 8], [cell, 3]]))


def test_codec_shapes_and_masks():
    codec = EgocentricCodec(8, 4)
    view = torch.randint(9, (2, 3, 25))
    masked = torch.full_like(view, -1)
    x = codec.embed(view, masked)
    assert x.shape == (2, 3, 8)
    assert not torch.allclose(x, codec.embed(masked, view))
    assert not torch.allclose(x, codec.embed(view, torch.zeros_like(view)))
    source, end = codec.read_out(x)
    assert source.shape == end.shape == (2, 3, 25, 9)
