"""What an agent keeps and forgets of a room of symbols."""

import gymnasium as gym
import networkx as nx
import numpy as np
from symbol_models import TrueModel, make, true_graph, walk

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import MemoryGraphAgent
from eswm_gym.rooms import Room
from eswm_gym.wrappers import ManyGoals


def test_goes_round_a_wall_that_appears_and_forgets_what_it_made_outdated(small):
    env, agent = make(small)
    obs, info = env.reset(seed=0, options={"room": small, "start": 0, "goal": 2})
    agent.reset(obs, info)
    agent.memory.add(0, 0, 1)  # it remembers the way east
    env.add_walls([1])
    way = walk(env, agent, obs, info)
    assert way[-1] == 2 and 1 not in way
    assert agent.memory.end_of(0, 0) == 0
    assert all(1 not in (t[0], t[2]) for t in agent.memory)


def test_takes_a_shortcut_where_a_wall_vanished(small):
    env, agent = make(small)
    obs, info = env.reset(seed=0, options={"room": small, "start": 7, "goal": 11})
    agent.reset(obs, info)
    agent.memory.add(7, 0, 7)  # it remembers the wall
    agent.model.room = env.room
    assert len(agent.plan(7, 11)) == 5
    env.remove_walls([8, 9, 10])
    for source in (7, 8, 9):
        agent.observe({"state": source}, 0, {"state": source + 1}, {})
    assert agent.memory.end_of(7, 0) == 8
    assert agent.plan(7, 11).states == (7, 8, 9, 10, 11)


def test_without_trust_in_memory_it_believes_the_model(small):
    agent = ESWMAgent(TrueModel(small), trust_memory=False)
    bank = np.concatenate([small.memory_bank(np.random.default_rng(0)), [[0, 4, 2]]])  # a false memory
    agent.reset({"state": 0}, {"memory_bank": bank})
    assert len(agent.plan(0, 2)) == 2
    agent.observe({"state": 0}, 0, {"state": 1}, {})
    assert len(agent.plan(0, 2)) == 2
    agent = ESWMAgent(TrueModel(small))
    agent.reset({"state": 0}, {"memory_bank": bank})
    assert agent.plan(0, 2).actions == (4,)


def test_tells_what_it_forgot(small, caplog):
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2), (3, 0, 4), (4, 1, 1)]})
    info = {}
    with caplog.at_level("INFO", logger="eswm_gym"):
        agent.observe({"state": 0}, 0, {"state": 0}, info)
    assert sorted(info["forgotten"]) == [(0, 0, 1), (1, 0, 2), (4, 1, 1)]
    assert sorted(agent.memory) == [(0, 0, 0), (3, 0, 4)]
    assert "(4, 1, 1)" in caplog.text
    agent.observe({"state": 3}, 0, {"state": 4}, info := {})
    assert info == {}  # as expected


def test_without_adapting_only_what_was_contradicted_goes(small):
    agent = ESWMAgent(TrueModel(small), adapt=False, seed=0)
    agent.reset({"state": 0}, {"memory_bank": [(0, 0, 1), (1, 0, 2)]})
    agent.observe({"state": 0}, 0, {"state": 0}, info := {})
    assert info["forgotten"] == [(0, 0, 1)]
    assert sorted(agent.memory) == [(0, 0, 0), (1, 0, 2)]


def test_a_goal_that_cannot_be_reached_from_here_is_not_forgotten(small):
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0, "goal": 1}, {"memory_bank": [(0, 0, 1), (1, 4, 4)]})
    agent.observe({"state": 0, "goal": 1}, 0, {"state": 0, "goal": 1}, {})
    assert sorted(agent.memory) == [(0, 0, 0), (1, 4, 4)]


def test_another_state_than_remembered(small):
    """Seen twice, a state where the agent expected another is no wall: what it remembers of the other is outdated."""
    agent, bank = ESWMAgent(TrueModel(small), seed=0), [(0, 0, 1), (1, 0, 2), (5, 3, 4)]
    agent.reset({"state": 0}, {"memory_bank": bank})
    agent.observe({"state": 0}, 0, {"state": 30}, info := {})
    assert sorted(agent.memory) == bank and not info
    agent.observe({"state": 0}, 0, {"state": 30}, info)
    assert sorted(info["forgotten"]) == [(0, 0, 1), (1, 0, 2)]
    assert sorted(agent.memory) == [(0, 0, 30), (5, 3, 4)] and not agent.knowledge.map.kind


def told(agent, *moves):
    """Let an agent see moves (state, action, end); all that it forgot."""
    info = {}
    for state, action, end in moves:
        agent.observe({"state": state}, action, {"state": end}, info)
    return info.get("forgotten", [])


def test_a_move_leads_where_it_led_most_often(small):
    """What the bank says counts as once: a second observation in a row is believed, one that slipped is not."""
    bank, new, old = [(0, 0, 1), (1, 0, 2), (0, 5, 4)], (0, 0, 4), (0, 0, 1)
    for seen, end in (
        ([new], 1),
        ([new, new], 4),
        ([new, old, new], 1),  # two each
        ([new, old, new, new], 4),
        ([new, new, old], 4),  # again two each: what is believed by now stays
        ([new, new, old, old], 1),
    ):
        agent = ESWMAgent(TrueModel(small), seed=0)
        agent.reset({"state": 0}, {"memory_bank": bank})
        told(agent, *seen)
        assert agent.memory.end_of(0, 0) == end, seen


def test_one_slip_and_one_wrong_state_forget_nothing(small):
    """Neither of what is remembered nor of what the model is sure of."""
    agent = ESWMAgent(TrueModel(small), seed=0)
    bank = [(0, 0, 1), (1, 0, 2), (5, 3, 4), (0, 5, 4)]
    agent.reset({"state": 0}, {"memory_bank": bank})
    assert agent.imagined(0).ends_of(1)[3] == 0  # imagined
    assert told(agent, (0, 0, 4), (1, 3, 5), (1, 0, 30)) == []
    assert sorted(agent.memory) == sorted(bank)


def test_plans_expect_as_many_tries_as_it_took(small):
    """Once a move has failed twice of three times it counts as three moves: the way round is as short or shorter."""
    agent = ESWMAgent(TrueModel(small), seed=0)
    agent.reset({"state": 0}, {"memory_bank": small.memory_bank(np.random.default_rng(0))})
    assert agent.plan(0, 1).actions == (0,)
    for _ in range(3):
        told(agent, (0, 0, 0 + 4), (0, 0, 1))
    assert agent.plan(0, 1).actions == (0,)  # four times of seven: 7 / 4 of a move, two moves round it
    told(agent, (0, 0, 4))
    assert len(agent.plan(0, 1)) == 2


def test_a_wall_that_one_blocked_move_told_of_is_taken_back(small):
    """When its state is seen again, or where there is no way without it; not after a second blocked move."""
    bank = [(0, 0, 1), (1, 0, 2)]
    for again in (
        lambda agent: told(agent, (5, 1, 1)),
        lambda agent: agent.act({"state": 0, "goal": 2}, {}),
    ):
        agent = ESWMAgent(TrueModel(small), seed=0)
        agent.reset({"state": 0}, {"memory_bank": bank})
        assert told(agent, (0, 0, 0)) == bank
        again(agent)
        assert set(bank) <= set(agent.memory) and agent.plan(0, 2).actions == (0, 0)
        assert set(bank) <= set(told(agent, (0, 0, 0)))
        agent.act({"state": 0, "goal": 2}, {})
        assert agent.memory.end_of(1, 0) is None and not agent.plan(0, 2).found


def test_what_lies_round_a_new_wall_keeps_its_place(pretrained):
    """A spanning tree that hangs together by one location only, which turns into a wall.

    The tree is a star of the seven locations of a small room. Without its centre no memory is left, and yet the
    agent knows the way round.
    """
    room = Room(1, [3, 1, 4, 9, 5, 2, 6])  # 3 1 / 4 9 5 / 2 6
    agent = pretrained.spawn(seed=0)
    centre = 9
    star = [(centre, action, room.next_state(centre, action)) for action in range(6)]
    agent.reset({"state": 4}, {"memory_bank": star})
    assert agent.plan(4, 5).states == (4, centre, 5)
    agent.observe({"state": 4, "goal": 5}, 0, {"state": 4, "goal": 5}, info := {})
    assert sorted(info["forgotten"]) == sorted(star)
    assert list(agent.memory) == [(4, 0, 4)]
    graph = true_graph(Room(1, room.states, walls=[3]))
    plan = agent.plan(4, 5)
    assert len(plan) == nx.shortest_path_length(graph, 4, 5) == 3 and nx.is_simple_path(graph, plan.states)
    for action, state in zip(plan.actions, plan.states, strict=False):
        assert room.next_state(state, action) in plan.states
    # The wall is gone again: so is the detour.
    agent.observe({"state": 4, "goal": 5}, 0, {"state": centre, "goal": 5}, info := {})
    assert info["forgotten"] == [(4, 0, 4)]
    assert agent.plan(4, 5).states == (4, centre, 5)


def test_all_bumps_into_a_wall_that_vanished_are_forgotten(pretrained):
    room = Room(1, [3, 1, 4, 9, 5, 2, 6], walls=[3])
    agent = pretrained.spawn(seed=0)
    ring = [(3, 0, 1), (1, 5, 5), (5, 4, 6), (6, 3, 2), (2, 2, 4)]
    bumps = [(4, 0, 4), (5, 3, 5), (3, 5, 3)]
    outside = [(3, 2, 3)]  # that one stays
    assert all(room.next_state(s, a) == e for s, a, e in ring + bumps + outside)
    agent.reset({"state": 4}, {"memory_bank": ring + bumps + outside})
    assert len(agent.plan(4, 5)) == 3
    agent.observe({"state": 4, "goal": 5}, 0, {"state": 9, "goal": 5}, info := {})
    assert sorted(info["forgotten"]) == sorted(bumps)
    assert sorted(agent.memory) == sorted([*ring, *outside, (4, 0, 9)])
    assert agent.plan(4, 5).states == (4, 9, 5)


def test_many_goals_in_a_room_teach_nothing_false():
    """Where a goal ends, the observation is of the next start: what the move led to is in the info."""
    env = ManyGoals(gym.make("ESWM-RandomWall19-v0"), episode_steps=100)
    for agent in (ESWMAgent.from_pretrained("random-wall", seed=0), MemoryGraphAgent(0)):
        obs, info = env.reset(seed=0)
        agent.reset(obs, info)
        reached, done = [], False
        while not done:
            action = agent.act(obs, info)
            next_obs, _, _, done, info = env.step(action)
            agent.observe(obs, action, next_obs, info)
            assert "forgotten" not in info
            reached += [info["goal_result"]["success"]] if "goal_result" in info else []
            obs = next_obs
        room = env.unwrapped.room
        assert all(room.next_state(source, action) == end for source, action, end in agent.memory)
        assert len(reached) > 15 and all(reached)
