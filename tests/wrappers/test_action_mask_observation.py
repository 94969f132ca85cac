"""The action mask in the observation, and what `predict` does with it."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import eswm_gym  # noqa: F401
from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.baselines import RandomAgent
from eswm_gym.rooms import Room
from eswm_gym.wrappers import ActionMaskObservation, ManyGoals, MemoryBankObservation

IDS = ["ESWM-RandomWall-v0", "ESWM-OpenArenaExplore-v0", "ESWM-MiniGrid-v0"]


@pytest.mark.parametrize("env_id", IDS)
def test_every_observation_holds_the_mask_of_its_info(env_id):
    env = ActionMaskObservation(gym.make(env_id))
    obs, info = env.reset(seed=0)
    for action in range(3):
        assert obs in env.observation_space and obs["action_mask"].dtype == np.int8
        assert np.array_equal(obs["action_mask"], info["action_mask"])
        obs["action_mask"][:] = 0  # a caller's copy
        assert info["action_mask"].any()
        obs, *_, info = env.step(action)


# That there is a wrapper, and that banks and MiniGrid's images are no pictures.
EXPECTED_WARNINGS = ("is different from the unwrapped version", "has an unconventional shape")


@pytest.mark.parametrize("env_id", IDS[:2])
def test_checkers(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(ActionMaskObservation(gym.make(env_id).unwrapped), skip_render_check=True)
        sb3_check_env(ActionMaskObservation(gym.make(env_id)))
    texts = [str(warning.message) for warning in caught]
    assert [text for text in texts if not any(expected in text for expected in EXPECTED_WARNINGS)] == []


def test_masks_of_many_environments_are_stacked():
    envs = gym.make_vec(IDS[0], num_envs=3, vectorization_mode="sync", wrappers=[ActionMaskObservation])
    obs, infos = envs.reset(seed=0)
    assert obs["action_mask"].shape == (3, 6) and np.array_equal(obs["action_mask"], infos["action_mask"])


def test_spec_builds_the_wrapped_environment_again():
    env = ActionMaskObservation(MemoryBankObservation(gym.make("ESWM-RandomWall19-v0")))
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, ActionMaskObservation)
    one, two = env.reset(seed=3)[0], again.reset(seed=3)[0]
    assert one.keys() == two.keys() == {"state", "goal", "memory_bank", "action_mask"}
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_the_next_start_of_many_goals_has_its_own_mask():
    env = ActionMaskObservation(ManyGoals(gym.make("ESWM-RandomWall19-v0", memory_bank="none")))
    env.reset(seed=0, options={"room": Room(2, range(19)), "start": 1, "goal": 2})
    obs, *_, info = env.step(0)
    assert "goal_result" in info
    assert np.array_equal(obs["action_mask"], env.unwrapped.action_masks())


def test_environments_without_masks_are_refused():
    with pytest.raises(ValueError, match="action masks"):
        ActionMaskObservation(gym.make("CartPole-v1"))


# Predicting with masks


def test_a_random_agent_draws_from_the_mask():
    agent = RandomAgent(0)
    masks = np.eye(6, dtype=np.int8)
    actions, state = agent.predict({"state": np.arange(6), "action_mask": masks})
    assert actions.tolist() == list(range(6))
    actions, _ = agent.predict({"state": np.arange(6), "action_mask": masks[::-1]}, state)
    assert actions.tolist() == list(range(5, -1, -1))


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-RandomWall19Explore-v0"])
def test_predicting_with_masks_is_as_acting_with_infos(env_id):
    env = ActionMaskObservation(gym.make(env_id, memory_bank="none"))
    for seed in range(3):
        agent = ESWMAgent.from_pretrained(seed=0)
        mine, state, done = agent.spawn_many(1)[0], None, False
        obs, info = env.reset(seed=seed)
        mine.reset(obs, info)
        while not done:
            action, state = agent.predict(obs, state)
            assert action == mine.act(obs, info) and obs["action_mask"][action]
            before = obs
            obs, _, terminated, truncated, info = env.step(action)
            mine.observe(before, int(action), obs, info)
            done = terminated or truncated
