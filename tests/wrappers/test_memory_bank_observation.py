"""The memory bank in the observation."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import eswm_gym  # noqa: F401
from eswm_gym.wrappers import MemoryBankObservation


def test_every_observation_of_an_episode_holds_the_bank_of_its_reset():
    env = MemoryBankObservation(gym.make("ESWM-RandomWall-v0"))
    obs, info = env.reset(seed=0)
    bank = info["memory_bank"].copy()
    assert env.observation_space.contains(obs)
    for _ in range(3):
        assert np.array_equal(obs["memory_bank"], bank)
        obs["memory_bank"][:] = -1  # a caller's copy
        obs, *_ = env.step(0)
    obs, _ = env.reset()
    assert not np.array_equal(obs["memory_bank"], bank)


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-OpenArena-v0"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_checkers(env_id):
    check_env(MemoryBankObservation(gym.make(env_id).unwrapped), skip_render_check=True)
    sb3_check_env(MemoryBankObservation(gym.make(env_id)))


@pytest.mark.parametrize("env_id", ["ESWM-RandomWallExplore-v0", "CartPole-v1"])
def test_environments_without_a_bank_are_refused(env_id):
    with pytest.raises(ValueError, match="spanning"):
        MemoryBankObservation(gym.make(env_id))
