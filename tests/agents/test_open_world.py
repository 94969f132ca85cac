"""What an agent learns in worlds that somebody else wrote: of any size, with jumps, dead ends and walls between states,
and perhaps not as told."""

import warnings
from collections import Counter

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from square_models import DOWN, LEFT, NUMBERS, RIGHT, UP, Grid, Squares, begun, lake, meet, walk

from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.open_world import nearest
from eswm_gym.rooms import CODES, N_NAMES
from eswm_gym.world_model import load_pretrained
from eswm_gym.wrappers import DiscreteStates

# Size


def test_a_world_of_more_states_and_memories_than_the_model_reads():
    env = Grid(20, 15, first_name=1000)
    model = Squares()
    agent = ESWMAgent(model, seed=0)
    done, _ = walk(env, agent, 400)
    visited = {end for _, _, end in done}
    assert len(visited) > 250
    assert set(agent.memory) == set(done) and len(agent.memory) > 10 * model.config.max_memories / 2
    start, far = 1000, max(visited)
    plan = agent.plan(done[-1][2], start)
    assert plan.found and plan.states[-1] == start
    plan = agent.plan(start, far)
    cells = [env.cell(start)]
    for action in plan.actions:
        cells.append(env.to(cells[-1], action))
    assert [env.name(cell) for cell in cells] == list(plan.states) and plan.states[-1] == far
    assert max(len(bank) for bank in model.banks) <= model.config.max_memories
    assert max(max(s, e) for bank in model.banks for s, _, e in bank) < model.config.n_states


def test_a_bank_of_any_length_is_taken_and_planned_with():
    """A corridor of 200 states: the way to its end is known from memory alone."""
    bank = [(state, RIGHT, state + 1) for state in range(500, 700)]
    agent, _ = begun(bank, state=500, goal=700)
    assert len(agent.memory) == 200
    assert agent.plan(500, 700).actions == (RIGHT,) * 200
    assert not agent.plan(600, 500).found  # the model reads what is near: it says how to go back for a part only
    assert agent.plan(510, 500).actions == (LEFT,) * 10


def test_states_are_numbers_of_at_least_0():
    agent, obs = begun()
    with pytest.raises(ValueError, match="at least 0, got -3"):
        agent.act({**obs, "state": -3}, {})
    assert agent.plan(0, 2**35).found is False


def test_a_blocked_move_leaves_no_doubt():
    """Whether a place ahead has a name or none, and whatever the model thought of the move."""
    agent, obs = begun([(0, RIGHT, 1), (1, UP, 2)], state=1)
    for action in (RIGHT, DOWN):
        agent.act(obs, {})
        agent.observe(obs, action, obs, {})
        table = agent.knowledge.table_at(1)
        row = table.row(1)
        assert table.probability[row, action] == 1.0
        assert agent.knowledge.imagined(1).end[agent.knowledge.imagined(1).row(1), action] == 1


transitions = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)), max_size=25).map(
    lambda rows: [(s, a, e) for (s, a), e in {(s, a): e for s, a, e in rows}.items()]
)


@given(rows=transitions, here=st.integers(0, 9), most=st.integers(1, 12), states=st.integers(2, 8))
def test_the_nearest_transitions(rows, here, most, states):
    found = nearest(rows, here, most, states)
    held = {here} | {s for source, _, end in found for s in (source, end)}
    assert len(found) <= most and len(held) <= states
    assert len(set(found)) == len(found) and set(found) <= set(rows)
    everything = {here} | {s for source, _, end in rows for s in (source, end)}
    if len(rows) <= most and len(everything) <= states:
        assert found == rows
        return
    graph, near = nx.Graph(), nx.Graph()
    for every, some in ((graph, rows), (near, found)):
        every.add_node(here)
        every.add_edges_from((source, end) for source, _, end in some)
    assert nx.is_connected(near)
    tree = found[: len(held) - 1]  # a tree first, from here
    reached = {here}
    for source, _, end in tree:
        assert len({source, end} & reached) == 1
        reached |= {source, end}
    assert reached == held
    bumps = [source == end for source, _, end in found[len(tree) :]]
    assert bumps == sorted(bumps, reverse=True)  # then bumps, then others
    far = nx.single_source_shortest_path_length(graph, here)
    left = [far[state] for state in far if state not in held]
    assert max(far[state] for state in held) <= min(left, default=99)
    if left:  # not all that could be reached: for no other reason than the bounds
        assert len(held) == states or len(found) == most
    taken = {t for t in rows if t[0] in held and t[2] in held}
    assert len(found) == min(most, len(taken))


def test_nearest_by_hand():
    """0 - 1 - 2 - 3 in a row, a bump at 1, and two ways between 0 and 1."""
    rows = [(2, RIGHT, 3), (1, RIGHT, 2), (0, RIGHT, 1), (1, LEFT, 0), (1, UP, 1), (3, UP, 3)]
    assert nearest(rows, 0, 99, 99) == rows
    assert nearest(rows, 0, 99, 3) == [(0, RIGHT, 1), (1, RIGHT, 2), (1, UP, 1), (1, LEFT, 0)]
    assert nearest(rows, 0, 3, 3) == [(0, RIGHT, 1), (1, RIGHT, 2), (1, UP, 1)]
    assert nearest(rows, 3, 2, 99) == [(2, RIGHT, 3), (1, RIGHT, 2)]
    assert nearest(rows, 8, 2, 99) == []


# Dead ends


@pytest.mark.parametrize("seed", range(3))
def test_where_an_episode_failed_is_never_entered_again(seed):
    env, agent = lake("8x8"), ESWMAgent(Squares(96, 200), seed=seed)  # a vocabulary as large as that of `lattices`
    ends, reached = Counter(), 0
    for episode in range(25):
        done, info = walk(env, agent, 200, keep_memories=episode > 0)
        if info["terminated"] and not info["is_success"]:
            ends[done[-1][2]] += 1
        reached += info["is_success"]
    assert reached and ends and set(ends.values()) == {1}
    assert agent.knowledge.dead_ends == set(ends)


def test_dead_ends_of_info_are_kept_out_of():
    """0 1 / 2 3: the way over 1 is remembered, that over 2 follows from the rest."""
    bank = [(0, RIGHT, 1), (1, DOWN, 3), (0, DOWN, 2)]
    agent, _ = begun(bank, goal=3)
    assert agent.plan(0, 3).states == (0, 1, 3)
    agent, _ = begun(bank, goal=3, dead_ends=[1])
    assert agent.plan(0, 3).states == (0, 2, 3)
    agent, obs = begun(bank, goal=3, dead_ends=[1, 2])
    assert not agent.plan(0, 3).found
    assert all(agent.explore(0) not in (RIGHT, DOWN) for _ in range(10))


def test_a_goal_where_the_episode_ends_is_no_dead_end():
    agent, obs = begun()
    meet(agent, obs, RIGHT, 1, terminated=True, is_success=True)
    meet(agent, obs, DOWN, 2, terminated=False, is_success=False)
    meet(agent, obs, LEFT, 3, terminated=True, is_success=False)
    assert agent.knowledge.dead_ends == {3}


# Further episodes


def test_another_episode_keeps_the_map_and_goes_to_the_goal_that_paid():
    env, agent = lake(), ESWMAgent(Squares(), seed=0)
    lengths, episode = [], 0
    while len(lengths) < 6:
        before = list(agent.memory) if episode else []
        obs, info = env.reset(seed=0)
        agent.reset(obs, info, keep_memories=episode > 0)
        assert list(agent.memory) == before and agent.route == []
        done, info = walk(env, agent, 100, begin=False)
        if info["is_success"]:
            lengths.append(len(done))
        episode += 1
        assert episode < 30
    assert lengths[-1] == 6  # the shortest way
    obs, info = env.reset(seed=0)
    agent.reset(obs, info)
    assert len(agent.memory) == 0 and not agent.knowledge.dead_ends


def test_other_actions_begin_anew():
    agent, obs = begun([(0, RIGHT, 1)])
    agent.reset(obs, {}, keep_memories=True)
    assert len(agent.memory) == 1 and agent.n_actions == 4 and agent.numbers == tuple(NUMBERS)
    agent.reset({**obs, "actions": CODES[:3]}, {}, keep_memories=True)
    assert len(agent.memory) == 0 and agent.n_actions == 3 and agent.numbers == tuple(CODES[:3])
    agent.reset({"state": 0}, {})
    assert agent.numbers is None and agent.n_actions == N_NAMES


def test_actions_that_the_model_lacks_are_refused():
    with pytest.raises(ValueError, match="different numbers from 0 to 18"):
        ESWMAgent(Squares()).reset({"state": 0, "actions": np.array([0, 19])}, {})
    with pytest.raises(ValueError, match="different numbers from 0 to 5"):
        ESWMAgent(load_pretrained("random-wall")).reset({"state": 0, "actions": CODES[:2]}, {})


def test_the_first_episode_is_careful_and_later_ones_are_not():
    agent, obs = begun([(0, RIGHT, 1)])
    assert agent.knowledge.cost == "caution"
    agent.reset(obs, {}, keep_memories=True)
    assert agent.knowledge.cost == "steps"
    agent.reset(obs, {})
    assert agent.knowledge.cost == "caution"


# Jumps and walls


def test_a_fall_that_leads_back_to_the_start_is_a_fact_and_no_geometry():
    """1 2 3 above 0 and the cliff: down from 2 leads to 0, and so does down from 1."""
    agent, obs = begun([(0, UP, 1), (1, RIGHT, 2), (2, RIGHT, 3)], state=2)
    banks = agent.model.banks
    meet(agent, obs, DOWN, 0)
    fall = (2, DOWN, 0)
    assert fall in agent.memory and fall in agent.knowledge.jumps
    banks.clear()
    assert agent.plan(3, 0).states == (3, 2, 0)
    table = agent.knowledge.table_at(2)
    assert banks and all([2, NUMBERS[DOWN], 0] not in bank for bank in banks)
    assert table.end[table.row(2), DOWN] == 0 and table.probability[table.row(2), DOWN] == 1
    assert table.end[table.row(1), DOWN] == 0  # geometry still holds
    assert list(agent.memory) == [(0, UP, 1), (1, RIGHT, 2), (2, RIGHT, 3), fall]


def test_of_two_ways_into_a_state_by_one_action_both_are_doubted():
    falls = [(1, DOWN, 0), (2, DOWN, 0)]
    agent, _ = begun([*falls, (1, RIGHT, 2), (5, DOWN, 5)])
    assert agent.knowledge.jumps == set(falls)
    assert agent.plan(1, 0).actions == agent.plan(2, 0).actions == (DOWN,)


def test_the_agent_in_cliff_walking():
    env = DiscreteStates(
        gym.make("CliffWalking-v1", max_episode_steps=200), lattice="square", actions=("up", "right", "down", "left"),
        goal=47,
    )  # fmt: skip
    agent, table = ESWMAgent(Squares(60, 200), seed=0), gym.make("CliffWalking-v1").unwrapped.P
    cell, lengths = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episode in range(8):
            done, info = walk(env, agent, 200, keep_memories=episode > 0)
            lengths.append(len(done) if info["is_success"] else None)
    cell = {number: state for state, number in env._number.items()}
    assert lengths[-1] == 13
    for state, action, end in agent.memory:
        assert cell[end] == table[cell[state]][action][0][1]
    falls = {t for t in agent.memory if cell[t[0]] in range(25, 35) and t[1] == 2}
    assert falls and falls <= agent.knowledge.jumps


def test_a_wall_between_two_free_states_is_a_fact_and_no_geometry():
    """0 1 / 2 3, with a wall between 0 and 1 that no location takes up."""
    bank = [(0, DOWN, 2), (2, RIGHT, 3), (3, UP, 1)]
    agent, obs = begun(bank)
    assert agent.plan(0, 1).states == (0, 1)
    meet(agent, obs, RIGHT, 0)
    assert (0, RIGHT, 0) in agent.memory and agent.knowledge.jumps == {(0, RIGHT, 0)}
    assert set(bank) < set(agent.memory)
    agent.model.banks.clear()
    assert agent.plan(0, 1).states == (0, 2, 3, 1)
    assert agent.model.banks and all([0, NUMBERS[RIGHT], 0] not in bank for bank in agent.model.banks)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (0, 0)


def test_what_contradicts_a_memory_shows_that_the_world_has_changed():
    agent, obs = begun([(0, RIGHT, 1), (1, RIGHT, 2)])
    meet(agent, obs, RIGHT, 0)
    assert list(agent.memory) == [(0, RIGHT, 0)]  # state 1 is not where it was


# The wrong lattice


def test_hits_and_misses_are_of_moves_that_were_not_made_before():
    agent, obs = begun([(0, DOWN, 2), (2, RIGHT, 3), (3, UP, 1)])
    meet(agent, obs, RIGHT, 1)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 0)
    meet(agent, obs, RIGHT, 1)
    meet(agent, obs, DOWN, 2)
    meet(agent, obs, LEFT, 7)  # nothing was known of it
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 0)
    meet(agent, {**obs, "state": 1}, LEFT, 3)
    assert (agent.knowledge.hits, agent.knowledge.misses) == (1, 1)


def told_wrongly():
    """What is called left, down, right and up goes right, left, up and down."""
    return Grid(6, 6, walls=[(1, 1)], order=(RIGHT, LEFT, UP, DOWN))


def no_lattice():
    """Any action leads from anywhere to anywhere."""
    cells = [(x, y) for x in range(5) for y in range(5)]
    rng = np.random.default_rng(0)
    return Grid(5, 5, jumps={(cell, action): cells[rng.integers(25)] for cell in cells for action in range(4)})


@pytest.mark.parametrize("make", [told_wrongly, no_lattice])
def test_a_wrong_lattice_is_noticed_once_and_then_facts_alone_count(make):
    env, agent = make(), ESWMAgent(Squares(), seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        walk(env, agent, 250)
        walk(env, agent, 150, keep_memories=True)
    (one,) = caught
    assert "did not lead where the model was sure" in str(one.message)
    assert "the lattice or the names of the actions are wrong" in str(one.message)
    assert agent.knowledge.is_misled and agent.knowledge.misses >= 4
    truth = nx.DiGraph([(cell, env.to(cell, action)) for cell in every_cell(env) for action in range(4)])
    steps = nx.single_source_shortest_path_length(truth, (0, 0))
    assert {env.cell(state) for state in agent.memory.states} == steps.keys()
    agent.model.banks.clear()
    known = nx.DiGraph([(source, end) for source, _, end in agent.memory])
    assert all(env.name(env.to(env.cell(source), action)) == end for source, action, end in agent.memory)
    for state in known:
        assert len(agent.plan(0, state)) == nx.shortest_path_length(known, 0, state)
    assert not any(agent.model.banks)  # the model is shown nothing any more
    env.goal = max(steps, key=steps.get)
    done, info = walk(env, agent, 100, keep_memories=True)
    assert info["is_success"] and len(done) == nx.shortest_path_length(known, 0, env.name(env.goal))


def every_cell(env):
    return [(x, y) for x in range(env.width) for y in range(env.height) if (x, y) not in env.walls]


def test_names_that_are_turned_around_alike_do_no_harm():
    env, agent = Grid(6, 6, walls=[(1, 1)], order=(UP, LEFT, DOWN, RIGHT)), ESWMAgent(Squares(), seed=0)
    walk(env, agent, 200)
    assert (agent.knowledge.misses, agent.knowledge.hits > 5) == (0, True)


@pytest.mark.parametrize("seed", range(3))
def test_the_right_lattice_is_never_doubted(seed):
    env, agent = lake(), ESWMAgent(Squares(), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for episode in range(15):
            walk(env, agent, 100, keep_memories=episode > 0)
    assert agent.knowledge.misses == 0 and agent.knowledge.hits > 0


def test_codes_are_never_doubted():
    env, agent = lake(lattice=None), ESWMAgent(Squares(), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [walk(env, agent, 100, keep_memories=episode > 0)[1]["is_success"] for episode in range(40)]
    assert any(found)


def test_once_misled_a_saved_agent_does_not_warn_again():
    agent, obs = begun([(0, RIGHT, 1)])
    agent.knowledge.misses = 6
    other, _ = begun([(0, RIGHT, 1)])
    other.knowledge.load_dict(agent.knowledge.to_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for action, end in ((UP, 2), (DOWN, 3), (LEFT, 4)):
            meet(other, obs, action, end)
    assert other.knowledge.is_misled


def test_a_capacity_limits_the_bank_all_the_same():
    agent = ESWMAgent(Squares(), seed=0, capacity=5)
    done, _ = walk(Grid(6, 6), agent, 40)
    assert list(agent.memory) == list(dict.fromkeys(done[::-1]))[:5][::-1]
    agent = ESWMAgent(Squares(max_memories=60), seed=0, capacity=100)  # more than the model reads
    walk(Grid(6, 6), agent, 110)
    assert 60 < len(agent.memory) <= 100


@pytest.mark.parametrize("seed", range(3))
def test_a_wall_that_is_put_in_the_way_is_gone_around_in_the_next_episode(seed):
    env, agent = Grid(5, 5, goal=(4, 4)), ESWMAgent(Squares(), seed=seed)
    for episode in range(4):
        done, _ = walk(env, agent, 100, keep_memories=episode > 0)
    assert len(done) == 8
    blocked = done[3][2]
    env.walls = {env.cell(blocked)}
    lengths = [len(walk(env, agent, 100, keep_memories=True)[0]) for _ in range(3)]
    assert lengths[-1] == 8 and max(lengths) < 20
    assert not [t for t in agent.memory if blocked in (t[0], t[2])]


def test_a_place_that_was_taken_for_another_state_is_not_gone_to_for_ever():
    agent, obs = begun([(0, RIGHT, 1)], state=1)
    agent.knowledge.map.moves.add(1, UP, 5)  # a place that was named and turned out to be state 5, but wrongly so
    obs = meet(agent, obs, UP, 1)
    assert agent.knowledge.map.moves.end_of(1, UP) is None
    assert agent.knowledge.expected(1, UP) == 1
    assert agent.knowledge.imagined(1).end[agent.knowledge.imagined(1).index[1], UP] == 1
