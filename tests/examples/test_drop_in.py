"""The agent and the environments in the loops and wrappers of others."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics, RecordVideo, TimeLimit
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.wrappers import MemoryBankObservation

# Without houses: their actions are not discrete, and have no mask.
ENV_IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "Indoor" not in env_id]
GOALS = [env_id for env_id in ENV_IDS if "Explore" not in env_id]


def agent_for(env_id):
    return ESWMAgent.from_pretrained("minigrid" if "MiniGrid" in env_id else "random-wall", seed=0)


@pytest.mark.parametrize("env_id", GOALS)
def test_evaluate_policy_gets_nearly_what_shortest_paths_get(env_id):
    env = Monitor(MemoryBankObservation(gym.make(env_id)))
    env.reset(seed=1)
    mean, _ = evaluate_policy(agent_for(env_id), env, n_eval_episodes=5)
    env = gym.make(env_id)
    env.reset(seed=1)
    best = np.mean([1 - 0.01 * (env.reset()[1]["shortest_path_length"] - 1) for _ in range(5)])
    assert best - 0.05 <= mean <= best + 1e-6


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_evaluate_policy_on_many_environments_beats_chance(env_id):
    wrapper = MemoryBankObservation if env_id in GOALS else None
    n_actions = gym.make(env_id).action_space.n
    mean, chance = (
        evaluate_policy(agent, make_vec_env(env_id, 2, seed=0, wrapper_class=wrapper), n_eval_episodes=4)[0]
        for agent in (agent_for(env_id), RandomAgent(n_actions=n_actions))
    )
    assert mean > chance


@pytest.mark.parametrize("env_id", GOALS)
def test_evaluate_policy_without_a_memory_bank(env_id):
    """The agent then starts with an empty one and looks for the goal."""
    returns, lengths = evaluate_policy(
        agent_for(env_id), Monitor(gym.make(env_id)), n_eval_episodes=2, return_episode_rewards=True
    )
    limit = gym.spec(env_id).max_episode_steps
    for one, steps in zip(returns, lengths, strict=True):
        arrived = 1 - 0.01 * (steps - 1)
        assert one == pytest.approx(arrived) or (steps == limit and one == pytest.approx(-0.01 * limit))


def test_flat_observations_are_one_hot():
    env = FlattenObservation(gym.make("ESWM-RandomWall19-v0"))
    flat, _ = env.reset(seed=0)
    room, goal = env.unwrapped.room, env.unwrapped.goal
    hot = {int(room.states[goal]), 19 + int(room.states[env.unwrapped.location])}  # `goal` comes before `state`
    assert flat.shape == (38,) and set(np.flatnonzero(flat)) == hot and flat.sum() == 2


@pytest.mark.parametrize("env_id", ENV_IDS)
def test_gymnasium_wrappers_around_an_agent_that_never_arrives(env_id):
    env = RecordEpisodeStatistics(TimeLimit(gym.make(env_id, max_episode_steps=-1), 3))
    agent = RandomAgent(0, n_actions=env.action_space.n)
    obs, info = env.reset(seed=0)
    rewards, truncated = [], False
    while not truncated:
        obs, reward, terminated, truncated, info = env.step(agent.act(obs, info))
        rewards.append(reward)
        assert not terminated
    assert info["episode"]["l"] == len(rewards) == 3
    assert info["episode"]["r"] == pytest.approx(sum(rewards))


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-MiniGrid-v0"])
def test_record_video(env_id, tmp_path):
    pytest.importorskip("moviepy")
    env = RecordVideo(gym.make(env_id, render_mode="rgb_array"), str(tmp_path))
    env.reset(seed=0)
    env.step(0)
    env.close()
    assert [path.name for path in tmp_path.iterdir()] == ["rl-video-episode-0.mp4"]
