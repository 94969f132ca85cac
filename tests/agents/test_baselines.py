"""What the agent is compared with."""

import gymnasium as gym
import numpy as np
import pytest
from eswm_gym.agents.baselines import MemoryGraphAgent, PathIntegrationAgent, RandomAgent

import eswm_gym  # noqa: F401


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


def test_random_agent_uses_the_mask_evenly():
    agent = RandomAgent(seed=0)
    actions = [agent.act({}, {"action_mask": np.array([1, 0, 1, 0, 0, 1])}) for _ in range(600)]
    counts = np.bincount(actions, minlength=6)
    assert counts[[1, 3, 4]].sum() == 0 and counts[[0, 2, 5]].min() > 150
