"""Agents that explore."""

import gymnasium as gym
import numpy as np
from symbol_models import TrueModel

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent, TransitionTable
from eswm_gym.rooms import Room


def explored(agent, env_id, seeds, steps):
    """Locations visited in so many steps by agents that share their passes."""
    envs = [gym.make(env_id).unwrapped for _ in seeds]
    agents = [agent.spawn(seed) for seed in seeds]
    starts = [env.reset(seed=seed) for env, seed in zip(envs, seeds, strict=True)]
    seen = [[info["location"]] for _, info in starts]
    for one, start in zip(agents, starts, strict=True):
        one.reset(*start)
    for _ in range(steps):
        agent.prepare(agents, [obs for obs, _ in starts], [info for _, info in starts])
        for i, (one, env, (obs, info)) in enumerate(zip(agents, envs, starts, strict=True)):
            action = one.act(obs, info)
            assert info["action_mask"][action]
            next_obs, _, _, _, info = env.step(action)
            one.observe(obs, action, next_obs, info)
            starts[i] = next_obs, info
            seen[i].append(info["location"])
    return seen


def test_the_shipped_agent_explores_better_than_the_papers_rule_and_alone_as_in_company(pretrained):
    env_id, seeds = "ESWM-RandomWall19Explore-v0", range(12)
    paths = explored(pretrained, env_id, seeds, 15)
    assert explored(pretrained, env_id, seeds[:1], 15)[0] == paths[0]
    by_the_paper = explored(ESWMAgent(pretrained.model, exploration="uncertainty"), env_id, seeds, 15)
    count = [np.mean([len(set(path)) for path in some]) for some in (paths, by_the_paper)]
    assert count[0] > count[1] and count[0] > 12.5


def test_explores_one_pass_a_step(small, monkeypatch):
    from eswm_gym.agents import symbols

    agent = ESWMAgent.from_pretrained("random-wall", seed=0)
    passes = []
    imagine = symbols.imagine_tables
    monkeypatch.setattr(symbols, "imagine_tables", lambda *args: passes.append(1) or imagine(*args))
    env = gym.make("ESWM-RandomWall19Explore-v0").unwrapped
    obs, info = env.reset(seed=0, options={"room": small})
    agent.reset(obs, info)
    for step in range(8):
        action = agent.act(obs, info)
        assert len(passes) <= step + 1
        next_obs, _, _, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs


def test_goes_to_the_nearest_frontier_when_all_is_known_here():
    agent = ESWMAgent(TrueModel(Room(1, range(7))), exploration="uncertainty", seed=0)
    end = np.arange(4)[:, None].repeat(6, 1)
    end[0, 2], end[1, 4], end[2, 0] = 1, 2, -1  # 0 -> 1 -> 2, and 2 has something unknown
    agent.knowledge.table = TransitionTable(np.arange(4), end, np.ones((4, 6)), np.zeros((4, 6)))
    assert agent.explore(0) == 2
    assert agent.explore(1) == 4
    assert agent.explore(3, [1, 5]) in (1, 5)  # no way to it: anything allowed


def test_doubts_the_least_certain_move_when_no_frontier_can_be_reached():
    agent = ESWMAgent(TrueModel(Room(1, range(7))), exploration="uncertainty", seed=0)
    end, probability = np.arange(4)[:, None].repeat(6, 1), np.ones((4, 6))
    end[0, 2], end[2, 0] = 1, -1  # 0 -> 1; 2 has something unknown, and no way leads there
    agent.knowledge.table = TransitionTable(np.arange(4), end, probability, np.zeros((4, 6)))
    probability[1, 3:5] = 0.9, 0.95
    assert agent.explore(0) == 2
    assert agent.explore(1) == 3
    agent.memory.add(1, 3, 1)  # tried
    assert agent.explore(1) == 4


def test_explores_a_whole_room_within_the_mask():
    room = Room(2, range(19))
    env = gym.make("ESWM-RandomWall19Explore-v0").unwrapped
    agent = ESWMAgent(TrueModel(room), exploration="uncertainty", seed=0)
    obs, info = env.reset(seed=0, options={"room": room})
    agent.reset(obs, info)
    for _ in range(60):
        action = agent.act(obs, info)
        assert info["action_mask"][action]
        next_obs, _, terminated, _, info = env.step(action)
        agent.observe(obs, action, next_obs, info)
        obs = next_obs
        if terminated:
            break
    assert terminated and len(agent.memory.states) == 19
