"""What the agent is compared with."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import MemoryGraphAgent, PathIntegrationAgent, RandomAgent
from eswm_gym.wrappers import MemoryBankObservation


def episode(agent, seed, env_id="ESWM-RandomWall-v0"):
    """Steps taken and the shortest possible, without a time limit."""
    env = gym.make(env_id).unwrapped
    obs, info = env.reset(seed=seed)
    agent.reset(obs, info)
    shortest = info["shortest_path_length"]
    for step in range(1, 200):
        action = agent.act(obs, info)
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        if terminated:
            return step, shortest
    raise AssertionError("never arrived")


@pytest.mark.parametrize("seed", range(20))
def test_path_integration_takes_the_shortest_way(seed):
    taken, shortest = episode(PathIntegrationAgent(), seed)
    assert taken == shortest


def test_memory_graph_always_arrives_with_detours():
    ways = [episode(MemoryGraphAgent(), seed) for seed in range(20)]
    assert all(taken >= shortest for taken, shortest in ways)
    assert sum(taken for taken, _ in ways) > sum(shortest for _, shortest in ways)


def test_memory_graph_walks_back_along_what_it_remembers():
    agent = MemoryGraphAgent()
    agent.reset({}, {"memory_bank": [(1, 0, 2), (3, 5, 2), (3, 1, 3)]})
    assert agent.act({"state": 1, "goal": 3}, {}) == 0
    assert agent.act({"state": 2, "goal": 3}, {}) == 2
    assert agent.act({"state": 2, "goal": 1}, {}) == 3
    assert agent.act({"state": 2, "goal": 9}, {"action_mask": [0, 0, 0, 0, 1, 0]}) == 4


def test_path_integration_finds_shortcuts_that_it_never_walked():
    """Three of a hexagon's spokes, remembered inwards and outwards: its rim is one step from spoke to spoke."""
    agent = PathIntegrationAgent()
    agent.reset({}, {"memory_bank": [(7, 0, 1), (7, 1, 2), (3, 5, 7)]})  # 7 in the middle; 3 lies north-west of it
    assert agent.act({"state": 1, "goal": 2}, {}) == 2
    assert agent.act({"state": 1, "goal": 3}, {}) in (2, 3)
    assert agent.act({"state": 3, "goal": 2}, {}) == 0


@pytest.mark.parametrize("kind", [MemoryGraphAgent, PathIntegrationAgent])
def test_graph_agents_do_not_bump_twice_into_a_new_wall(kind):
    agent = kind(seed=0)
    agent.reset({}, {"memory_bank": [(2, 3, 1), (1, 1, 3), (3, 5, 2)]})  # 2 is east of 1, 3 between and above
    assert agent.act({"state": 1, "goal": 2}, {}) == 0
    agent.observe({"state": 1}, 0, {"state": 1}, {})
    assert agent.act({"state": 1, "goal": 2}, {}) == 1


def test_path_integration_keeps_its_coordinates_when_the_room_changes():
    """A row 1 - 2 - 3, remembered from west to east, and 4 - 5 above it, remembered only by way of 3."""
    agent = PathIntegrationAgent(seed=0)
    agent.reset({}, {"memory_bank": [(1, 0, 2), (2, 0, 3), (3, 2, 5), (5, 3, 4)]})
    assert agent.cells == {1: (1, 0, 0), 2: (1, 1, 0), 3: (1, 2, 0), 5: (1, 2, -1), 4: (1, 1, -1)}
    assert agent.act({"state": 1, "goal": 3}, {}) == 0
    agent.observe({"state": 1}, 0, {"state": 1}, {})  # the only memory of a way from 1, and the wall is all of 2
    assert agent.cells[2] == (1, 1, 0)
    assert [agent.act({"state": state, "goal": 3}, {}) for state in (1, 4, 5)] == [1, 0, 5]
    assert agent.act({"state": 4, "goal": 3}, {}) == 0  # not 5, through 2, where it has not bumped into it
    agent.observe({"state": 4}, 0, {"state": 4}, {})  # 5 is wall too: 3 is cut off
    assert {agent.act({"state": 4, "goal": 3}, {}) for _ in range(60)} == set(range(6))
    agent.observe({"state": 4}, 5, {"state": 2}, {})  # 2 is free again, from everywhere
    assert agent.act({"state": 1, "goal": 3}, {}) == 0
    assert (1, 0, 1) not in agent.memory and (4, 0, 4) in agent.memory


def test_path_integration_joins_parts_that_a_move_connects():
    agent = PathIntegrationAgent(seed=0)
    agent.reset({}, {"memory_bank": [(1, 0, 2), (7, 1, 8), (8, 0, 8)]})
    assert agent.cells == {1: (1, 0, 0), 2: (1, 1, 0), 7: (7, 0, 0), 8: (7, 1, -1)}
    assert {agent.act({"state": 1, "goal": 8}, {}) for _ in range(60)} == set(range(6))  # no way is known
    agent.observe({"state": 2}, 1, {"state": 7}, {})  # 7 lies north-east of 2, and 8 of 7
    assert agent.cells == {1: (1, 0, 0), 2: (1, 1, 0), 7: (1, 2, -1), 8: (1, 3, -2)}
    assert [agent.act({"state": state, "goal": 8}, {}) for state in (1, 2, 7)] == [0, 1, 1]
    agent.observe({"state": 8}, 5, {"state": 9}, {})  # a place never seen before
    agent.observe({"state": 9}, 1, {"state": 6}, {})  # 6 is where the bank has a wall, which is gone
    assert agent.cells[6] == (1, 4, -2) and (8, 0, 8) not in agent.memory
    assert agent.act({"state": 8, "goal": 6}, {}) == 0


@pytest.mark.parametrize("kind", [MemoryGraphAgent, PathIntegrationAgent])
def test_graph_agents_without_anywhere_to_go_still_move(kind):
    agent, mask = kind(seed=0), {"action_mask": [0, 0, 1, 0, 0, 0]}
    agent.reset({}, {"memory_bank": [(1, 0, 2)]})
    assert agent.act({"state": 1, "goal": 1}, mask) == 2  # as after the step that ended an episode
    assert agent.act({"state": 1}, mask) == 2


@pytest.mark.parametrize("kind", [RandomAgent, MemoryGraphAgent, PathIntegrationAgent])
@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-OpenArena-v0", "ESWM-RandomWall19Explore-v0"])
def test_baselines_in_the_place_of_a_policy(kind, env_id):
    wrapper = None if "Explore" in env_id else MemoryBankObservation
    env = make_vec_env(env_id, n_envs=2, seed=0, wrapper_class=wrapper)
    mean, _ = evaluate_policy(kind(), env, n_eval_episodes=4)
    assert mean > 0.8 or kind is RandomAgent or wrapper is None


def test_random_agent_uses_the_mask_evenly():
    agent = RandomAgent(seed=0)
    actions = [agent.act({}, {"action_mask": np.array([1, 0, 1, 0, 0, 1])}) for _ in range(600)]
    counts = np.bincount(actions, minlength=6)
    assert counts[[1, 3, 4]].sum() == 0 and counts[[0, 2, 5]].min() > 150
