"""An agent in the place of a policy of stable-baselines3."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from symbol_models import ReverseModel, TrueModel, true_graph

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.wrappers import MemoryBankObservation


def test_predict_on_one_environment_does_what_act_and_observe_do(small):
    env = MemoryBankObservation(gym.make("ESWM-RandomWall19-v0"))
    agent = ESWMAgent(TrueModel(small))
    obs, info = env.reset(seed=1, options={"room": small})
    shortest = nx.shortest_path_length(true_graph(small), int(obs["state"]), int(obs["goal"]))
    state, steps, terminated = None, 0, False
    while not terminated:
        action, state = agent.predict(obs, state, np.array([steps == 0]))
        assert np.shape(action) == ()
        obs, _, terminated, truncated, _ = env.step(action)
        steps += 1
        assert not truncated
    assert steps == shortest


@pytest.mark.parametrize(
    "env_id, wrappers", [("ESWM-RandomWall19-v0", [MemoryBankObservation]), ("ESWM-RandomWall19Explore-v0", [])]
)
def test_predict_on_many_environments_does_what_act_and_observe_do_on_each(env_id, wrappers):
    same_step = {"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP}
    envs = gym.make_vec(env_id, 3, "sync", vector_kwargs=same_step, wrappers=wrappers)
    agent = ESWMAgent(ReverseModel(), seed=3)
    obs, _ = envs.reset(seed=5)
    state, starts, taken = None, np.ones(3, bool), []
    for _ in range(40):
        actions, state = agent.predict(obs, state, starts)
        obs, _, terminations, truncations, _ = envs.step(actions)
        starts = terminations | truncations
        taken.append(actions)
    assert np.shape(taken) == (40, 3)
    episodes = 0
    for i in range(3):
        alone, env = agent.spawn_many(3)[i], gym.make(env_id)
        for wrapper in wrappers:
            env = wrapper(env)
        obs, _ = env.reset(seed=5 + i)
        alone.reset(obs, obs)
        for actions in taken:
            action = alone.act(obs, {})
            assert action == actions[i]
            next_obs, _, terminated, truncated, _ = env.step(action)
            alone.observe(obs, action, next_obs, {})
            obs = next_obs
            if terminated or truncated:
                obs, _ = env.reset()
                alone.reset(obs, obs)
                episodes += 1
    assert episodes >= 6


def test_predict_draws_from_the_agents_seed():
    def walk(seed):
        env = gym.make("ESWM-RandomWall19Explore-v0")
        agent, state, actions = ESWMAgent(ReverseModel(), seed=seed), None, []
        obs, _ = env.reset(seed=0)
        for _ in range(12):
            action, state = agent.predict(obs, state)
            obs = env.step(action)[0]
            actions.append(int(action))
        return actions

    assert walk(0) == walk(0)
    assert len({tuple(walk(seed)) for seed in range(5)}) > 1


def test_predict_begins_anew_where_an_episode_starts():
    agent = ESWMAgent.from_pretrained("random-wall")
    obs = {"state": np.array([3, 4]), "goal": np.array([5, 5])}
    _, state = agent.predict(obs, None, np.ones(2, bool))
    _, state = agent.predict({**obs, "state": np.array([6, 7])}, state, np.array([False, True]))
    assert [len(inner.memory) for inner, _, _ in state] == [1, 0]
    with pytest.raises(ValueError, match="2 environments.* 1"):
        agent.predict({"state": np.array([3]), "goal": np.array([5])}, state)


@pytest.mark.parametrize(
    "env_id, wrapper, least",
    [
        ("ESWM-RandomWall19-v0", MemoryBankObservation, 0.8),
        ("ESWM-RandomWall19-v0", None, -0.15),
        ("ESWM-RandomWall19Explore-v0", None, 6),
        ("ESWM-RandomWallExplore-v0", None, 12),
        ("ESWM-OpenArena-v0", MemoryBankObservation, 0.8),
    ],
)
def test_evaluate_policy(env_id, wrapper, least):
    env = make_vec_env(env_id, n_envs=2, seed=0, wrapper_class=wrapper)
    mean, _ = evaluate_policy(ESWMAgent.from_pretrained("random-wall", seed=0), env, n_eval_episodes=6)
    assert mean >= least
