"""What a vector environment refuses."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

from eswm_gym.envs import RandomWallVectorEnv


def make(env_id, n, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return gym.make_vec(env_id, n, "vector_entry_point", autoreset_mode=mode, **kwargs)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], "must be 3 integers, got int64 of shape \\(2,\\)"),
        ([[0], [1], [2]], "shape \\(3, 1\\)"),
        ([0.0, 1.0, 2.0], "got float64"),
        ([0, 6, 1], "from 0 to 5, got 6 in room 1"),
        ([-1, 0, 1], "got -1 in room 0"),
    ],
)
def test_wrong_actions(actions, message):
    env = make("ESWM-RandomWall19-v0", 3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(np.array(actions))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint64, np.int32])
def test_actions_of_other_types(dtype):
    one, two = (make("ESWM-RandomWall19-v0", 3) for _ in range(2))
    for env in (one, two):
        env.reset(seed=0)
    actions = np.array([0, 1, 1])
    assert np.array_equal(one.step(actions.astype(dtype))[0]["state"], two.step(actions)[0]["state"])


def test_nothing_before_reset():
    env = make("ESWM-RandomWall19-v0", 3, render_mode="ansi")
    calls = (
        lambda: env.step([0, 0, 0]),
        env.render,
        lambda: env.get_attr("room"),
        lambda: env.reset(options={"reset_mask": np.array([True, True, False])}),
    )
    for call in calls:
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises(ResetNeeded, match="call reset"):
        make("ESWM-RandomWall19-v0", 2).unwrapped.action_masks()


def test_disabled_resetting_wants_a_reset():
    env = make("ESWM-RandomWall19-v0", 3, AutoresetMode.DISABLED, max_episode_steps=1)
    env.reset(seed=0)
    env.step([0, 0, 0])
    env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded, match=r"rooms \[1, 2\] have ended"):
        env.step([0, 0, 0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"seed": [1, 2, 3]}, "one integer for all rooms, got \\[1, 2, 3\\]"),
        ({"options": {"reset_mask": [True, False, True]}}, "reset_mask must be a \\(3,\\) bool array"),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, "at least one True"),
        ({"options": {"begin": 1}}, "got \\['begin'\\]"),
        ({"options": {"start": 19}}, "got 19"),
    ],
)
def test_wrong_resets(kwargs, message):
    env = make("ESWM-RandomWall19-v0", 3)
    env.reset(seed=0)
    before = env.get_attr("room")
    with pytest.raises(ValueError, match=message):
        env.reset(**kwargs)
    assert env.get_attr("room") == before


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"num_envs": 0}, "num_envs .* got 0"),
        ({"max_episode_steps": 0}, "max_episode_steps .* got 0"),
        ({"render_mode": "human"}, "'human' shows one room"),
        ({"autoreset_mode": "sometimes"}, "'sometimes' is not a valid AutoresetMode"),
        ({"task": "sleep"}, "got 'sleep'"),
    ],
)
def test_wrong_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        RandomWallVectorEnv(**kwargs)
