"""Views with errors, in MiniGrid's rooms."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import eswm_gym  # noqa: F401
from eswm_gym.rooms.grid import ENCODING, HERE, UNSEEN
from eswm_gym.wrappers import MemoryBankObservation, ViewErrors

OTHERS = np.arange(25) != HERE


def make(share=0.05, env_id="ESWM-MiniGrid-v0"):
    return ViewErrors(gym.make(env_id), share)


def episode(env, seed=0, steps=20):
    """All observations of an episode of random moves, and the info that it began with."""
    rng = np.random.default_rng(0)
    obs, info = env.reset(seed=seed)
    shown = [obs]
    for _ in range(steps):
        obs, _, terminated, truncated, _ = env.step(int(rng.integers(3)))
        shown.append(obs)
        if terminated or truncated:
            break
    return shown, info


def same(one, other):
    return len(one) == len(other) and all(
        a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("env_id", ["ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0"])
def test_checkers(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(ViewErrors(gym.make(env_id).unwrapped, 0.1), skip_render_check=True)
        sb3_check_env(ViewErrors(gym.make(env_id), 0.1))
    with warnings.catch_warnings(record=True) as of_the_room:
        warnings.simplefilter("always")
        check_env(gym.make(env_id).unwrapped, skip_render_check=True)
        sb3_check_env(gym.make(env_id))
    bare = {str(warning.message) for warning in of_the_room}
    texts = [str(w.message) for w in caught if "is different from the unwrapped version" not in str(w.message)]
    assert [text for text in texts if text not in bare] == []


def test_without_errors_nothing_changes():
    shown, info = episode(make(0.0))
    true, of_the_room = episode(gym.make("ESWM-MiniGrid-v0"))
    assert same(shown, true)
    np.testing.assert_array_equal(info["memory_bank"], of_the_room["memory_bank"])


def test_so_many_cells_are_wrong_or_unseen():
    wrong, unseen, n = 0, 0, 0
    for seed in range(40):
        shown, true = (episode(env, seed)[0] for env in (make(0.2), gym.make("ESWM-MiniGrid-v0")))
        for one, other in zip(shown, true, strict=True):
            (a, b) = (obs["state"].reshape(25) for obs in (one, other))
            assert a.dtype == np.uint8 and a[HERE] == b[HERE]
            lit = OTHERS & (b != UNSEEN)
            n += lit.sum()
            unseen += (a == UNSEEN)[lit].sum()
            wrong += ((a != b) & (a != UNSEEN))[lit].sum()
    assert n > 3000
    assert unseen / n == pytest.approx(0.1, abs=0.02) and wrong / n == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("env_id", ["ESWM-MiniGrid-v0", "ESWM-MiniGridExplore-v0"])
def test_the_image_shows_what_the_state_does(env_id):
    env = make(0.3, env_id)
    for obs in episode(env)[0]:
        np.testing.assert_array_equal(obs["image"], ENCODING[obs["state"]])
        assert env.observation_space.contains(obs)
        assert ("goal" in obs) == (env_id == "ESWM-MiniGrid-v0")


def test_errors_are_new_at_each_step_and_the_goals_last_for_an_episode():
    env = make(0.3)
    env.reset(seed=1)
    views = [env.step(action)[0] for action in (0, 1) * 3]  # to and fro
    for view in views[::2][1:]:
        assert (view["state"] != views[0]["state"]).any()
        np.testing.assert_array_equal(view["goal"], views[0]["goal"])
    goal = gym.make("ESWM-MiniGrid-v0").reset(seed=1)[0]["goal"]
    assert (views[0]["goal"] != goal).any()
    views[0]["goal"][:] = 0  # a caller's copy
    assert env.step(0)[0]["goal"].any()
    layout = {"grid": env.unwrapped.grid_classes, "start": env.unwrapped.pose, "goal": env.unwrapped.goal}
    assert (env.reset(options=layout)[0]["goal"] != views[1]["goal"]).any()


def test_the_memory_bank_has_errors():
    shown = episode(make(0.2))[1]["memory_bank"]
    true = episode(gym.make("ESWM-MiniGrid-v0"))[1]["memory_bank"]
    assert shown.shape == true.shape and shown.dtype == true.dtype
    np.testing.assert_array_equal(shown < 0, true < 0)
    np.testing.assert_array_equal(shown[:, 25], true[:, 25])
    wrong, held = shown != true, true[:, 0] >= 0
    assert 0.08 < wrong[held].mean() < 0.3
    inside = MemoryBankObservation(make(0.2)).reset(seed=0)[0]["memory_bank"]
    np.testing.assert_array_equal(inside, shown)


def test_the_same_seed_shows_the_same_episode():
    assert same(episode(make(0.3), 4)[0], episode(make(0.3), 4)[0])
    env = make(0.3)
    first, _ = episode(env, 4)
    assert same(episode(env, 4)[0], first)
    assert not same(episode(env, 5)[0], first)


def test_what_happens_is_what_happens_without_errors():
    """The errors draw no random numbers of the room."""
    one, other = make(0.3), gym.make("ESWM-MiniGrid-v0")
    one.reset(seed=2), other.reset(seed=2)
    for action in (2, 0, 2, 1, 2):
        (_, *mine, my_info), (_, *theirs, their_info) = one.step(action), other.step(action)
        assert mine == theirs and one.unwrapped.pose == other.unwrapped.pose
        assert my_info["shortest_path_length"] == their_info["shortest_path_length"]
    one.reset(), other.reset()
    np.testing.assert_array_equal(one.unwrapped.grid_classes, other.unwrapped.grid_classes)


def test_an_episode_also_begins_with_the_step_after_an_end():
    env = gym.make_vec(
        "ESWM-MiniGrid-v0", num_envs=1, vectorization_mode="sync", wrappers=[lambda e: ViewErrors(e, 0.3)]
    )
    obs, _ = env.reset(seed=0)
    goals = [obs["goal"][0]]
    rng, over = np.random.default_rng(0), [False]
    for _ in range(300):
        obs, _, terminated, truncated, _ = env.step(rng.integers(3, size=1))
        if over[0]:
            goals.append(obs["goal"][0])
        np.testing.assert_array_equal(obs["goal"][0], goals[-1])
        over = terminated | truncated
    assert len(goals) > 3 and all((a != b).any() for a, b in zip(goals, goals[1:], strict=False))


def test_spec_builds_the_wrapped_environment_again():
    env = make(0.3)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, ViewErrors) and again.wrong_cells == 0.3
    assert same([env.reset(seed=3)[0]], [again.reset(seed=3)[0]])


@pytest.mark.parametrize("share", [-0.1, 1.01, float("nan")])
def test_what_is_no_probability_is_refused(share):
    with pytest.raises(ValueError, match=f"wrong_cells must lie between 0 and 1, got {share}"):
        make(share)
