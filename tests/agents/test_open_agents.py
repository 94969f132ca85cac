"""Agents in worlds that somebody else wrote: saved, side by side, in the loops of others, and with a network."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
import torch
from square_models import DOWN, NUMBERS, UP, Squares, begun, lake, walk
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.open_world import OpenWorldKnowledge
from eswm_gym.rooms import CODES, N_NAMES
from eswm_gym.world_model import Transformer, TransformerConfig, load_pretrained, save_model
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import build_model
from eswm_gym.wrappers import DiscreteStates


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model of all named actions and codes that was never trained, and its file."""
    path = tmp_path_factory.mktemp("model") / "small"
    torch.manual_seed(0)
    config = TransformerConfig(30, N_NAMES, dim=16, layers=1, heads=2, max_memories=40, state_embeddings=False, codes=8)
    model = build_model(config).eval().requires_grad_(False)
    save_model(model, path)
    return model, path


@pytest.mark.parametrize("options", [{}, {"lattice": None}], ids=("square", "codes"))
def test_a_loaded_agent_goes_on_as_the_saved_one_would(small, tmp_path, options):
    model, path = small

    def play(again):
        env, agent, everything = lake(**options), ESWMAgent(model, seed=3), []
        for episode in range(4):
            obs, info = env.reset(seed=0)
            agent = again(agent)
            agent.reset(obs, info, keep_memories=episode > 0)
            for _ in range(20):
                agent = again(agent)
                action = agent.act(obs, info)
                agent = again(agent)
                following, _, terminated, truncated, info = env.step(action)
                agent.observe(obs, action, following, info)
                everything.append((int(action), int(following["state"])))
                obs = following
                if terminated or truncated:
                    break
        return everything, list(agent.memory), agent.knowledge.to_dict(), agent.rng.random()

    def again(agent):
        agent.save(tmp_path / "agent", model=path)
        return ESWMAgent.load(tmp_path / "agent", model=model)

    assert play(again) == play(lambda agent: agent)


def test_what_an_open_world_has_taught_comes_back(small, tmp_path):
    model, path = small
    agent, obs = begun([(0, UP, 1), (1, DOWN, 0), (2, DOWN, 0), (50, UP, 60)], model=model, dead_ends=[3])
    agent.knowledge.hits, agent.knowledge.misses = 5, 2
    agent.reset(obs, {}, keep_memories=True)
    agent.save(tmp_path / "agent", model=path)
    loaded = ESWMAgent.load(tmp_path / "agent")
    mine, theirs = agent.knowledge, loaded.knowledge
    assert vars(mine).keys() == vars(theirs).keys() and isinstance(theirs, OpenWorldKnowledge)
    assert (loaded.numbers, loaded.n_actions) == (tuple(NUMBERS), 4)
    assert theirs.jumps == {(1, DOWN, 0), (2, DOWN, 0)} and theirs.dead_ends == {3}
    assert (theirs.hits, theirs.misses, theirs.cost) == (5, 2, "steps")
    assert theirs.map.next_name == mine.map.next_name >= 2**40


def steps_of(agents, envs, n, together):
    """Actions of agents side by side."""
    shown = [env.reset(seed=0) for env in envs]
    for agent, (obs, info) in zip(agents, shown, strict=True):
        agent.reset(obs, info)
    done = []
    for _ in range(n):
        if together:
            agents[0].prepare(agents, [obs for obs, _ in shown], [info for _, info in shown])
        actions = [agent.act(obs, info) for agent, (obs, info) in zip(agents, shown, strict=True)]
        for i, (agent, env, action) in enumerate(zip(agents, envs, actions, strict=True)):
            following, _, terminated, truncated, info = env.step(action)
            agent.observe(shown[i][0], action, following, info)
            shown[i] = (following, info)
            if terminated or truncated:
                shown[i] = env.reset(seed=0)
                agent.reset(*shown[i], keep_memories=True)
        done.append([int(action) for action in actions])
    return done


def test_agents_with_other_actions_act_side_by_side_as_they_do_alone(small):
    envs = [lake(), lake(lattice=None), lake("8x8"), DiscreteStates(gym.make("Taxi-v4"))]
    agents = [ESWMAgent(small[0], seed=seed) for seed in range(4)]
    together = steps_of(agents, envs, 25, True)
    for i, make in enumerate([lake, lambda: lake(lattice=None), lambda: lake("8x8"), lambda: envs[3]]):
        alone = steps_of([ESWMAgent(small[0], seed=i)], [make()], 25, False)
        assert [step[i] for step in together] == [step[0] for step in alone]
    assert len({tuple(agent.numbers) for agent in agents}) == 3


def test_the_same_seed_does_the_same(small):
    one, other, third = (steps_of([ESWMAgent(small[0], seed=seed)], [lake()], 25, False) for seed in (1, 1, 2))
    assert one == other != third


def stacked(observations):
    return {key: np.stack([obs[key] for obs in observations]) for key in observations[0]}


def test_predict_in_two_environments_with_other_actions(small):
    envs, again = ([lake(), lake(lattice=None)] for _ in range(2))
    policy = ESWMAgent(small[0], seed=0)
    spawned = policy.spawn_many(2)
    shown = [env.reset(seed=0)[0] for env in envs]
    alone = [env.reset(seed=0) for env in again]
    state, starts = None, np.array([True, True])
    for agent, (obs, _) in zip(spawned, alone, strict=True):
        agent.reset(obs, {})
    for _ in range(12):
        actions, state = policy.predict(stacked(shown), state, starts)
        expected = [agent.act(obs, {}) for agent, (obs, _) in zip(spawned, alone, strict=True)]
        assert actions.tolist() == expected
        starts = np.zeros(2, bool)
        for i in range(2):
            shown[i], _, terminated, truncated, _ = envs[i].step(actions[i])
            following, *_ = again[i].step(actions[i])
            if terminated or truncated:
                starts[i], shown[i] = True, envs[i].reset(seed=0)[0]
                alone[i] = again[i].reset(seed=0)
                spawned[i].reset(alone[i][0], {})
            else:
                spawned[i].observe(alone[i][0], int(actions[i]), following, {})
                alone[i] = (following, {})
    assert [agent.numbers for agent, _, _ in state] == [tuple(NUMBERS), tuple(CODES[:4])]


def test_evaluate_policy_in_the_lake():
    returns, lengths = evaluate_policy(
        ESWMAgent(Squares(), seed=0), Monitor(lake()), n_eval_episodes=4, return_episode_rewards=True
    )
    assert len(returns) == 4 and set(returns) <= {0.0, 1.0} and min(lengths) > 1
    envs = make_vec_env(lake, 2, seed=0)
    assert 0 <= evaluate_policy(ESWMAgent(Squares(), seed=0), envs, n_eval_episodes=4)[0] <= 1


# A network


@pytest.fixture(scope="module")
def network():
    """What training of the model of lattices starts from: hexagonal rooms and, for that, square ones as well."""
    torch.manual_seed(0)
    model = build_model(PRESETS["lattices"].model)
    assert isinstance(model, Transformer) and model.starts_from(load_pretrained("random-wall"))
    return model.eval().requires_grad_(False)


def test_a_spanning_bank_leads_to_the_goal_in_rooms_of_squares(network):
    env = gym.make("ESWM-Lattice-v0", size=(4, 4))
    reached, longer = 0, 0
    for seed in range(10):
        obs, info = env.reset(seed=seed)
        shortest = info["shortest_path_length"]
        agent = ESWMAgent(network, seed=seed)
        agent.reset(obs, info)
        for step in range(1, 61):
            action = agent.act(obs, info)
            following, _, terminated, _, info = env.step(action)
            agent.observe(obs, action, following, info)
            obs = following
            if terminated:
                reached += 1
                longer += step - shortest
                break
    assert reached >= 9 and longer <= 10


def test_the_network_finds_the_goal_of_the_lake(network):
    env, agent = lake(), ESWMAgent(network, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [walk(env, agent, 100, keep_memories=episode > 0) for episode in range(12)]
    assert any(info["is_success"] for _, info in found)
