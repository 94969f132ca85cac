"""What a user may take for granted of the model that places views by how they overlap."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.rooms.grid import LOOK, GridBatch, GridConfig, GridSource, cover_banks, draw_queries, generate_grids
from eswm_gym.rooms.transitions import to_problems
from eswm_gym.world_model import (
    ACTION,
    END,
    CheckpointError,
    OverlapConfig,
    OverlapModel,
    ViewModel,
    load_model,
    save_model,
)
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.world_model.pretrained import build_model, read_info, write_info
from eswm_gym.world_model.stream import to_tensors

CONFIG = OverlapConfig(dim=32, layers=2)


@cache
def scrambled(config: OverlapConfig = CONFIG) -> OverlapModel:
    """A model that finds poses, with random weights everywhere else."""
    model = OverlapModel(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.1, generator=generator)
    model.localization.load_state_dict(OverlapOnly(config.size).localization.state_dict())
    return model.requires_grad_(False)


@cache
def problems(n: int = 3, queries: int = 12):
    rng = np.random.default_rng(1)
    banks = cover_banks(rng, GridBatch.of(generate_grids(rng, n, GridConfig())), np.linspace(0.5, 1, n))
    return to_tensors(to_problems(banks, draw_queries(rng, banks, queries, looks=0.2), 24))


def close(a, b, **kwargs):
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, **{"atol": 1e-3, "rtol": 1e-3} | kwargs)


def test_shapes():
    memories, query, *_ = problems()
    model = scrambled()
    prediction = model(memories, query)
    assert prediction.source.shape == prediction.end.shape == (3, 12, 25, 9)
    assert prediction.action.shape == (3, 12, 4)
    assert prediction.unknown.shape == (3, 12, 2)
    assert all(part.isfinite().all() for part in prediction)
    bank = model.encode(memories)
    p, unknown, _ = model.imagine(bank, memories[:, :3, :25].clamp(min=0), memories[:, :3, 25].clamp(min=0))
    assert p.shape == (3, 3, 25, 9) and unknown.shape == (3, 3)
    torch.testing.assert_close(p.sum(3), torch.ones(3, 3, 25))
    assert ((unknown >= 0) & (unknown <= 1)).all()


def test_activations_begin_with_where_the_given_view_is():
    """The same pose gives the same code, whatever is asked of it; the rest are the tokens after each block."""
    model, memories = scrambled(), problems().memories
    bank = model.encode(memories)
    views = memories[:, :2, :25]  # two views that every bank holds
    turns = [torch.cat([views, torch.full((3, 2, 1), a), torch.full((3, 2, 25), -1)], 2) for a in (0, 1)]
    left, right = (model.activations(bank, turn) for turn in turns)
    assert left.shape == (1 + CONFIG.layers, 3, 2, CONFIG.dim)
    torch.testing.assert_close(left[0], right[0])
    for after in (1, 2):
        assert (left[after] - right[after]).abs().max() > 1e-3
    assert not left[0, ..., 16:].any()
    at = left[0, ..., :16]
    torch.testing.assert_close(at[..., 12:].sum(2), torch.ones(3, 2), atol=0.05, rtol=0)  # one of four headings
    assert ((at[:, 0] - at[:, 1]).abs().amax(1) > 0.1).all()  # two poses


def test_answers_depend_on_all_that_they_should():
    memories, query, *_ = problems()
    model = scrambled()
    answer = model(memories, query)
    for other in (model(memories.roll(1, 0), query), model(memories, query.roll(1, 1))):
        assert (answer.end - other.end).abs().max() > 1e-2


def test_a_bank_is_a_set():
    """The frame may begin elsewhere, and other poses may lie at its edge, which is worth a little."""
    memories, query, *_ = problems()
    order = torch.from_numpy(np.random.default_rng(0).permutation(memories.shape[1]))
    model = scrambled()
    held = memories[:, : int((memories[:, :, 0] >= 0).any(0).sum())]
    for other in (held.flip(1), memories[:, order]):
        close(model(memories, query), model(other, query), atol=0.03)


def test_padding_changes_nothing():
    memories, query, *_ = problems()
    model = scrambled()
    n = int((memories[:, :, 0] >= 0).any(0).sum())
    more = torch.full((3, 7, 51), -1)
    close(model(memories, query), model(memories[:, :n], query))
    close(model(memories, query), model(torch.cat([memories, more], 1), query))
    close(model(memories, query), model(torch.cat([more, memories], 1), query))


def test_batched_as_one_by_one():
    memories, query, *_ = problems()
    model = scrambled()
    together = model(memories, query)
    for i in range(3):
        close(model(memories[i : i + 1], query[i : i + 1]), [part[i : i + 1] for part in together])
    for q in range(12):
        close(model(memories, query[:, q : q + 1]), [part[:, q : q + 1] for part in together])
    close(model.predict(model.encode(memories), query), together)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_an_empty_bank(n):
    _, query, *_ = problems()
    answer = scrambled()(torch.full((3, n, 51), -1), query)
    assert all(part.isfinite().all() for part in answer)
    close(answer, scrambled()(torch.full((3, 2, 51), -1), query))


def test_too_long_a_bank():
    model = OverlapModel(OverlapConfig(dim=32, layers=1, max_memories=6))
    longest = torch.full((1, 6, 51), -1)
    model.encode(longest)
    with pytest.raises(ValueError, match="a bank of 7 memories is longer than the 6"):
        model.encode(torch.cat([longest, longest[:, :1]], 1))


def test_imagining_is_asking_for_the_end_and_looking_for_the_view_itself():
    memories, query, _, masked, _ = problems()
    model = scrambled()
    bank = model.encode(memories)
    answer = model.predict(bank, query)
    looks = query[..., 25] == LOOK
    for asked, ask in ((masked == END) & ~looks, False), (looks, True):
        row, column = (t[0] for t in torch.nonzero(asked, as_tuple=True))
        source, action = query[row, column, :25], query[row, column, 25]
        one = model.encode(memories[row : row + 1])
        found = (
            model.look(one, source[None, None]) if ask else model.imagine(one, source[None, None], action[None, None])
        )
        close([found.cells[0, 0]], [answer.end[row, column].softmax(-1)])
        close([found.unknown[0, 0]], [answer.unknown[row, column, 1].sigmoid()])


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


def test_as_born_it_knows_nothing_of_rooms():
    torch.manual_seed(0)
    found = evaluate(OverlapModel(OverlapConfig()), GridSource(GridConfig()), n_rooms=8, seed=5, chunk=8)
    for kind in ("unseen", "seen"):
        for part in ("source", "end"):
            assert found[f"accuracy/{kind}/{part}"] < 0.02 and found[f"cells/{kind}/{part}"] < 0.4
        assert found[f"accuracy/{kind}/action"] < 0.6  # a third by chance


def test_questions_about_actions_alone_teach_it_how_views_overlap():
    torch.manual_seed(0)
    rng = np.random.default_rng(2)
    banks = cover_banks(rng, GridBatch.of(generate_grids(rng, 3, GridConfig())))
    queries = draw_queries(rng, banks, 12)
    of_actions = replace(queries, masked=np.full_like(queries.masked, ACTION), kind=np.zeros_like(queries.kind))
    asked, model = to_tensors(to_problems(banks, of_actions, 24)), OverlapModel(CONFIG)
    model(asked.memories, asked.query).loss(asked).backward()
    for weight in (model.localization.evidence, model.localization.agreement):
        assert weight.grad is not None and weight.grad.abs().max() > 0


def test_every_weight_learns():
    """Where some matrices are no longer the zeros that they are born as."""
    torch.manual_seed(0)
    model, asked = OverlapModel(CONFIG), problems()
    model.localization.load_state_dict(scrambled().localization.state_dict())
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(std=0.02)
    model(asked.memories, asked.query).loss(asked).backward()
    assert not [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]


def test_what_the_end_of_a_transition_contradicts():
    """A cell that is otherwise than a memory shows it, where that memory shows it and nowhere else."""
    memories = problems().memories
    held = (memories[:, :, 0] >= 0).sum(1)
    model = scrambled()
    for i in range(3):
        bank = memories[i : i + 1, : int(held[i])]
        seen = bank[:, 0].clone()
        assert not model.contradicted(bank, seen).any()
        cell = int(torch.nonzero(seen[0, 26:] > 1)[0, 0])
        seen[0, 26 + cell] = 2 + (seen[0, 26 + cell] - 1) % 7
        found = model.contradicted(bank, seen)
        assert found.shape == (1, held[i], 2, 25) and found.dtype == torch.bool
        assert torch.nonzero(found[0, 0, 1]).flatten().tolist() == [cell]
        assert found[0].flatten(1).sum(1).max() <= 2  # once in each view at most


# Configurations and files


@pytest.mark.parametrize("arguments", [{"n_states": 64}, {"n_actions": 6}])
def test_config_errors(arguments):
    with pytest.raises(ValueError, match="views have 9 classes and 3 actions"):
        OverlapConfig(**arguments)


def test_save_and_load(tmp_path):
    memories, query, *_ = problems()
    model = scrambled()
    save_model(model, tmp_path / "some.name", note="a test")
    loaded = load_model(tmp_path / "some.name.json")
    assert type(loaded) is OverlapModel and loaded.config == CONFIG and not loaded.training
    assert isinstance(loaded, ViewModel) and loaded.latent_radius is None
    assert not any(p.requires_grad for p in loaded.parameters())
    close(model(memories, query), loaded(memories, query), atol=0, rtol=0)
    assert read_info(tmp_path / "some.name.json")["architecture"] == "overlap"
    assert type(build_model(CONFIG)) is OverlapModel


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


def test_weights_fit_rooms_of_any_size():
    """What it learned of how views overlap holds in larger rooms, too."""
    larger = OverlapModel(OverlapConfig(dim=32, layers=2, size=12)).eval()
    larger.load_state_dict(scrambled().state_dict())
    memories, query, *_ = problems()
    with torch.no_grad():
        close(scrambled()(memories, query), larger(memories, query), atol=0.03)
