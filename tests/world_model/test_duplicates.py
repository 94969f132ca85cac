"""Problems whose queries start where a walk ends, and transformers that read that walk in order."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import PAPER_MIX, LatticeSource, RoomConfig
from eswm_gym.rooms.lattice.source import NO_CONTEXT
from eswm_gym.world_model import ACTION, END, Transformer, TransformerConfig
from eswm_gym.world_model.evaluate import evaluate
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model, load_model, save_model
from eswm_gym.world_model.stream import to_tensors

ROOMS = RoomConfig.random_wall(2, duplicates=(0, 3))
OPTIONS = {"n_states": 9, "dim": 12, "layers": 2, "heads": 2, "relational": False, "readout": "classes"}


def source(**options) -> LatticeSource:
    return LatticeSource(ROOMS, **{"mix": PAPER_MIX, "components": (ACTION, END), "context": 5, **options})


@given(seed=st.integers(0, 2**32 - 1), bank=st.sampled_from(["minimal", "dense", "walk", "trajectory"]))
def test_queries_start_where_the_context_ends(seed, bank):
    problems = source(bank=bank).draw(np.random.default_rng(seed), 6, 12)
    assert problems.memories.shape[1] == source(bank=bank, context=0).capacity + 5
    assert set(problems.masked.ravel().tolist()) <= {ACTION, END}
    for memories, query in zip(problems.memories[:, -5:].tolist(), problems.query.tolist(), strict=True):
        if memories[-1][0] < 0:
            assert memories == [[-1] * 3] * 5
            continue
        assert all(before[2] == after[0] for before, after in zip(memories, memories[1:], strict=False))
        assert {start for start, _, _ in query} == {memories[-1][2]}


def test_the_bank_is_as_without_context_and_the_walk_behind_it():
    plain = source(context=0).draw_banks(np.random.default_rng(3), 20)
    walked = source().draw_banks(np.random.default_rng(3), 20)
    assert walked.source.shape == (20, 18 + 5)
    length = plain.source.shape[1]
    np.testing.assert_array_equal(walked.transitions()[:, :length], plain.transitions())
    assert (walked.source[:, length:18] == -1).all()


def test_a_share_of_the_training_banks_lacks_its_context():
    problems = source().draw(np.random.default_rng(0), 3000, 2)
    share = (problems.memories[:, -1, 0] < 0).mean()
    assert share == pytest.approx(NO_CONTEXT, abs=5 * (NO_CONTEXT / 3000) ** 0.5)


def test_held_out_figures_of_a_model_with_context():
    """Whatever it answers, each room is asked 48 times, and never for the source."""
    model = Transformer(TransformerConfig(**{**OPTIONS, "n_states": 19}, context=5))
    found = evaluate(model, source(), n_rooms=10)
    counts = {key.removeprefix("n/"): n for key, n in found.items() if key.startswith("n/")}
    assert 400 < sum(counts.values()) <= 480  # some start where only moves off the lattice are left to ask about
    assert not any("source" in key for key in counts)


@pytest.mark.parametrize("context", [-1, -5])
def test_no_negative_context(context):
    with pytest.raises(ValueError, match=f"context must not be negative, got {context}"):
        source(context=context)
    with pytest.raises(ValueError, match=f"context must lie between 0 and max_memories, .* got {context}"):
        TransformerConfig(context=context)


def test_impossible_contexts():
    with pytest.raises(ValueError, match="got 75"):
        TransformerConfig(context=75)
    with pytest.raises(ValueError, match="with cross attention"):
        TransformerConfig(context=3, query_attention="joint")


# Three rows of a bank, then a walk that leads from 4 over 5 and 6 to 7.
BANK = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 0, 5], [4, 0, 5], [5, 1, 6], [6, 2, 7]]])
QUERY = torch.tensor([[[7, -1, 2], [7, 1, -1]]])


def scrambled(context: int) -> Transformer:
    """A model with random weights everywhere, as it is born it does not look at its bank."""
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(**OPTIONS, context=context)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


def answers(model: Transformer, rows: list[int]) -> torch.Tensor:
    return torch.cat([model(BANK[:, rows], QUERY)[i] for i in (ACTION, END)], 2)


def test_the_bank_is_a_set_and_the_context_is_in_order():
    model = scrambled(3)
    told = answers(model, [0, 1, 2, 3, 4, 5])
    torch.testing.assert_close(answers(model, [2, 0, 1, 3, 4, 5]), told)
    for rows in ([0, 1, 2, 5, 4, 3], [0, 1, 3, 2, 5, 4], [5, 4, 3, 2, 1, 0]):
        assert (answers(model, rows) - told).abs().max() > 1e-3


def test_without_places_a_context_is_so_many_memories_more():
    """So it is at first: the places begin at zero."""
    assert not Transformer(TransformerConfig(**OPTIONS, context=3)).place.any()
    model, plain = scrambled(3), scrambled(0)
    with torch.no_grad():
        model.place.zero_()
    weights = model.state_dict()
    weights.pop("place")
    plain.load_state_dict(weights)  # a model without context has none
    torch.testing.assert_close(answers(model, [*range(6)]), answers(plain, [*range(6)]))


def test_a_context_is_not_shorter_than_promised():
    with pytest.raises(ValueError, match="the last 3 rows of a bank are the context, but there are 2 rows"):
        scrambled(3)(BANK[:, :2], QUERY)


def test_saved_and_loaded(tmp_path, describe):
    model = scrambled(3)
    save_model(model, tmp_path / "walked")
    torch.testing.assert_close(answers(load_model(tmp_path / "walked"), [*range(6)]), answers(model, [*range(6)]))
    plain = scrambled(0)  # as models were saved before there were contexts
    save_model(plain, tmp_path / "plain")
    config = {key: value for key, value in plain.config.to_dict().items() if key != "context"}
    describe(tmp_path / "plain.safetensors", config=config)
    torch.testing.assert_close(answers(load_model(tmp_path / "plain"), [*range(6)]), answers(plain, [*range(6)]))


@pytest.mark.parametrize("name", ["rw-t-duplicates", "oa-t-duplicates"])
def test_presets(name):
    """Model and problems fit together, and no state of an Open Arena for training is one for the test."""
    preset = PRESETS[name]
    model = build_model(preset.model)
    assert 0.9e6 < sum(p.numel() for p in model.parameters()) < 1.1e6
    sources = [*preset.sources, *preset.settings.values()]
    assert {s.context for s in sources} == {preset.model.context} and {s.components for s in sources} == {(ACTION, END)}
    for where in sources:
        problems = to_tensors(where.draw(np.random.default_rng(0), 3, 2))
        assert model(problems.memories, problems.query).loss(problems).isfinite()
    for name, where in preset.settings.items():
        assert where.rooms.duplicates == ((1, 3) if name.endswith("-duplicates") else (0, 0))
        if "unseen" in name:
            assert not set(where.rooms.states) & set(preset.sources[0].rooms.states)


def test_a_model_with_context_starts_from_one_without():
    """Until it is trained it answers as the other, whatever the order of the walk."""
    other, model = (Transformer(TransformerConfig(**OPTIONS, context=context)).eval() for context in (0, 4))
    torch.nn.init.ones_(model.place)
    assert model.starts_from(other) and not other.starts_from(model)
    memories, query = torch.randint(6, (2, 7, 3)), torch.tensor([[[0, 1, -1]], [[3, -1, 2]]])
    turned = torch.cat([memories[:, :3], memories[:, 3:].flip(1)], 1)
    for mine, again, theirs in zip(model(memories, query), model(turned, query), other(memories, query), strict=True):
        torch.testing.assert_close(mine, theirs)
        torch.testing.assert_close(again, theirs)
    joint = Transformer(TransformerConfig(**OPTIONS, query_attention="joint"))
    assert not model.starts_from(joint)
    agents = build_model(PRESETS["random-wall"].model)
    assert build_model(PRESETS["looped-duplicates"].model).starts_from(agents)
