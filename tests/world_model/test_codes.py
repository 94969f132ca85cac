"""Actions that are codes: what one does has to be found out from the bank; and starting from a model without them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eswm_gym.rooms import LatticeSource, RegionConfig, RoomConfig
from eswm_gym.rooms.transitions import Problems
from eswm_gym.world_model import ACTION, END, SOURCE, Prediction, Transformer, TransformerConfig, load_pretrained
from eswm_gym.world_model.blocks import relations
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model

N_STATES, N_NAMED, CODES = 9, 3, 4
N_ACTIONS = N_NAMED + CODES
PLAIN = TransformerConfig(N_STATES, N_ACTIONS, dim=16, layers=2, loops=2, max_memories=20, state_embeddings=False)
CONFIGS = [
    replace(PLAIN, codes=CODES),
    replace(PLAIN, codes=CODES, query_attention="joint"),
]
every_config = pytest.mark.parametrize("config", CONFIGS, ids=("cross", "joint"))
few = settings(max_examples=15)


@cache
def scrambled(config: TransformerConfig) -> Transformer:
    """A model with random weights everywhere, in double precision: as it is born, it does not look at its bank."""
    model = Transformer(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5, generator=generator)
    return model


def assert_same(one: Prediction, other: Prediction) -> None:
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@st.composite
def problems(draw, max_action: int = N_ACTIONS - 1) -> tuple[Tensor, Tensor]:
    """(1, N, 3) banks, with padding, and (1, Q, 3) queries, of any transitions at all."""
    state, action = st.integers(0, N_STATES - 1), st.integers(0, max_action)
    transition = st.tuples(state, action, state)
    bank = draw(st.lists(transition, min_size=1, max_size=7)) + [(-1, -1, -1)] * draw(st.integers(0, 2))
    queries = [list(draw(transition)) for _ in range(draw(st.integers(1, 4)))]
    for query in queries:
        query[draw(st.integers(0, 2))] = -1
    return torch.tensor([bank]), torch.tensor([queries])


def recoded(transitions: Tensor, codes: list[int]) -> Tensor:
    """The same transitions with code i called codes[i]; named actions keep their names."""
    names = torch.tensor([*range(N_NAMED), *(N_NAMED + code for code in codes)])
    result = transitions.clone()
    action = transitions[..., ACTION]
    result[..., ACTION] = torch.where(action < 0, -1, names[action])
    return result


BANK = torch.tensor([[[0, 3, 1], [1, 4, 2], [2, 0, 0], [4, 3, 5]]])
QUERY = torch.tensor([[[5, -1, 6], [2, 3, -1], [-1, 4, 2], [0, -1, 1], [7, 0, -1]]])


@every_config
@few
@given(problem=problems(), codes=st.permutations(range(CODES)))
def test_renaming_codes_renames_the_answers(config, problem, codes):
    """A code is what transitions with it do, not what it is called; states and named actions stay as they are."""
    model, (memories, query) = scrambled(config), problem
    answer, renamed = model(memories, query), model(recoded(memories, codes), recoded(query, codes))
    back = [*range(N_NAMED), *(N_NAMED + code for code in codes), N_ACTIONS]
    assert_same(answer, Prediction(renamed.source, renamed.action[..., back], renamed.end))


@every_config
def test_codes_and_their_bank_matter_to_every_answer(config):
    """Else the test above would pass for nothing."""
    model = scrambled(config)
    one, other = model(BANK, QUERY), model(torch.tensor([[[0, 3, 1], [1, 3, 2], [2, 0, 0], [4, 5, 5]]]), QUERY)
    for part, queries in ((SOURCE, [2]), (ACTION, [0, 3]), (END, [1])):
        change = (one.head(part).softmax(-1) - other.head(part).softmax(-1)).abs().amax(-1)[0, queries]
        assert (change > 1e-4).all()
    # To a model without codes, actions have names.
    plain = scrambled(PLAIN)
    swapped = recoded(BANK, [1, 0, 2, 3]), recoded(QUERY, [1, 0, 2, 3])
    assert (plain(BANK, QUERY).end - plain(*swapped).end).abs().max() > 1e-3


@every_config
@few
@given(problem=problems())
def test_codes_that_no_memory_holds_are_alike(config, problem):
    memories, query = problem
    action = scrambled(config)(memories, query).action
    assert action.shape == (1, query.shape[1], N_ACTIONS + 1) and action.isfinite().all()
    held = set(memories[..., ACTION].flatten().tolist())
    absent = [code for code in range(N_NAMED, N_ACTIONS) if code not in held]
    if absent:
        torch.testing.assert_close(action[..., absent], action[..., absent[:1]].expand(-1, -1, len(absent)))
        present = [code for code in range(N_NAMED, N_ACTIONS) if code in held]
        assert (action[..., present] >= action[..., absent[:1]]).all()  # as much as any code has, and more


@every_config
@few
@given(problem=problems(), order=st.randoms(use_true_random=False), rows=st.integers(1, 3))
def test_a_bank_is_a_set_and_padding_changes_nothing(config, problem, order, rows):
    memories, query = problem
    shuffled = list(range(memories.shape[1]))
    order.shuffle(shuffled)
    more = torch.cat([torch.full((1, rows, 3), -1), memories[:, shuffled]], 1)
    assert_same(scrambled(config)(memories, query), scrambled(config)(more, query))


@few
@given(problem=problems())
def test_the_fifth_relation_is_a_shared_action(problem):
    memories, query = problem
    found = relations(query, memories, 5)
    assert (found[:, :, :4] == relations(query, memories)).all() and found.shape[2] == 5
    for t, (_, mine, _) in enumerate(query[0].tolist()):
        expected = [mine == theirs and mine >= 0 for _, theirs, _ in memories[0].tolist()]
        assert found[0, t, 4].tolist() == [False, *expected]


@every_config
def test_every_weight_is_trained(config):
    model = scrambled(config)
    model.zero_grad()
    query = torch.tensor([[[0, -1, 1], [0, -1, 6], [2, 3, -1], [-1, 4, 2], [0, -1, 2]]])
    truth = torch.tensor([[[0, 3, 1], [0, 6, 6], [2, 3, 0], [1, 4, 2], [0, 0, 2]]])
    masked = torch.tensor([[ACTION, ACTION, END, SOURCE, ACTION]])
    unknown = torch.tensor([[0, 0, 0, 0, 1]])
    model(BANK, query).loss(Problems(BANK, query, truth, masked, unknown)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
    model.zero_grad()


def test_a_model_without_codes_has_the_weights_that_it_had():
    """Names and shapes, so that saved models load."""
    model = load_pretrained("random-wall")
    dim, heads, n = 128, 4, model.config.n_actions + 1
    shapes = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    assert model.config.codes == 0 and not any("action" in n for n in shapes if not n.startswith(("embed", "action_h")))
    assert shapes["embed_action.weight"] == shapes["action_head.weight"] == (n, dim)
    assert shapes["blocks.0.relation_bias"] == (4, heads)
    assert shapes["blocks.0.relation_value.weight"] == (dim, 4 * heads)
    with pytest.raises(IndexError):  # an action outside the vocabulary is not read as a masked one
        model.encode(torch.tensor([[[0, n, 1]]]))


def hexagonal_problems(source) -> Problems:
    drawn = source.draw(np.random.default_rng(0), 12, 40)
    return Problems(*(torch.from_numpy(part) for part in drawn))


@pytest.fixture(scope="module")
def random_wall():
    return load_pretrained("random-wall")


def test_starting_from_random_wall_keeps_its_answers(random_wall):
    """What the new weights begin with, for codes and for other moves, disturbs them little."""
    torch.manual_seed(0)
    model = build_model(PRESETS["lattices"].model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    assert model.starts_from(random_wall)
    model.eval()
    states = tuple(range(64))
    source = LatticeSource(RoomConfig.random_wall(2, states=states), actions="known", rows=30)
    problem = hexagonal_problems(source)
    with torch.inference_mode():
        mine, theirs = model(problem.memories, problem.query), random_wall(problem.memories, problem.query)
    right = {}
    for part, least in ((SOURCE, 0.85), (ACTION, 0.85), (END, 0.85)):
        asked = problem.masked == part
        answers = [prediction.head(part)[asked].argmax(-1) for prediction in (mine, theirs)]
        classes = [prediction.head(part).shape[-1] for prediction in (mine, theirs)]
        ours, given = (torch.where(a == n - 1, -1, a) for a, n in zip(answers, classes, strict=True))  # -1: unknown
        right[part] = (ours == given).float().mean().item()
        assert right[part] > least, right
    # The model without them starts with nothing: chance is far from it.
    fresh = build_model(PRESETS["lattices"].model).eval()
    fresh.load_state_dict(before)
    with torch.inference_mode():
        end = fresh(problem.memories, problem.query).end[problem.masked == END].argmax(-1)
    assert (end == theirs.end[problem.masked == END].argmax(-1)).float().mean() < 0.5


def test_what_is_taken_over(random_wall):
    torch.manual_seed(0)
    model = build_model(PRESETS["lattices"].model)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.starts_from(random_wall)
    given, now = random_wall.state_dict(), model.state_dict()
    for name in ("embed_action.weight", "action_head.weight", "action_head.bias"):
        assert torch.equal(now[name][:6], given[name][:6]) and torch.equal(now[name][-1], given[name][-1])
        assert torch.equal(now[name][6:-1], before[name][6:-1])
    for block in range(2):
        value, theirs = (x[f"blocks.{block}.relation_value.weight"] for x in (now, given))
        for head in range(4):
            assert torch.equal(value[:, 5 * head : 5 * head + 4], theirs[:, 4 * head : 4 * head + 4])
        assert torch.equal(now[f"blocks.{block}.relation_bias"][:4], given[f"blocks.{block}.relation_bias"])
    same = [name for name, weight in given.items() if weight.shape == now[name].shape]
    assert len(same) > 10 and all(torch.equal(now[name], given[name]) for name in same)
    assert torch.equal(now["point_to_action.weight"], before["point_to_action.weight"])


def test_models_of_one_shape_start_from_each_other():
    one, other = Transformer(CONFIGS[0]), scrambled(CONFIGS[0]).float()
    assert one.starts_from(other)
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))
    scrambled.cache_clear()


UNNAMED = replace(PLAIN, n_actions=N_NAMED)


@pytest.mark.parametrize(
    "other",
    [
        replace(UNNAMED, dim=32),
        replace(UNNAMED, layers=3),
        replace(UNNAMED, query_attention="joint"),
        replace(UNNAMED, state_embeddings=True),
        replace(UNNAMED, n_actions=N_NAMED + 1),  # one would be a code here
        replace(UNNAMED, state_embeddings=True, relational=False, readout="classes"),
        replace(UNNAMED, max_memories=50, usual_memories=40),
        replace(UNNAMED, max_memories=50, context=30),
        replace(CONFIGS[0], codes=3),
    ],
    ids=str,
)
def test_what_a_model_cannot_start_from_leaves_it_as_it_was(other):
    model = Transformer(CONFIGS[0])
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    assert not model.starts_from(Transformer(other))
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert model.starts_from(Transformer(UNNAMED))


def test_other_architectures_are_refused():
    model = Transformer(CONFIGS[0])
    for preset in ("rw-lstm", "minigrid", "rw-t"):
        assert not model.starts_from(build_model(PRESETS[preset].model))
        assert not build_model(PRESETS[preset].model).starts_from(model)


LATTICES = PRESETS["lattices"]


def told(source) -> str:
    return f"{source.rooms.shape}-{source.bank}-{source.actions}-{source.rooms.most}"


@pytest.mark.parametrize("source", [*LATTICES.sources, *LATTICES.settings.values()], ids=told)
def test_the_preset_of_lattices_draws_what_its_model_takes(source, lattice_model):
    drawn = source.draw(np.random.default_rng(0), 2, 4)
    assert drawn.memories.shape[1] <= LATTICES.model.max_memories
    for part, n in ((ACTION, LATTICES.model.n_actions), (SOURCE, LATTICES.model.n_states)):
        assert drawn.truth[..., part].min() >= 0 and drawn.truth[..., part].max() < n
    problem = Problems(*(torch.from_numpy(part) for part in drawn))
    with torch.inference_mode():
        loss = lattice_model(problem.memories, problem.query).loss(problem)
    assert loss.isfinite() and loss > 0


@pytest.fixture(scope="module")
def lattice_model():
    torch.manual_seed(0)
    return build_model(replace(LATTICES.model, dim=16, heads=2, loops=1)).eval()


def test_the_preset_of_lattices_covers_what_it_says():
    """Every shape with codes; named moves of a torus only where it is measured."""
    shapes = {(source.rooms.shape, source.actions) for source in LATTICES.sources}
    assert shapes >= {(s, "permuted") for s in ("hexagon", "square", "diagonal", "torus", "pose")}
    assert ("torus", "known") not in shapes
    assert any((s.rooms.shape, s.actions) == ("torus", "known") for s in LATTICES.settings.values())
    assert all(isinstance(source.rooms, RegionConfig) for source in LATTICES.sources)
