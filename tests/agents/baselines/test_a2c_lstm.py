"""A2C-LSTM: what it sees of an episode, and that it knows its room."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import eswm_gym  # noqa: F401
from eswm_gym.agents.baselines import A2CLSTMAgent
from eswm_gym.agents.baselines.a2c_lstm import MAX_STEPS, one_room
from eswm_gym.agents.baselines.train_a2c_lstm import evaluate
from eswm_gym.wrappers import FixedRoom


@pytest.fixture(scope="module")
def agent():
    return A2CLSTMAgent.from_pretrained("a2c-lstm")


def test_it_reaches_every_goal_of_its_room(agent):
    assert agent.room.n_locations == 19 and agent.room.walls.any()
    figures = evaluate(agent)
    assert figures["success_rate"] > 0.95 and figures["path_optimality"] > 0.8


def test_the_agent_sees_what_the_policy_was_trained_on(agent):
    """stable-baselines3's own `predict` on the training environment's observations, action by action."""
    env = one_room(agent.room)
    one = agent.spawn()
    for seed in range(4):
        obs, info = env.reset(seed=seed)
        one.reset(obs, info)
        for step in range(MAX_STEPS):
            action = one.act(obs, {})
            assert action == agent.policy.predict(obs, deterministic=True)[0]
            action = (action + step) % 6  # astray, to see more
            next_obs, _, done, _, info = env.step(action)
            one.observe(obs, action, next_obs, info)
            obs = next_obs
            if done:
                break


def test_padding_after_the_history_is_not_read(agent):
    rows = torch.tensor([[[-1, -1, 4, 9], [4, 2, 5, 9]]])
    torso = agent.policy.features_extractor
    padded = torch.cat([rows, torch.full((1, 6, 4), -1)], 1)
    torch.testing.assert_close(torso({"history": rows}), torso({"history": padded}))


def test_prepared_together_or_one_by_one_is_the_same(agent):
    rng = np.random.default_rng(0)
    sights = [{"state": int(s), "goal": int(g)} for s, g in rng.integers(0, 19, (12, 2))]
    chosen = []
    for together in (True, False):
        agents = [A2CLSTMAgent(agent.policy, agent.config, deterministic=False, seed=i) for i in range(12)]
        for i, (one, obs) in enumerate(zip(agents, sights, strict=True)):
            one.reset(obs, {})
            for _ in range(i % 3):
                one.observe(obs, 2, obs, {})
        if together:
            A2CLSTMAgent.prepare(agents, sights)
        chosen.append([one.act(obs, {}) for one, obs in zip(agents, sights, strict=True)])
    assert chosen[0] == chosen[1]


def test_long_episodes_slide_through_the_window(agent):
    one = agent.spawn()
    one.reset({"state": 0}, {})
    for _ in range(2 * MAX_STEPS):
        one.observe({"state": 1}, 2, {"state": 3}, {})
    assert one._seen({"goal": 5}) == [(1, 2, 3, 5)] * MAX_STEPS
    assert one.act({"state": 3, "goal": 5}, {"action_mask": [0, 0, 0, 0, 1, 0]}) == 4


def test_a_goal_of_many_begins_as_an_episode_does(agent):
    one = agent.spawn()
    one.reset({"state": 0}, {})
    one.observe({"state": 0}, 2, {"state": 7}, {"end_state": 3, "goal_result": {}})
    one.observe({"state": 7}, 1, {"state": 8}, {"end_state": 8})
    assert one._seen({"goal": 5}) == [(-1, -1, 0, 5), (0, 2, 3, 5), (-1, -1, 7, 5), (7, 1, 8, 5)]


def test_in_the_place_of_a_policy(agent):
    venv = make_vec_env(
        "ESWM-RandomWall19-v0", 3, seed=0, wrapper_class=FixedRoom, wrapper_kwargs={"room": agent.room.to_dict()}
    )
    rewards, lengths = evaluate_policy(agent, venv, n_eval_episodes=9, return_episode_rewards=True)
    assert len(rewards) == 9 and np.mean(rewards) > 0.8


def test_what_it_was_not_trained_for_is_refused(agent):
    one = agent.spawn()
    one.reset({"state": 3}, {})
    with pytest.raises(ValueError, match="needs one"):
        one.act({"state": 3}, {})
    with pytest.raises(ValueError, match="0 to 18, got 36"):
        one.act({"state": 3, "goal": 36}, {})
    env = gym.make("ESWM-RandomWall-v0")
    obs, info = env.reset(seed=0, options={"start": 0})
    one.reset({"state": 30}, info)
    with pytest.raises(ValueError, match="got 30"):
        one.act({"state": 30, "goal": 2}, {})
