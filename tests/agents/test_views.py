"""Tables of views, imagined by models that know the truth."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
import torch
from view_models import Surveyor, TrueModel, bank_of, distinct_room, numbers, rooms_of

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, MemoryBank, TransitionTable, views
from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.agents.states import view_number
from eswm_gym.agents.views import imagine_views
from eswm_gym.rooms.grid import (
    FORWARD,
    WALL,
    GridBatch,
    cover_banks,
    rows_of,
)


def test_a_model_that_knows_the_room_imagines_all_of_it_from_one_memory():
    room = distinct_room()
    number = numbers(room)
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(TrueModel(room), [bank], [album])[0]
    free = np.flatnonzero(room.free[0]).tolist()
    assert sorted(table.states.tolist()) == sorted(number[free].tolist())
    true = nx.DiGraph()
    for pose in free:
        for action in range(3):
            assert table.end[table.row(number[pose]), action] == number[room.targets[0, pose, action]]
            true.add_edge(int(number[pose]), int(number[room.targets[0, pose, action]]))
    assert table.probability.min() > 0.99 and table.entropy.max() < 1e-3
    assert np.isin(table.states, list(nx.descendants(true, int(number[start]))) + [number[start]]).all()
    np.testing.assert_array_equal(album.views(number[free]), room.views[0, free])


def test_what_is_not_known_is_unknown_and_ends_the_search():
    room = distinct_room()
    number, model = numbers(room), TrueModel(room)
    free = np.flatnonzero(room.free[0])
    start = int(free[0])
    for action in range(3):  # forget what comes after the first pose's turn to the right, and all steps
        for pose in free:
            if action == FORWARD or pose == room.targets[0, start, 1]:
                del model.ends[room.views[0, pose].astype(np.int64).tobytes(), action]
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(model, [bank], [album])[0]
    turns = start - start % 4 + np.arange(4)
    assert sorted(table.states.tolist()) == sorted(number[turns].tolist())
    assert (table.end[:, FORWARD] == UNKNOWN).all()
    right = room.targets[0, start, 1]
    assert (table.end[table.row(number[right])] == UNKNOWN).all()
    assert table.probability[table.end == UNKNOWN].min() > 0.99
    assert table.end[table.row(number[start]), 1] == number[right]


def test_other_states_are_included():
    room = distinct_room()
    number, model = numbers(room), TrueModel(room)
    model.ends = {}
    free = np.flatnonzero(room.free[0])
    bank, album = bank_of(rows_of(room, free[None, :1], np.array([[0]]))[0])
    goal = album.number(room.views[0, free[-1]])
    table = imagine_views(model, [bank], [album], also=[[goal]])[0]
    assert sorted(table.states.tolist()) == sorted({*number[room.targets[0, free[0], [0]]], number[free[0]], goal})
    empty = imagine_views(model, [MemoryBank()], [album], also=[[goal]])[0]
    assert empty.states.tolist() == [goal] and empty.end.tolist() == [[UNKNOWN] * 3]


@pytest.mark.parametrize(("p_wrong", "new"), [(0.9, False), (0.995, True)])
def test_a_view_that_is_nearly_a_known_one_is_no_new_one(p_wrong, new):
    """One cell is imagined otherwise; how surely tells whether it is another view."""
    room = distinct_room()
    number = numbers(room)
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    model = TrueModel(room)
    left = room.views[0, room.targets[0, start, 0]]
    cell = int(np.flatnonzero(left > WALL)[0])
    wrong = 3 if left[cell] != 3 else 4

    class Doubtful(TrueModel):
        def predict(self, bank, query):
            prediction = super().predict(bank, query)
            p = prediction.end.softmax(-1)
            same = (query[0, :, :25].numpy() == room.views[0, start]).all(-1) & (query[0, :, 25] == 0).numpy()
            p[0, same, cell] = 1e-6
            p[0, same, cell, int(left[cell])] = 1 - p_wrong
            p[0, same, cell, wrong] = p_wrong
            p[0, ~torch.from_numpy(same)] = 1 / 9  # nothing is known of other moves
            return prediction._replace(end=p.log())

    model.__class__ = Doubtful
    table = imagine_views(model, [bank], [album])[0]
    known = {int(number[start]), int(number[room.targets[0, start, 0]])}
    imagined = left.copy()
    imagined[cell] = wrong
    assert set(table.states.tolist()) == known | ({view_number(imagined)} if new else set())
    end = table.end[table.row(number[start]), 0]
    assert end == view_number(imagined) if new else end in (UNKNOWN, number[room.targets[0, start, 0]])


def test_no_more_states_than_most(monkeypatch):
    monkeypatch.setattr(views, "MOST_STATES", 20)
    room = distinct_room()
    start = int(np.flatnonzero(room.free[0])[0])
    bank, album = bank_of(rows_of(room, np.array([[start]]), np.array([[0]]))[0])
    table = imagine_views(TrueModel(room), [bank], [album])[0]
    assert len(table.states) == len(set(table.states.tolist())) == 20
    assert set(np.unique(table.end)) <= {UNKNOWN, *table.states.tolist()}
    assert (table.end == UNKNOWN).any()


def test_many_banks_as_one_by_one():
    rooms, rng = rooms_of(5)
    rows = cover_banks(rng, rooms, np.array([0.3, 1, 0.5, 1, 0.7])).transitions()
    model = Surveyor()
    alone = [imagine_views(model, [bank], [album])[0] for bank, album in map(bank_of, rows)]
    banks, albums = zip(*map(bank_of, rows), strict=True)
    for together in (imagine_views(model, banks, albums), imagine_views(model, banks, albums, chunk=2)):
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.states, other.states)
            np.testing.assert_array_equal(one.end, other.end)
            np.testing.assert_allclose(one.probability, other.probability, atol=1e-5)


def test_a_map_of_a_whole_bank_is_the_room():
    """Registration and imagination together, without any training."""
    rooms, rng = rooms_of(5, 3)
    banks = cover_banks(rng, rooms)
    right = asked = 0
    for i in range(5):
        room = GridBatch.of(rooms.grids[i : i + 1])
        number = numbers(room)
        table = imagine_views(Surveyor(), *([x] for x in bank_of(banks.transitions()[i])))[0]
        for pose in np.flatnonzero(room.unique[0]):
            row = table.row(number[pose])
            for action in range(3):
                end = UNKNOWN if row is None else table.end[row, action]
                right += end == number[room.targets[0, pose, action]]
                asked += 1
                # Where it is wrong, it does not know, or it sees a pose that looks like another.
                assert row is None or end in (UNKNOWN, number[room.targets[0, pose, action]])
    assert right / asked > 0.8


def test_explores_where_its_table_says_that_most_is_new():
    """Three views in a row: 2 new cells after one move, and 9 after three."""
    knowledge = ESWMAgent(Surveyor(), seed=0).knowledge
    a, b, c = (knowledge.number(np.full((5, 5), floor)) for floor in (2, 3, 4))
    end = np.array([[b, a, a], [b, c, b], [c, c, UNKNOWN]])
    new = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 9.0]])
    knowledge.table = TransitionTable(np.array([a, b, c]), end, np.ones((3, 3)), np.zeros((3, 3)), new)
    rng = np.random.default_rng(0)
    assert knowledge.to_frontier(a, [0, 1, 2], rng, True) == 0
    assert knowledge.to_frontier(a, [1, 2], rng, True) == 1  # the mask rules the only way to more
    assert knowledge.to_frontier(b, [0, 1, 2], rng, True) == 1
    knowledge.table = knowledge.table.with_facts([(c, 2, c)])
    assert knowledge.to_frontier(a, [0, 1, 2], rng, True) == 1
    assert knowledge.to_frontier(b, [0, 1, 2], rng, True) is None


@pytest.mark.parametrize("trust_memory", [True, False])
def test_what_it_has_seen_is_new_nowhere_else_any_more(trust_memory):
    """After a move that shows something new it imagines all moves again, after one that does not, none."""
    agent, kept = ESWMAgent(OverlapOnly(), seed=0, trust_memory=trust_memory), set()
    env = gym.make("ESWM-MiniGridExplore-v0").unwrapped
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    for _ in range(12):
        action = agent.act(obs, info)
        table, state = agent.knowledge.table, agent.number(obs["state"])
        news = table.new[table.row(state), action]
        following, *_, info = env.step(action)
        agent.observe(obs, action, following, info)
        if news > 0.1 or agent.number(following["state"]) != table.end[table.row(state), action]:
            assert agent.knowledge.table is None
        elif news == 0:
            assert agent.knowledge.table is not None
        kept.add(agent.knowledge.table is not None)
        obs = following
    assert kept == {True, False}
