"""What an agent has lived through, in the observation: the episodic memory and the history; and the fixed room."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import eswm_gym  # noqa: F401
from eswm_gym.rooms import Room
from eswm_gym.wrappers import EpisodicMemory, FixedRoom, History, ManyGoals

OPEN = Room(2, range(19))
START = {"room": OPEN, "start": 0, "goal": 2}


def make(env_id="ESWM-RandomWall19-v0"):
    return gym.make(env_id, memory_bank="none")


def test_memory_holds_the_last_transitions_the_most_recent_last():
    env = EpisodicMemory(make(), capacity=3)
    obs, _ = env.reset(seed=0, options={**START, "goal": 18})
    assert (obs["memory"] == -1).all() and obs["memory"].dtype == np.int16
    obs = env.step(3)[0]  # bump
    assert obs["memory"].tolist() == [[-1, -1, -1], [-1, -1, -1], [0, 3, 0]]
    for action in (0, 5, 3):
        obs = env.step(action)[0]
        assert env.observation_space.contains(obs)
    assert obs["memory"].tolist() == [[0, 0, 1], [1, 5, 5], [5, 3, 4]]
    assert (env.reset()[0]["memory"] == -1).all()


def test_memory_outlives_a_goal_and_keeps_where_its_last_step_ended():
    env = EpisodicMemory(ManyGoals(make()), capacity=3)
    env.reset(seed=0, options=START)
    env.step(0)
    obs = env.step(0)[0]
    start = obs["state"]
    assert obs["memory"][1:].tolist() == [[0, 0, 1], [1, 0, 2]]
    assert env.step(0)[0]["memory"][-1, 0] == start


def test_history_grows_then_slides():
    env = History(make(), window=3)
    obs, _ = env.reset(seed=0, options={**START, "goal": 18})
    none = [-1, -1, -1, -1]
    assert obs["history"].tolist() == [[-1, -1, 0, 18], none, none] and obs["history"].dtype == np.int16
    assert env.step(3)[0]["history"].tolist() == [[-1, -1, 0, 18], [0, 3, 0, 18], none]
    env.step(0)
    obs = env.step(5)[0]
    assert obs["history"].tolist() == [[0, 3, 0, 18], [0, 0, 1, 18], [1, 5, 5, 18]]
    assert env.observation_space.contains(obs)


def test_history_of_many_goals_says_where_each_move_ended_and_each_goal_begins():
    env = History(ManyGoals(make()), window=3)
    env.reset(seed=0, options=START)
    env.step(0)
    obs = env.step(0)[0]
    start, goal = obs["state"], obs["goal"]
    assert obs["history"].tolist() == [[0, 0, 1, 2], [1, 0, 2, 2], [-1, -1, start, goal]]
    assert env.step(0)[0]["history"][-1, [0, 3]].tolist() == [start, goal]


@pytest.mark.parametrize("wrapper", [EpisodicMemory, History])
def test_a_step_before_the_first_reset_is_refused_as_gymnasium_does(wrapper):
    with pytest.raises(gym.error.ResetNeeded):
        wrapper(make()).step(0)


def test_fixed_room_keeps_its_room_and_yields_to_options():
    env = FixedRoom(make(), OPEN)
    starts = set()
    for seed in range(5):
        env.reset(seed=seed)
        assert env.unwrapped.room == OPEN
        starts.add(env.unwrapped.location)
    assert len(starts) > 1
    other = Room(2, range(18, -1, -1))
    env.reset(options={"room": other, "start": 3})
    assert env.unwrapped.room == other and env.unwrapped.location == 3


# That there is a wrapper, and that memory and history are neither pictures nor vectors.
EXPECTED = ("ignore:.*different from the unwrapped version", "ignore:.*has an unconventional shape")
WRAPPERS = {
    "memory": lambda env: EpisodicMemory(env, capacity=9),
    "memory of many goals": lambda env: EpisodicMemory(ManyGoals(env, episode_steps=30)),
    "history": lambda env: History(env, window=4),
    "fixed room": lambda env: FixedRoom(env, OPEN.to_dict()),
}


@pytest.mark.filterwarnings("error", *EXPECTED)
@pytest.mark.parametrize("name", WRAPPERS)
def test_checkers_and_spec(name):
    env = WRAPPERS[name](make())
    check_env(WRAPPERS[name](make().unwrapped) if "goals" not in name else env, skip_render_check=True)
    sb3_check_env(env)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert type(again) is type(env) and again.observation_space == env.observation_space
    one, two = env.reset(seed=3)[0], again.reset(seed=3)[0]
    assert all(np.array_equal(one[key], two[key]) for key in one)


def test_what_cannot_be_wrapped_is_refused():
    for wrapper in (EpisodicMemory, History):
        for env_id in ("ESWM-OpenArena-v0", "CartPole-v1"):
            with pytest.raises(ValueError, match="needs"):
                wrapper(gym.make(env_id))
    with pytest.raises(ValueError, match="navigate"):
        History(gym.make("ESWM-RandomWall19Explore-v0"))
    with pytest.raises(ValueError, match="capacity"):
        EpisodicMemory(make(), capacity=0)
    with pytest.raises(ValueError, match="window"):
        History(make(), window=0)
