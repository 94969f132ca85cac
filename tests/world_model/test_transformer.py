"""What a user may take for granted of every transformer, whatever its options and its weights."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eswm_gym.rooms.transitions import Problems
from eswm_gym.world_model import ACTION, END, SOURCE, Prediction, Transformer, TransformerConfig
from eswm_gym.world_model.blocks import relations

N_STATES = 9
# relational, readout, state_embeddings: every choice that TransformerConfig allows.
KINDS = [
    (True, "classes", True),
    (False, "classes", True),
    (True, "pointer", True),
    (False, "pointer", True),
    (True, "pointer", False),
]
CONFIGS = [
    TransformerConfig(N_STATES, 6, 8, 2, 74, 2, loops, attention, relational, readout, embeddings)
    for attention in ("cross", "joint")
    for relational, readout, embeddings in KINDS
    for loops in (1, 3)
]


def describe(config: TransformerConfig) -> str:
    words = [config.query_attention, config.readout, f"loops{config.loops}"]
    return "-".join(words + ["relational"] * config.relational + ["unnamed"] * (not config.state_embeddings))


def every(configs):
    return pytest.mark.parametrize("config", configs, ids=describe)


every_config = every(CONFIGS)
every_pointer = every([config for config in CONFIGS if config.readout == "pointer"])
every_unnamed = every([config for config in CONFIGS if not config.state_embeddings])
few = settings(max_examples=12)


@cache
def scrambled(config: TransformerConfig) -> Transformer:
    """A model with random weights everywhere, in double precision.

    As it is born, a transformer has zeros in its output matrices and does not look at its bank.
    """
    model = Transformer(config).double().eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5, generator=generator)
    return model


def banks(min_size=0, max_size=6):
    """Lists of any transitions at all."""
    state, action = st.integers(0, N_STATES - 1), st.integers(0, 5)
    return st.lists(st.tuples(state, action, state), min_size=min_size, max_size=max_size)


def padded(*lists) -> Tensor:
    rows = max(1, *map(len, lists))
    return torch.tensor([[*bank, *[(-1, -1, -1)] * (rows - len(bank))] for bank in lists])


@st.composite
def problems(draw, **size) -> tuple[Tensor, Tensor]:
    """(2, N, 3) banks, each with its own padding at the end, and (2, Q, 3) queries."""
    n_queries = draw(st.integers(1, 4))
    queries = [draw(banks(n_queries, n_queries)) for _ in range(2)]
    masked = [[draw(st.integers(0, 2)) for _ in range(n_queries)] for _ in range(2)]
    query = torch.tensor(queries).scatter(2, torch.tensor(masked)[..., None], -1)
    return padded(draw(banks(**size)), draw(banks(**size))), query


def pick(prediction: Prediction, i: slice, j: slice = slice(None)) -> Prediction:
    return Prediction(*(head[i, j] for head in prediction))


def assert_same(one: Prediction, other: Prediction) -> None:
    for mine, theirs in zip(one, other, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


BANK = torch.tensor([[[0, 1, 2], [2, 3, 4], [4, 0, 0]]])
QUERY = torch.tensor([[[0, -1, 2], [0, -1, 4], [0, 1, -1], [-1, 1, 2]]])


@every_config
def test_answers_depend_on_bank_and_query(config):
    """Else every other test here would pass for nothing."""
    model = scrambled(config)
    here, there = model(BANK, QUERY), model(torch.tensor([[[0, 1, 4], [2, 3, 0]]]), QUERY)
    for mine, other in zip(here, there, strict=True):
        mine, other = mine.softmax(-1), other.softmax(-1)
        assert (mine - other).abs().amax(-1).min() > 1e-3  # the bank matters to every query
        assert torch.pdist(mine[0]).min() > 1e-3  # no two queries have the same answer


@every_config
@few
@given(problem=problems(), data=st.data())
def test_a_bank_is_a_set(config, problem, data):
    model, (memories, query) = scrambled(config), problem
    order = data.draw(st.permutations(range(memories.shape[1])))
    assert_same(model(memories, query), model(memories[:, order], query))


@every_config
@few
@given(problem=problems(), rows=st.integers(1, 4), where=st.integers(0, 6))
def test_padding_changes_nothing(config, problem, rows, where):
    model, (memories, query) = scrambled(config), problem
    more = torch.cat([memories[:, :where], torch.full((2, rows, 3), -1), memories[:, where:]], 1)
    assert_same(model(memories, query), model(more, query))


@every_config
@few
@given(problem=problems())
def test_queries_do_not_see_each_other(config, problem):
    model, (memories, query) = scrambled(config), problem
    together = model(memories, query)
    for i in range(query.shape[1]):
        i = slice(i, i + 1)
        assert_same(pick(together, slice(None), i), model(memories, query[:, i]))


@every_config
@few
@given(problem=problems(min_size=1))
def test_batched_is_one_by_one(config, problem):
    model, (memories, query) = scrambled(config), problem
    together = model(memories, query)
    for i, bank in enumerate(memories):
        held = bank[bank[:, ACTION] >= 0]
        assert_same(pick(together, slice(i, i + 1)), model(held[None], query[i : i + 1]))


@every_config
@few
@given(problem=problems())
def test_activations_are_those_that_the_answer_is_read_from(config, problem):
    model, (memories, query) = scrambled(config), problem
    activations = model.activations(model.encode(memories), query)
    assert activations.shape == (2 * config.loops, *query.shape[:2], config.dim)
    answer = model.action_head(model.norm(activations[-1]))
    torch.testing.assert_close(answer, model(memories, query).action)
    for i in range(query.shape[1]):
        alone = model.activations(model.encode(memories), query[:, i : i + 1])
        torch.testing.assert_close(alone, activations[:, :, i : i + 1])


@every_config
@few
@given(problem=problems())
def test_an_encoded_bank_serves_any_number_of_queries(config, problem):
    model, (memories, query) = scrambled(config), problem
    bank = model.encode(memories)
    assert torch.equal(bank.memories, memories)
    model.predict(bank, query.flip(1))
    assert_same(model.predict(bank, query), model(memories, query))


@every_config
@few
@given(problem=problems(max_size=0))
def test_empty_bank(config, problem):
    """An explorer starts with one: the answers are numbers, and a pointer model knows that it knows nothing."""
    prediction = scrambled(config)(*problem)
    assert all(head.isfinite().all() for head in prediction)
    if config.readout == "pointer":
        for part in (SOURCE, END):
            assert (prediction.head(part).argmax(-1) == N_STATES).all()


@every_config
def test_a_bank_of_no_rows_is_an_empty_one(config):
    model = scrambled(config)
    none = torch.zeros(1, 0, 3, dtype=torch.int64)
    assert_same(model(none, QUERY), model(torch.full((1, 2, 3), -1), QUERY))


@every_pointer
@few
@given(problem=problems())
def test_pointers_give_nothing_to_a_state_that_no_memory_holds(config, problem):
    memories, query = problem
    prediction = scrambled(config)(memories, query)
    for part in (SOURCE, END):
        for bank, chances in zip(memories, prediction.head(part).softmax(-1), strict=True):
            absent = [state for state in range(N_STATES) if state not in bank[:, ::2]]
            assert (chances[:, absent].sum(-1) < 1e-9).all()


def renamed(transitions: Tensor, names: Tensor) -> Tensor:
    """The same transitions with state s called names[s]."""
    result = transitions.clone()
    for part in (SOURCE, END):
        states = transitions[..., part]
        result[..., part] = torch.where(states < 0, -1, names[states])
    return result


@every_unnamed
@few
@given(problem=problems(), names=st.permutations(range(N_STATES)))
def test_renaming_states_renames_the_answers(config, problem, names):
    """Without state embeddings, a state is what it touches, not what it is called."""
    model, names, (memories, query) = scrambled(config), torch.tensor([*names, N_STATES]), problem
    answer = model(renamed(memories, names), renamed(query, names))
    expected = Prediction(answer.source[..., names], answer.action, answer.end[..., names])
    assert_same(model(memories, query), expected)


@every_unnamed
def test_any_vocabulary_will_do(config):
    """The weights of a model without state embeddings serve any number of states."""
    options = {**config.to_dict(), "n_states": 50}
    wide = Transformer(TransformerConfig(**options)).double().eval()
    wide.load_state_dict(scrambled(config).state_dict())
    names = torch.tensor([40, 3, 31, 7, 49, 0, 11, 12, 13, 50])
    answer = wide(renamed(BANK, names), renamed(QUERY, names))
    assert answer.end.shape == (1, 4, 51)
    expected = Prediction(answer.source[..., names], answer.action, answer.end[..., names])
    assert_same(scrambled(config)(BANK, QUERY), expected)


@every([config for config in CONFIGS if config.loops == 3])
def test_loops_are_layers_that_share_their_weights(config):
    """Three loops over two blocks answer as six blocks do that hold the same weights three times over."""
    looped = scrambled(config)
    deep = Transformer(TransformerConfig(**{**config.to_dict(), "loops": 1, "layers": 6})).double().eval()
    weights = {k: v for k, v in looped.state_dict().items() if not k.startswith("blocks.")}
    for i in range(6):
        weights |= {f"blocks.{i}.{k}": v for k, v in looped.blocks[i % 2].state_dict().items()}
    deep.load_state_dict(weights)
    assert_same(looped(BANK, QUERY), deep(BANK, QUERY))


@every_config
@given(problem=problems())
@few
def test_attention_is_sharper_in_a_bank_larger_than_usual(config, problem):
    """By log(1 + n) / log(1 + usual), as if every logit of attention were larger by that."""
    usual, plain = 4, scrambled(config)
    sharp = Transformer(replace(config, usual_memories=usual)).double().eval()
    sharp.load_state_dict(plain.state_dict())
    for bank, query in zip(*problem, strict=True):
        held = int((bank[:, 0] >= 0).sum()) + (config.query_attention == "joint")  # which counts the query too
        louder = Transformer(config).double().eval()
        louder.load_state_dict(
            {
                name: weight * math.log(1 + held) / math.log(1 + usual)
                if name.endswith(("sharpness", "relation_bias"))
                else weight
                for name, weight in plain.state_dict().items()
            }
        )
        assert_same(sharp(bank[None], query[None]), louder(bank[None], query[None]))


@every_config
def test_every_weight_is_trained(config):
    """A weight without a gradient is dead, and stops training on several processes."""
    model = scrambled(config)
    model.zero_grad()
    query = torch.tensor([[[0, -1, 2], [0, 1, -1], [-1, 1, 2]]])
    truth = torch.tensor([[[0, 1, 2], [0, 1, 2], [0, 1, 2]]])
    masked = torch.tensor([[ACTION, END, SOURCE]])
    model(BANK, query).loss(Problems(BANK, query, truth, masked, torch.zeros_like(masked))).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
    model.zero_grad()


@given(reader=banks(), read=banks(), data=st.data())
def test_relations(reader, read, data):
    """Cell by cell: the first of a row is the null token's; what is masked (-1) equals nothing, not even another."""
    part = st.integers(0, 2)
    reader = [[-1 if i == data.draw(part) else x for i, x in enumerate(row)] for row in reader] + [[-1] * 3]
    read = [*map(list, read), [-1] * 3]
    found = relations(torch.tensor([reader]), torch.tensor([read]))
    assert found.shape == (1, len(reader), 4, 1 + len(read)) and found.dtype == torch.bool
    for t, mine in enumerate(reader):
        assert not found[0, t, :, 0].any()
        for n, theirs in enumerate(read):
            pairs = [(mine[i], theirs[j]) for i in (0, 2) for j in (0, 2)]
            assert found[0, t, :, 1 + n].tolist() == [x == y and x >= 0 for x, y in pairs]


def test_relations_read_aloud():
    """The move 5 -> 6 and one 6 -> 5: source is end, and end is source."""
    found = relations(torch.tensor([[[5, 0, 6]]]), torch.tensor([[[6, 3, 5], [5, 1, 7]]]))
    assert found[0, 0].mT.tolist() == [[False] * 4, [False, True, True, False], [True, False, False, False]]


@every_config
@few
@given(problem=problems(), move=st.tuples(st.integers(0, N_STATES - 1), st.integers(0, 5)))
def test_imagine(config, problem, move):
    """It is the softmax of what the end head says of (source, action, ?)."""
    model, (memories, _) = scrambled(config), problem
    source, action = (torch.tensor([[x, 0, 0], [x, 1, 2]]) for x in move)
    cells, unknown, _ = model.imagine(model.encode(memories), source[..., None], action)
    assert cells.shape == (2, 3, 1, N_STATES) and unknown.shape == (2, 3)
    imagined = torch.cat([cells[:, :, 0], unknown[..., None]], -1)
    torch.testing.assert_close(imagined.sum(-1), torch.ones(2, 3))
    query = torch.stack([source, action, torch.full((2, 3), -1)], 2)
    torch.testing.assert_close(imagined, model(memories, query).end.float().softmax(-1))
    assert not imagined.requires_grad


@every_config
@pytest.mark.parametrize("state", [-2, -1, N_STATES, 1000])
def test_imagine_refuses_a_state_outside_the_vocabulary(config, state):
    model = scrambled(config)
    with pytest.raises(ValueError, match=rf"state {state} is outside the vocabulary 0 \.\.\. 8"):
        model.imagine(model.encode(BANK), torch.tensor([[[0], [state]]]), torch.tensor([[0, 1]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 10, "heads": 4}, "dim 10 is not a multiple of heads 4"),
        ({"state_embeddings": False, "relational": False}, "must be relational with readout='pointer'"),
        ({"state_embeddings": False, "readout": "classes"}, "must be relational with readout='pointer'"),
        ({"usual_memories": -1}, "usual_memories must lie between 0 and max_memories 74, got -1"),
        ({"usual_memories": 75}, "usual_memories must lie between 0 and max_memories 74, got 75"),
        ({"codes": -1}, "codes must lie between 0 and n_actions 6, .* got -1"),
        ({"codes": 6}, "codes must lie between 0 and n_actions 6, .* got 6"),
        ({"codes": 3}, "in a model without state embeddings, got 3"),
    ],
)
def test_impossible_configurations(options, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**options)


@every_config
def test_a_configuration_survives_a_dictionary(config):
    assert TransformerConfig(**config.to_dict()) == config


def test_autocast_to_bfloat16_gives_finite_answers_close_to_the_exact_ones():
    """Training runs in bfloat16, inference in float32: they have to be the same function."""
    model = Transformer(CONFIGS[8])
    model.load_state_dict(scrambled(CONFIGS[8]).state_dict())
    exact = model(BANK, QUERY).end.softmax(-1)
    with torch.autocast("cpu", torch.bfloat16):
        rough = model(BANK, QUERY).end.softmax(-1)
    torch.testing.assert_close(rough, exact, rtol=0, atol=0.1, check_dtype=False)


def test_imagine_refuses_actions_and_memories_outside_the_vocabulary():
    model = Transformer(TransformerConfig(n_states=8, dim=8, layers=1, heads=2, state_embeddings=False)).eval()
    state = torch.tensor([[0]])
    for action in (-1, 6):
        with pytest.raises(ValueError, match=f"action {action} "):
            model.imagine(model.encode(torch.tensor([[[0, 1, 2]]])), state[..., None], torch.tensor([[action]]))
    with pytest.raises(ValueError, match="state 11 "):
        model.imagine(model.encode(torch.tensor([[[0, 1, 11]]])), state[..., None], state)


@pytest.mark.parametrize("option", [{"readout": "clases"}, {"query_attention": "crosss"}])
def test_unknown_choices_are_named(option):
    with pytest.raises(ValueError, match=str(*option.values())):
        TransformerConfig(**option)


@pytest.mark.parametrize("codec", ["integer", "binary"])
def test_at_first_each_head_looks_for_one_way_to_share_a_state(codec):
    """Of the memories, the query (3, 0, 5) shares its source or its end with one of each kind."""
    model = Transformer(TransformerConfig(64, dim=96, layers=2, relational=False, readout="classes", codec=codec))
    memories = torch.tensor([[[7, 1, 3], [5, 1, 8], [3, 1, 9], [60, 1, 5], [33, 0, 40], [18, 2, 44]]])
    shared = [0, 1, 2, 3]  # source is end, end is source, source is source, end is end
    x, query = model.embed(memories), model.embed(torch.tensor([[[3, 0, 5]]]))
    for block in model.blocks:
        key, _ = block.keys_values(x)
        asked = block._split(block.query(block.attention_norm(query)))
        assert (asked @ key[:, :, 1:].mT)[0, :, 0].argmax(1).tolist() == shared


def test_unaligned_weights_look_for_nothing_yet():
    torch.manual_seed(0)
    config = TransformerConfig(64, dim=96, layers=1, relational=False, readout="classes", aligned=False)
    source, end = (Transformer(config).codec.embed_source.weight, Transformer(config).codec.embed_end.weight)
    assert torch.nn.functional.cosine_similarity(source, end).abs().mean() < 0.2
