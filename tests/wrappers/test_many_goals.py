"""One room with many goals, one after another."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import eswm_gym  # noqa: F401
from eswm_gym.rooms import Room
from eswm_gym.wrappers import ManyGoals

OPEN = Room(2, range(19))  # location i shows state i; rows of 3, 4, 5, 4 and 3 locations


def make(**options):
    return ManyGoals(gym.make("ESWM-RandomWall19-v0", memory_bank="none"), **options)


def test_a_reached_goal_is_followed_by_another_in_the_same_room():
    env = make()
    env.reset(seed=0, options={"room": OPEN, "start": 0, "goal": 2})
    _, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["end_state"]) == (-0.01, False, False, 1)
    assert "goal_result" not in info
    obs, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["end_state"]) == (1.0, False, False, 2)
    assert info["goal_result"] == {"success": True, "steps": 2, "shortest": 2, "began": 0}
    assert env.unwrapped.room == OPEN
    assert (obs["state"], obs["goal"]) == (env.unwrapped.location, env.unwrapped.goal)
    assert not info["is_success"] and info["location"] == obs["state"]  # of the new start


def test_a_missed_goal_is_given_up_at_the_time_limit():
    env = make()
    env.reset(seed=0, options={"room": OPEN, "start": 0, "goal": 18})
    for _ in range(14):
        assert "goal_result" not in env.step(3)[4]  # off the lattice
    obs, _, terminated, truncated, info = env.step(3)
    assert not terminated and not truncated and info["end_state"] == 0
    assert info["goal_result"] == {"success": False, "steps": 15, "shortest": 4, "began": 0}
    for _ in range(15):
        info = env.step(3)[4]
    assert "goal_result" in info or env.unwrapped.location != 0


def test_only_the_number_of_steps_ends_an_episode():
    env = make(episode_steps=40)
    env.reset(seed=0)
    ends = [env.step(int(env.np_random.integers(6)))[2:4] for _ in range(40)]
    assert ends == [(False, False)] * 39 + [(False, True)]
    room = env.unwrapped.room
    env.reset()
    assert env.unwrapped.room != room
    env.reset(options={"elapsed": 38})
    assert [env.step(0)[3] for _ in range(2)] == [False, True]


def test_progress_is_rewarded_if_asked_for():
    env = make(progress_reward=0.5)
    env.reset(seed=0, options={"room": OPEN, "start": 0, "goal": 2})
    assert [env.step(action)[1] for action in (0, 3, 3, 0, 0)] == pytest.approx([0.49, -0.51, -0.01, 0.49, 1.5])


def test_a_goal_that_is_cut_off_is_no_nearer():
    env = make(progress_reward=0.5)
    env.reset(seed=0, options={"room": OPEN, "start": 0, "goal": 18})  # 4 steps away
    walls = [14, 15, 17]  # around the goal's corner
    env.unwrapped.add_walls(walls)
    assert env.unwrapped.shortest_path_length == -1
    assert env.step(0)[1] == pytest.approx(-0.01)
    env.unwrapped.remove_walls(walls)
    assert env.step(3)[1] == pytest.approx(-0.01)  # back where it was


def test_same_seed_same_goals():
    def goals(seed):
        env = make()
        shown = [env.reset(seed=seed)[0]]
        return [(obs["state"], obs["goal"]) for obs in shown + [env.step(i % 6)[0] for i in range(60)]]

    assert goals(1) == goals(1) != goals(2)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_checker_and_spec():
    check_env(make(), skip_render_check=True)
    env = make(episode_steps=50, progress_reward=0.5)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, ManyGoals) and (again.episode_steps, again.progress_reward) == (50, 0.5)
    assert np.array_equal(env.reset(seed=3)[0]["goal"], again.reset(seed=3)[0]["goal"])


@pytest.mark.parametrize("env_id", ["ESWM-RandomWallExplore-v0", "CartPole-v1"])
def test_environments_without_goals_are_refused(env_id):
    with pytest.raises(ValueError, match="navigate"):
        ManyGoals(gym.make(env_id))
