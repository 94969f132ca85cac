"""Plans against networkx, on tables that are drawn at random."""

import dataclasses
import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.agents import MemoryBank, TransitionTable, follow, imagine_tables, search
from eswm_gym.world_model import Transformer, TransformerConfig


@st.composite
def tables(draw):
    k = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    end = rng.integers(-1, k, size=(k, 6))
    end[rng.random((k, 6)) < draw(st.floats(0, 0.95))] = -1
    return TransitionTable(np.arange(k), end, rng.uniform(0.1, 1, (k, 6)), np.zeros((k, 6)))


def graph_of(table):
    """The likeliest move between each two states; a step costs far more than any improbability."""
    graph = nx.DiGraph()
    graph.add_nodes_from(table.states.tolist())
    for source, row in enumerate(table.end):
        for action, end in enumerate(row):
            surprise = -math.log(table.probability[source, action])
            old = graph.get_edge_data(source, int(end), {"surprise": math.inf})
            if end >= 0 and end != source and surprise < old["surprise"]:
                graph.add_edge(source, int(end), surprise=surprise, cost=1000 + surprise)
    return graph


@given(table=tables(), data=st.data())
def test_plan_is_the_shortest_and_among_those_the_most_probable(table, data):
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    horizon = data.draw(st.none() | st.integers(0, 6))
    plan = search(table, start, goal, horizon)
    try:
        best = nx.shortest_path(graph_of(table), start, goal, weight="cost")
    except nx.NetworkXNoPath:
        best = None
    if best is None or (horizon is not None and len(best) - 1 > horizon):
        assert not plan.found and plan.actions == () and plan.probability == 0
        return
    assert plan.found and plan.states[0] == start and plan.states[-1] == goal
    assert len(plan) == len(best) - 1 == len(plan.states) - 1
    probability = 1.0
    for source, action, end in zip(plan.states, plan.actions, plan.states[1:], strict=False):
        assert table.end[source, action] == end
        probability *= table.probability[source, action]
    assert plan.probability == pytest.approx(probability)
    surprise = sum(graph_of(table).edges[e]["surprise"] for e in zip(best, best[1:], strict=False))
    assert plan.probability == pytest.approx(math.exp(-surprise))
    assert plan.expanded <= len(table.states)


def test_expansions_counted_by_hand():
    """0 -> 1 -> 2 -> 3 in a row: the search expands 0, 1 and 2 and stops at the goal."""
    end = np.full((4, 6), -1)
    end[[0, 1, 2], 0] = [1, 2, 3]
    table = TransitionTable(np.arange(4), end, np.ones((4, 6)), np.zeros((4, 6)))
    assert search(table, 0, 3).expanded == 3
    assert search(table, 0, 0).expanded == 0
    assert search(table, 3, 0).expanded == 1


def test_a_goal_never_seen_is_a_plan_not_found():
    table = TransitionTable(np.array([5]), np.full((1, 6), -1), np.ones((1, 6)), np.zeros((1, 6)))
    assert not search(table, 5, 99).found
    assert not search(table, 99, 5).found


def test_what_is_new_goes_with_the_moves():
    """States 5, 6 and 7 and two actions; places 6 and 8 are named."""
    end = np.array([[6, 7], [7, 5], [8, -1]])
    new = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    table = TransitionTable(np.array([5, 6, 7]), end, np.full((3, 2), 0.5), np.ones((3, 2)), new)
    lived = table.with_facts([(5, 1, 7)], [(7, 0, 7), (9, 0, 5)])
    assert lived.new.tolist() == [[1, 0], [3, 4], [0, 6]]
    assert table.new.tolist() == [[1, 2], [3, 4], [5, 6]]  # as it was
    named = table.without_places([6], [8])
    assert named.states.tolist() == [5, 7] and named.end.tolist() == [[5, 7], [-1, -1]]
    assert named.new.tolist() == [[1, 2], [5, 6]]
    assert table.rename(6, 9).new.tolist() == table.new.tolist()


def test_tables_of_symbols_have_nothing_new():
    table = TransitionTable(np.array([5]), np.array([[5, -1]]), np.ones((1, 2)), np.zeros((1, 2)))
    assert table.new is table.with_facts([(5, 1, 5)]).new is table.without_places([6], []).new is None


BANKS = [MemoryBank(), MemoryBank([(1, 0, 2)]), MemoryBank([(1, 0, 2), (2, 1, 3), (5, 4, 5), (3, 3, 6)])]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = Transformer(TransformerConfig(n_states=8, dim=16, layers=1, heads=2, state_embeddings=False))
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    return model.eval()


def test_tables_of_many_banks_equal_those_of_one(model):
    also = [[7], [], [0]]
    together = imagine_tables(model, BANKS, also)
    for bank, extra, table in zip(BANKS, also, together, strict=True):
        (alone,) = imagine_tables(model, [bank], [extra])
        assert table.states.tolist() == sorted({*bank.states, *extra})
        assert table.end.shape == (len(table.states), 6)
        assert (table.end == alone.end).all()
        np.testing.assert_allclose(table.probability, alone.probability, rtol=1e-4)
        np.testing.assert_allclose(table.entropy, alone.entropy, atol=1e-4)
    chunked = imagine_tables(model, BANKS, also, chunk=1)
    assert all((a.end == b.end).all() for a, b in zip(together, chunked, strict=True))


def test_empty_banks(model):
    assert imagine_tables(model, []) == []
    nothing, start = imagine_tables(model, [MemoryBank(), MemoryBank()], [(), (3,)])
    assert nothing.states.shape == (0,) and nothing.end.shape == (0, 6) and nothing.row(3) is None
    assert start.states.tolist() == [3] and start.end.shape == (1, 6)
    assert not search(nothing, 0, 1).found
    (alone,) = imagine_tables(model, [MemoryBank()])
    assert alone.states.dtype == start.states.dtype == np.int64


def test_probability_and_entropy_are_of_the_whole_prediction(model):
    (table,) = imagine_tables(model, BANKS[2:])
    bank = model.encode(torch.from_numpy(BANKS[2].to_numpy())[None])
    for row, state in enumerate(table.states.tolist()):
        cells, unknown, _ = model.imagine(bank, torch.full((1, 6, 1), state), torch.arange(6)[None])
        p = torch.cat([cells[0, :, 0], unknown[0, :, None]], 1).double().numpy()
        idk = p.argmax(1) == model.config.n_states
        np.testing.assert_array_equal(table.end[row], np.where(idk, -1, p.argmax(1)))
        np.testing.assert_allclose(table.probability[row], p.max(1), rtol=1e-4)
        np.testing.assert_allclose(table.entropy[row], -(p * np.log(p)).sum(1), atol=1e-4)


def test_facts_overrule_imagination(model):
    (table,) = imagine_tables(model, BANKS[2:])
    facts = table.with_facts(BANKS[2])
    for source, action, end in BANKS[2]:
        cell = facts.row(source), action
        assert (facts.end[cell], facts.probability[cell], facts.entropy[cell]) == (end, 1, 0)
    assert (facts.end != table.end).sum() <= len(BANKS[2])


def test_facts_and_closed_states_are_not_asked_about(model, monkeypatch):
    facts, closed = [[], [(1, 0, 4)], [*BANKS[2], (7, 0, 1)]], [[], [2], [3]]
    nowhere = [[(state, action, -1) for state in shut for action in range(6)] for shut in closed]
    plain = imagine_tables(model, BANKS)
    asked, imagine = [], model.imagine
    monkeypatch.setattr(model, "imagine", lambda *args: asked.append(args[1].shape) or imagine(*args))
    found = imagine_tables(model, BANKS, facts=[[*a, *b] for a, b in zip(nowhere, facts, strict=True)])
    assert asked == [(3, 30 - 6 - 3, 1)]  # 5 states, of which 1 is closed, and 3 facts about the others
    assert found[0].end.shape == (0, 6)
    assert found[1].states.tolist() == [1, 2] and found[1].end[0, 0] == 4
    for before, after, certain, shut in zip(plain[1:], found[1:], facts[1:], closed[1:], strict=True):
        held = {(source, action): end for source, action, end in certain}
        for row, state in enumerate(before.states.tolist()):
            for action in range(6):
                cell = row, action
                if (state, action) in held or state in shut:
                    expected = held.get((state, action), -1)
                    assert (after.end[cell], after.probability[cell], after.entropy[cell]) == (expected, 1, 0)
                else:
                    assert after.end[cell] == before.end[cell]
                    assert after.probability[cell] == pytest.approx(before.probability[cell], rel=1e-4)
                    assert after.entropy[cell] == pytest.approx(before.entropy[cell], abs=1e-4)


def test_nothing_is_asked_where_everything_is_certain(model):
    everything = [(1, action, 2) for action in range(6)] + [(2, action, 1) for action in range(6)]
    (table,) = imagine_tables(model, BANKS[1:2], facts=[everything])
    assert table.end.tolist() == [[2] * 6, [1] * 6]


def test_states_outside_the_vocabulary_are_named(model):
    with pytest.raises(ValueError, match="state 9 "):
        imagine_tables(model, [MemoryBank([(1, 0, 9)])])


def test_banks_longer_than_the_model_was_trained_for_are_refused(model):
    long = MemoryBank([(s, a, (s + 1) % 8) for s in range(8) for a in range(6)])
    model.config = dataclasses.replace(model.config, max_memories=47)
    with pytest.raises(ValueError, match="48 memories.*47"):
        imagine_tables(model, [long])


@given(table=tables(), data=st.data())
def test_a_star_with_true_distances_finds_a_shortest_plan_and_expands_no_more(table, data):
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    true = dict(nx.single_target_shortest_path_length(graph_of(table), goal))
    guided, plain = search(table, start, goal, distance=true), search(table, start, goal)
    assert (guided.found, len(guided)) == (plain.found, len(plain))
    if guided.found:
        assert guided.expanded == len(guided)  # the way itself


@given(table=tables(), data=st.data())
def test_a_star_finds_a_plan_wherever_there_is_one(table, data):
    """However wrong the distances are, and for states that they lack."""
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    wrong = data.draw(st.dictionaries(st.integers(0, 8), st.floats(0, 20)))
    plan = search(table, start, goal, distance=wrong)
    assert plan.found == nx.has_path(graph_of(table), start, goal)
    for source, action, end in zip(plan.states, plan.actions, plan.states[1:], strict=False):
        assert table.end[source, action] == end


@given(table=tables(), data=st.data())
def test_a_plan_by_uncertainty_is_the_most_probable(table, data):
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    plan = search(table, start, goal, cost="uncertainty", horizon=100)
    graph = graph_of(table)
    for *_, edge in graph.edges(data=True):
        edge["price"] = edge["surprise"] + 1e-3
    try:
        best = nx.shortest_path(graph, start, goal, weight="price")
    except nx.NetworkXNoPath:
        assert not plan.found
        return
    price = sum(graph.edges[edge]["price"] for edge in zip(best, best[1:], strict=False))
    assert -math.log(plan.probability) + 1e-3 * len(plan) == pytest.approx(price)


@given(table=tables(), horizon=st.integers(0, 5), data=st.data())
def test_within_a_horizon_a_plan_by_uncertainty_is_the_most_probable_of_those_short_enough(table, horizon, data):
    """Where the cheapest way is too long, another one is found; in brackets, prices of all ways by their length."""
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    graph, price, cheapest = graph_of(table), {start: 0.0}, math.inf
    for step in range(horizon + 1):
        cheapest = min(cheapest, price.get(goal, math.inf))
        ahead: dict = {}
        for state, paid in price.items() if step < horizon else ():
            for _, end, edge in graph.edges(state, data=True):
                ahead[end] = min(ahead.get(end, math.inf), paid + edge["surprise"] + 1e-3)
        price = ahead
    plan = search(table, start, goal, horizon, "uncertainty")
    assert plan.found == (cheapest < math.inf) and len(plan) <= horizon
    if plan.found:
        assert -math.log(plan.probability) + 1e-3 * len(plan) == pytest.approx(cheapest)


@given(table=tables(), data=st.data())
def test_the_greedy_policy_on_true_distances_walks_a_shortest_way(table, data):
    start, goal = (data.draw(st.integers(0, len(table.states) - 1)) for _ in range(2))
    true = dict(nx.single_target_shortest_path_length(graph_of(table), goal))
    plan = follow(table, start, goal, true)
    assert plan.found == (start in true)
    if plan.found:
        assert len(plan) == true[start] and plan.states[-1] == goal
        probability = np.prod([table.probability[s, a] for s, a in zip(plan.states, plan.actions, strict=False)])
        assert plan.probability == pytest.approx(probability)


def test_the_greedy_policy_gives_up_where_it_would_walk_in_circles():
    """0 and 1 both say that the other is nearer."""
    end = np.full((3, 6), -1)
    end[0, 0], end[1, 3], end[1, 0] = 1, 0, 2
    table = TransitionTable(np.arange(3), end, np.ones((3, 6)), np.zeros((3, 6)))
    assert not follow(table, 0, 2, {0: 1.0, 1: 2.0, 2: 3.0}).found
    assert follow(table, 0, 2, {0: 2.0, 1: 1.0, 2: 0.0}).actions == (0, 0)
    assert not follow(table, 0, 2, {0: 2.0, 1: 1.0, 2: 0.0}, horizon=1).found
    assert not follow(table, 0, 2, {}).found  # nothing is known to lead there
    assert follow(table, 2, 2, {}).found


@pytest.mark.parametrize(("p_direct", "states"), [(0.9995, (0, 1)), (0.99, (0, 2, 3, 1))])
def test_a_certain_move_has_a_small_price_by_uncertainty(p_direct, states):
    """One move of probability p or three certain ones, which cost 0.003 in all: -log 0.9995 + 0.001 = 0.0015 is less
    than that, -log 0.99 + 0.001 = 0.0111 is more."""
    end, probability = np.full((4, 6), -1), np.ones((4, 6))
    end[0, 0], end[0, 1], end[2, 2], end[3, 3] = 1, 2, 3, 1
    probability[0, 0] = p_direct
    table = TransitionTable(np.arange(4), end, probability, np.zeros((4, 6)))
    assert search(table, 0, 1, cost="uncertainty").states == states


def test_an_unknown_cost_is_named():
    table = TransitionTable(np.arange(1), np.full((1, 6), -1), np.ones((1, 6)), np.zeros((1, 6)))
    with pytest.raises(ValueError, match="cost must be one of .* got 'time'"):
        search(table, 0, 0, cost="time")


def test_places_resolve_into_blocked_and_unknown_moves():
    end = np.array([[1, 100, 101, 0, -1, 1], [0] * 6, [0] * 6, [1] * 6])
    table = TransitionTable(np.array([0, 1, 100, 101]), end, np.ones((4, 6)), np.zeros((4, 6)))
    resolved = table.without_places(blocked=[100], unknown=[101])
    assert resolved.states.tolist() == [0, 1]
    assert resolved.end.tolist() == [[1, 0, -1, 0, -1, 1], [0] * 6]
    renamed = table.rename(100, 7)
    assert renamed.row(7) == 2 and renamed.end[0, 1] == 7 and table.end[0, 1] == 100


def test_caution_weighs_a_short_risk_against_a_long_sure_way():
    """0 -> 3 directly with probability p, or surely by 1 and 2, or by 4 in two steps of probability 0.99 each.

    A move costs 1 - 30 log p. The sure way costs 3, and 1 - 30 log p = 3 at p = exp(-1 / 15) = 0.9355. The way by 4
    costs 2 - 60 log 0.99 = 2.603, which equals that of the short one at p = exp(-1.603 / 30) = 0.948.
    """
    end = np.full((5, 3), -1)
    end[0], end[1, 0], end[2, 0], end[4, 0] = [3, 1, 4], 2, 3, 3
    by_4 = {0.99: 2, 1.0: 2, 0.9: 3}  # the probability of each of its moves, and how long the best way beside 0 -> 3 is

    def plan(p, q, cost="caution", **options):
        probability = np.ones((5, 3))
        probability[0, 0], probability[0, 2], probability[4, 0] = p, q, q
        return search(TransitionTable(np.arange(5), end, probability, np.zeros((5, 3))), 0, 3, cost=cost, **options)

    for q, beside in by_4.items():
        for p in (0.2, 0.6, 0.93):
            assert len(plan(p, q)) == beside
    assert plan(0.94, 0.9).states == (0, 3) and plan(0.93, 0.9).states == (0, 1, 2, 3)
    assert plan(0.95, 0.99).states == (0, 3) and plan(0.945, 0.99).states == (0, 4, 3)
    assert plan(0.945, 0.99).probability == pytest.approx(0.99**2)
    # The other costs are at the two ends.
    assert plan(0.2, 0.99, "steps").states == (0, 3)
    assert plan(0.99, 0.999, "uncertainty").states == (0, 1, 2, 3)
    assert plan(0.99, 0.999).states == (0, 3)
    # Within a horizon only what is short enough counts.
    assert plan(0.2, 0.99, horizon=1).states == (0, 3) and plan(0.93, 0.9, horizon=2).states == (0, 3)
    assert not plan(0.2, 0.99, horizon=0).found


def test_unlikely_moves_cost_no_more_than_numbers_can_hold():
    """A move of probability 0 is possible, if there is no other."""
    end = np.array([[1], [-1]])
    table = TransitionTable(np.arange(2), end, np.zeros((2, 1)), np.zeros((2, 1)))
    assert search(table, 0, 1, cost="caution").actions == (0,)


def test_costs_have_names():
    table = TransitionTable(np.array([5]), np.full((1, 6), -1), np.ones((1, 6)), np.zeros((1, 6)))
    with pytest.raises(ValueError, match="caution"):
        search(table, 5, 9, cost="fear")
