"""stable-baselines3 trains on vector environments."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

from eswm_gym.envs import SB3VecEnv
from eswm_gym.rooms import Room

ENV_ID = "ESWM-RandomWall19-v0"


def make(n, env_id=ENV_ID, **kwargs):
    return SB3VecEnv(gym.make_vec(env_id, n, autoreset_mode=AutoresetMode.SAME_STEP, **kwargs))


def check_equal(one, other):
    assert one.keys() == other.keys()
    for key in one:
        np.testing.assert_equal(one[key], other[key])


def test_importing_the_package_does_not_import_it():
    code = "import sys, eswm_gym.envs; sys.exit('stable_baselines3' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("env_id", [ENV_ID, "ESWM-OpenArenaExplore-v0"])
def test_equal_to_stable_baselines3s_own(same_room, env_id):
    """In the same rooms, which single environments take over from ours."""
    ours, indices = make(4, env_id), iter(range(4))

    def follow(env):
        i = next(indices)
        return same_room(env, ours.venv, i, bank=lambda: ours.reset_infos[i]["memory_bank"])

    theirs = make_vec_env(env_id, 4, wrapper_class=follow)
    assert theirs.observation_space == ours.observation_space and theirs.action_space == ours.action_space
    ours.seed(5)
    started = ours.reset()
    check_equal(theirs.reset(), started)
    ended = 0
    for actions in np.random.default_rng(0).integers(6, size=(60, 4)):
        stepped = ours.step(actions)
        results = theirs.step(actions), stepped
        check_equal(results[0][0], results[1][0])
        for one, other in zip(results[0][1:3], results[1][1:3], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        for one, other in zip(results[0][3], results[1][3], strict=True):
            one.pop("episode", None)  # make_vec_env adds Monitor
            check_equal(one, other)
        for one, other in zip(theirs.reset_infos, ours.reset_infos, strict=True):
            check_equal(one, other)
        ended += results[0][2].sum()
    assert ended >= 12
    np.testing.assert_array_equal(theirs.env_method("action_masks"), ours.env_method("action_masks"))
    assert theirs.get_attr("room", [1, 3]) == ours.get_attr("room", [1, 3])


def test_seed():
    first, second, other = make(4), make(4), make(4)
    for env, seed in ((first, 5), (second, 5), (other, 6)):
        env.seed(seed)
    observations = first.reset()
    check_equal(observations, second.reset())
    assert (observations["state"] != other.reset()["state"]).any()


def test_any_vector_environment():
    """A SyncVectorEnv, here of MiniGrid, in which attributes can be set."""
    envs = gym.make_vec("ESWM-MiniGridExplore-v0", 2, "sync", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP})
    env = SB3VecEnv(envs)
    env.reset()
    *_, infos = env.step(np.zeros(2, int))
    assert infos[0]["TimeLimit.truncated"] is False
    env.set_attr("note", 3)
    assert env.get_attr("note", 1) == [3]
    with pytest.raises(ValueError, match="got indices 0"):
        env.set_attr("note", 3, 0)


def test_episode_statistics_are_of_the_episode_that_ended():
    rooms = gym.make_vec("ESWM-RandomWall19-v0", 2, autoreset_mode="SameStep")
    env = SB3VecEnv(gym.wrappers.vector.RecordEpisodeStatistics(rooms))
    env.reset()
    total, found = np.zeros(2), 0
    for _ in range(40):
        _, rewards, dones, infos = env.step(np.zeros(2, int))
        total += rewards
        for i in range(2):
            assert ("episode" in infos[i]) == dones[i] and "episode" not in env.reset_infos[i]
            if dones[i]:
                assert infos[i]["episode"]["r"] == pytest.approx(total[i])
                total[i], found = 0, found + 1
    assert found >= 4


def test_attributes_and_options():
    env = make(3)
    assert env.has_attr("task") and not env.has_attr("nothing") and env.render_mode is None
    assert env.env_is_wrapped(gym.Wrapper, [0, 1]) == [False, False]
    env.set_options({"start": 4, "room": Room(2, range(19))})
    env.reset()
    assert env.get_attr("location") == [4, 4, 4]
    env.set_options([{"start": 4}, {}, {}])
    with pytest.raises(ValueError, match="must be the same in all rooms"):
        env.reset()


def test_images():
    pytest.importorskip("pygame")
    env = make(2, render_mode="rgb_array")
    env.reset()
    assert env.render().dtype == np.uint8
    env.close()


def test_other_modes_of_resetting():
    with pytest.raises(ValueError, match="must be SAME_STEP, got AutoresetMode.NEXT_STEP"):
        SB3VecEnv(gym.make_vec(ENV_ID, 2))


def test_ppo_trains_and_is_evaluated():
    env = VecMonitor(make(16))
    model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(512)
    assert len(model.ep_info_buffer) > 16 and 1 <= model.ep_info_buffer[0]["l"] <= 15
    reward, _ = evaluate_policy(model, env, n_eval_episodes=20)
    assert -0.15 <= reward <= 1


def test_maskable_ppo():
    sb3_contrib = pytest.importorskip("sb3_contrib")
    env = make(8)
    model = sb3_contrib.MaskablePPO(
        "MultiInputPolicy", env, n_steps=16, batch_size=64, n_epochs=1, seed=0, device="cpu"
    ).learn(256)
    observation = env.reset()
    masks = np.stack(env.env_method("action_masks"))
    actions, _ = model.predict(observation, action_masks=masks)
    assert masks[np.arange(8), actions].all()
