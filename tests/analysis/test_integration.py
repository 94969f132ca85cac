"""Integration of memories, against banks made by hand, networkx, and models whose answers are known."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.analysis import (
    append_memory,
    contradict_states,
    contradict_transitions,
    entropy_by_length,
    forgotten,
    integration_lengths,
    predictions,
    right_answers,
    shortcut_divergences,
    sized_banks,
)
from eswm_gym.rooms import Kind, RoomConfig, draw_queries, generate_rooms, spanning_banks
from eswm_gym.world_model import Lookup, ModelConfig, PathIntegrator
from eswm_gym.world_model.lookup import CERTAINTY

ROOMS = RoomConfig.random_wall(2)
CONFIG = ModelConfig(n_states=19)
#  0 -E-> 1 -E-> 2, 2 bumps into a wall to the east; 3 -NE-> 4 elsewhere.
BANK = np.array([[[0, 0, 1], [1, 0, 2], [2, 0, 2], [3, 1, 4], [-1, -1, -1]]])
STATES = np.arange(7)[None]


def banks_of(seed, n=4, config=ROOMS):
    rng = np.random.default_rng(seed)
    return rng, spanning_banks(rng, generate_rooms(rng, n, config))


def rows_of(bank):
    return [tuple(row) for row in bank.tolist() if row[0] >= 0]


def graph_of(bank):
    return nx.Graph((source, end) for source, _, end in rows_of(bank))


def test_lengths_by_hand():
    asked = np.array([[[0, 0, 2], [2, 3, 0], [1, 3, 0], [2, 0, 2], [2, 1, 3], [4, 4, 3], [6, 0, 5]]])
    assert integration_lengths(BANK, asked).tolist() == [[2, 2, 1, 0, -1, 1, -1]]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_lengths_are_those_of_networkx(seed):
    rng, banks = banks_of(seed)
    memories, asked = banks.transitions(), draw_queries(rng, banks, 20, (0.6, 0.2, 0.2, 0.0)).transitions
    for bank, queries, lengths in zip(memories, asked, integration_lengths(memories, asked), strict=True):
        graph = graph_of(bank)
        for (source, _, end), length in zip(queries.tolist(), lengths.tolist(), strict=True):
            if source == end:
                assert length == 0
            elif source in graph and end in graph and nx.has_path(graph, source, end):
                assert length == nx.shortest_path_length(graph, source, end)
            else:
                assert length == -1


def test_predictions_are_of_the_masked_component():
    """The lookup votes CERTAINTY for each memory that fits, and half of that for "I don't know"."""
    query = np.array([[[0, 0, -1], [0, -1, 1], [-1, 0, 2], [5, 0, -1], [5, -1, 0]]])
    p = predictions(Lookup(ModelConfig(n_states=7)), np.repeat(BANK, 3, 0), np.repeat(query, 3, 0), chunk=2)
    assert p.shape == (3, 5, 8) and np.allclose(p.sum(2), 1)
    assert (p.argmax(2) == [1, 0, 1, 7, 6]).all()
    sure, rest = np.exp(CERTAINTY), np.exp(CERTAINTY / 2)
    assert p[0, 0, 1] == pytest.approx(sure / (sure + rest + 6))
    assert p[0, 1, 0] == pytest.approx(sure / (sure + rest + 5)) and (p[:, [1, 4], 7] == 0).all()


def test_a_memory_is_appended_before_the_padding():
    longer = append_memory(np.concatenate([BANK, BANK[:, ::-1]])[:1], np.array([[4, 0, 5]]))
    assert longer[0].tolist() == [*BANK[0, :4].tolist(), [4, 0, 5], [-1, -1, -1]]


def test_contradictory_states_by_hand():
    """Of the location of 2 there are two memories, one a bump: each sees one other state, and nothing else changes."""
    rng = np.random.default_rng(0)
    noisy = contradict_states(rng, np.repeat(BANK, 400, 0), np.repeat(STATES, 400, 0))
    at_2 = noisy[(noisy[:, 1, 2] != 2) & (noisy[:, 0] == BANK[0, 0]).all(1)]
    assert len(at_2) > 40
    assert (at_2[:, 1, :2] == [1, 0]).all() and (at_2[:, [0, 3, 4]] == BANK[0, [0, 3, 4]]).all()
    assert (at_2[:, 2, 0] == at_2[:, 2, 2]).all() and (at_2[:, 2, 1] == 0).all()
    assert set(at_2[:, 2, 0]) == {0, 1, 3, 4, 5, 6} and (at_2[:, 1, 2] != at_2[:, 2, 0]).any()


def test_forgotten_by_hand():
    """Where 2 became 5 and 6, moves that name 2 are forgotten; where one more memory still names it, they are not."""
    noisy = BANK.copy()
    noisy[0, 1:3] = [[1, 0, 5], [6, 0, 6]]
    asked = np.array([[[1, 0, 2], [2, 3, 1], [1, 3, 0], [5, 0, 6], [3, 1, 4], [2, 0, 2]]])
    assert forgotten(BANK, noisy, asked).tolist() == [[True, True, False, False, False, True]]
    assert not forgotten(BANK, BANK, asked).any()
    more = np.array([[[2, 2, 3]]])
    assert not forgotten(np.append(BANK, more, 1), np.append(noisy, more, 1), asked).any()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_noise_changes_what_it_says_and_nothing_else(seed):
    rng, banks = banks_of(seed)
    memories, states = banks.transitions(), banks.rooms.states
    before = memories.copy()
    noisy = contradict_states(rng, memories, states)
    longer = contradict_transitions(rng, memories, states)
    assert (memories == before).all()
    for bank, changed, more, room in zip(memories, noisy, longer, states.tolist(), strict=True):
        [state] = set(bank[bank != changed].tolist())
        here = bank == state
        here[:, 1] = False
        assert here.any() and (changed[here] != state).all() and set(changed[here].tolist()) <= set(room)
        assert (changed[~here] == bank[~here]).all()
        *kept, (source, action, end) = rows_of(more)
        assert kept == rows_of(bank) and end in room
        assert any((source, action) == (s, a) and end != e for s, a, e in kept)


def test_noise_costs_a_lookup_what_it_hides():
    """Asked for the end of each memory, it misses those of the noisy location, and, once in two, the copied one."""
    rng, banks = banks_of(3, 300)
    memories, states = banks.transitions(), banks.rooms.states
    queries = draw_queries(rng, banks, 30, (0.0, 1.0, 0.0, 0.0))
    queries.masked[:] = 2
    model = Lookup(CONFIG)
    assert all(right.all() for right in right_answers(model, memories, banks, queries))
    noisy = contradict_states(rng, memories, states)
    accurate, _ = right_answers(model, noisy, banks, queries)
    held = [
        [tuple(t) in set(rows_of(bank)) for t in asked] for bank, asked in zip(noisy, queries.transitions, strict=True)
    ]
    assert accurate[np.array(held)].mean() > 0.97 and not accurate[~np.array(held)].any()
    accurate, _ = right_answers(model, contradict_transitions(rng, memories, states), banks, queries)
    size = (memories[..., 0] >= 0).sum(1).mean()
    assert 0 < 1 - accurate.mean() < 2 / size  # of two equal votes the lower state wins


def test_right_answers_count_as_the_evaluation_does():
    """Path integration answers with what is true, where it is not the generating transition: at bumps."""
    rng, banks = banks_of(4, 100, RoomConfig.random_wall(2, hidden=0.0, no_wall=1.0))
    queries = draw_queries(rng, banks, 40, (1.0, 0.0, 0.0, 0.0))
    accurate, valid = right_answers(PathIntegrator(CONFIG), banks.transitions(), banks, queries)
    assert accurate.all() and valid.all()
    accurate, valid = right_answers(Lookup(CONFIG), banks.transitions(), banks, queries)
    held = [set(rows_of(bank)) for bank in banks.transitions()]
    known = [
        [(e, (a + 3) % 6, s) in bank for s, a, e in asked]
        for bank, asked in zip(held, queries.transitions.tolist(), strict=True)
    ]
    assert (accurate == known).all() and (valid == accurate).all()


def test_unsolvable_queries_owe_no_answer():
    rng, banks = banks_of(5, 100, RoomConfig.random_wall(2, hidden=0.4))
    queries = draw_queries(rng, banks, 20, (0.0, 0.0, 1.0, 0.0))
    unsolvable = queries.kind == Kind.UNSOLVABLE
    accurate, valid = right_answers(Lookup(CONFIG), banks.transitions(), banks, queries)
    # A bump that the bank holds may answer "where does the move here come from?" with a true transition.
    assert accurate[unsolvable & (queries.masked != 0)].all() and (valid >= accurate)[unsolvable].all()


def test_banks_of_a_size():
    for hidden, extra in ((0, 0), (7, 0), (0, 12), (0, 18)):
        banks = sized_banks(np.random.default_rng(6), 50, ROOMS, hidden, extra)
        held = banks.holds()
        rooms = banks.rooms
        assert (rooms.observed.sum(1) == 19 - hidden).all() and not held[:, ~rooms.lattice.on_lattice].any()
        for i, moves in enumerate(held.sum((1, 2))):
            free = rooms.observed[i] & ~rooms.walls[i]
            graph = nx.Graph(edge for edge in rooms.lattice.edges.tolist() if free[edge].all())
            graph.add_nodes_from(np.flatnonzero(free).tolist())
            near = [any(free[rooms.lattice.neighbors[w][rooms.lattice.on_lattice[w]]]) for w in range(19)]
            bumps = (rooms.observed[i] & rooms.walls[i] & near).sum()
            assert moves == free.sum() - nx.number_connected_components(graph) + bumps + extra


def test_entropy_by_hand():
    """A lookup knows the reverses of memories; elsewhere only "I don't know" has a vote."""
    rng, banks = banks_of(7, 60)
    lengths, entropies = entropy_by_length(Lookup(CONFIG), rng, banks, 10)
    assert lengths.shape == entropies.shape and 540 <= len(lengths) <= 600 and lengths.min() == 1
    for n_classes in (19, 6):  # states, actions; one vote against ones
        weights = np.array([np.exp(CERTAINTY / 2), *np.ones(n_classes)])
        p = weights / weights.sum()
        assert np.isclose(entropies[lengths > 1], -(p * np.log(p)).sum()).any()
    assert entropies[lengths == 1].mean() < entropies[lengths > 1].mean()


def test_shortcuts_are_not_the_answers():
    """A lookup completes moves from their own memory or its reverse alone, so that no other memory changes its mind."""
    rng, banks = banks_of(8, 40, RoomConfig.random_wall(2, hidden=0.0, no_wall=1.0))
    informative, uninformative = shortcut_divergences(Lookup(CONFIG), rng, banks, 5)
    assert informative.shape == uninformative.shape and 60 < len(informative) <= 200
    assert np.allclose(informative, 0) and np.allclose(uninformative, 0)


def test_a_shortcut_moves_a_model_that_goes_by_the_path():
    """A model that knows paths of two memories only: shortcuts to two memories change its mind, others do not."""

    class TwoSteps(Lookup):
        def predict(self, bank, query):
            prediction = super().predict(bank, query)
            memories = bank.memories.numpy()
            near = np.zeros((len(query), query.shape[1]), bool)
            for i, bank_i in enumerate(memories):
                graph = graph_of(bank_i)
                for j, (source, action, end) in enumerate(query[i].tolist()):
                    near[i, j] = action < 0 and nx.shortest_path_length(graph, source, end) <= 2
            prediction.action[..., 0] += torch.from_numpy(20.0 * near)
            return prediction

    rng, banks = banks_of(9, 40, RoomConfig.random_wall(2, hidden=0.0, no_wall=1.0))
    informative, uninformative = shortcut_divergences(TwoSteps(CONFIG), rng, banks, 5)
    assert np.allclose(uninformative, 0) and 0 < (informative > 1).mean() < 1 / 2
