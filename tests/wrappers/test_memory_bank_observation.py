"""The memory bank in the observation."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import eswm_gym  # noqa: F401
from eswm_gym.wrappers import MemoryBankObservation


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-MiniGrid-v0"])
def test_every_observation_of_an_episode_holds_the_bank_of_its_reset(env_id):
    env = MemoryBankObservation(gym.make(env_id))
    obs, info = env.reset(seed=0)
    bank = info["memory_bank"].copy()
    assert env.observation_space.contains(obs)
    for _ in range(3):
        assert np.array_equal(obs["memory_bank"], bank)
        obs["memory_bank"][:] = -1  # a caller's copy
        obs, *_ = env.step(0)
    obs, _ = env.reset()
    assert not np.array_equal(obs["memory_bank"], bank)


# That there is a wrapper, and that the bank is neither a picture nor a vector.
EXPECTED_WARNINGS = ("is different from the unwrapped version", "memory_bank has an unconventional shape")


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-RandomWall19-v0", "ESWM-OpenArena-v0"])
def test_checkers(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(MemoryBankObservation(gym.make(env_id).unwrapped), skip_render_check=True)
        sb3_check_env(MemoryBankObservation(gym.make(env_id)))
    texts = [str(warning.message) for warning in caught]
    assert [text for text in texts if not any(expected in text for expected in EXPECTED_WARNINGS)] == []


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall-v0", "ESWM-OpenArena-v0"])
def test_banks_of_many_environments_are_stacked(env_id):
    envs = gym.make_vec(env_id, num_envs=3, vectorization_mode="sync", wrappers=[MemoryBankObservation])
    obs, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    for i in range(3):
        alone, _ = MemoryBankObservation(gym.make(env_id)).reset(seed=i)
        assert all(np.array_equal(obs[key][i], alone[key]) for key in ("state", "goal", "memory_bank"))


def test_spec_builds_the_wrapped_environment_again():
    env = MemoryBankObservation(gym.make("ESWM-RandomWall19-v0"))
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, MemoryBankObservation)
    assert np.array_equal(env.reset(seed=3)[0]["memory_bank"], again.reset(seed=3)[0]["memory_bank"])


@pytest.mark.parametrize("env_id", ["ESWM-RandomWallExplore-v0", "CartPole-v1"])
def test_environments_without_a_bank_are_refused(env_id):
    with pytest.raises(ValueError, match="spanning"):
        MemoryBankObservation(gym.make(env_id))
