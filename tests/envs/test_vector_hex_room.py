"""The vector environment returns what a SyncVectorEnv of single environments returns, and fits Gymnasium's wrappers."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers

from eswm_gym.envs import HexRoomEnv, HexRoomVectorEnv, RandomWallVectorEnv
from eswm_gym.rooms import Room, RoomConfig

HEX = [env_id for env_id in gym.registry if env_id.startswith("ESWM-") and "MiniGrid" not in env_id]
every_mode = pytest.mark.parametrize("mode", AutoresetMode, ids=lambda mode: mode.value)


def both(env_id, n, mode=AutoresetMode.NEXT_STEP, **kwargs):
    return (
        gym.make_vec(env_id, n, "sync", vector_kwargs={"autoreset_mode": mode}, **kwargs),
        gym.make_vec(env_id, n, "vector_entry_point", autoreset_mode=mode, **kwargs),
    )


def check_equal(sync, ours, path=""):
    """Keys, shapes, dtypes and values."""
    if isinstance(sync, dict):
        assert sync.keys() == ours.keys(), path
        for key in sync:
            check_equal(sync[key], ours[key], f"{path}/{key}")
    elif isinstance(sync, np.ndarray) and sync.dtype == object:  # final_obs
        assert len(sync) == len(ours)
        assert all(data_equivalence(one, other) for one, other in zip(sync, ours, strict=True)), path
    else:
        assert data_equivalence(np.asarray(sync), np.asarray(ours)), path


def check_step_by_step(sync, ours, n_steps, seed=0):
    """Step both, resetting what ended where they do not do so by themselves; return how many episodes ended."""
    rng = np.random.default_rng(seed)
    ended = 0
    for step in range(n_steps):
        actions = rng.integers(6, size=sync.num_envs)
        results = sync.step(actions), ours.step(actions)
        for part, (one, other) in enumerate(zip(*results, strict=True)):
            check_equal(one, other, f"step {step}, part {part}")
        done = results[0][2] | results[0][3]
        ended += done.sum()
        if ours.metadata["autoreset_mode"] == AutoresetMode.DISABLED and done.any():
            check_reset(sync, ours, options={"reset_mask": done})
    return ended


def check_reset(sync, ours, options=None, **kwargs):
    for one, other in zip(
        sync.reset(options=copy.copy(options), **kwargs), ours.reset(options=copy.copy(options), **kwargs), strict=True
    ):
        check_equal(one, other, "reset")


def random_states(envs):
    """What the next numbers depend on."""
    states = [generator.bit_generator.state for generator in envs.np_random]
    return [(state["state"], state["has_uint32"] and state["uinteger"]) for state in states]


@every_mode
@pytest.mark.parametrize("env_id", HEX)
def test_equal_to_sync_vector_env(env_id, mode):
    sync, ours = both(env_id, 5, mode)
    assert isinstance(sync, SyncVectorEnv) and isinstance(ours, HexRoomVectorEnv)
    assert sync.observation_space == ours.observation_space and sync.action_space == ours.action_space
    assert sync.single_observation_space == ours.single_observation_space
    assert sync.metadata == ours.metadata
    check_reset(sync, ours, seed=3)
    assert check_step_by_step(sync, ours, 100) >= 15
    check_equal(sync.call("action_masks"), ours.call("action_masks"))
    assert sync.get_attr("room") == ours.get_attr("room")
    check_reset(sync, ours)  # goes on with the same random numbers
    check_step_by_step(sync, ours, 20)
    assert random_states(sync) == random_states(ours)
    assert sync.np_random_seed == ours.np_random_seed == (3, 4, 5, 6, 7)
    check_step_by_step(sync, ours, 40)  # goes on although the generators were handed out
    check_reset(sync, ours, seed=[None, 5, None, 2**40, None])
    check_step_by_step(sync, ours, 40)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"radius": 1, "wall_length": (2, 6), "no_wall": 0.0},  # often nowhere to go: drawn again
        {"radius": 2, "wall_length": (8, 12), "no_wall": 0.0, "straightness": 0.2},  # split rooms
        {"radius": 4, "task": "explore", "max_episode_steps": 7},
    ],
)
def test_other_rooms_are_equal_too(kwargs):
    sync, ours = both("ESWM-RandomWall-v0", 16, **kwargs)
    check_reset(sync, ours, seed=0)
    check_step_by_step(sync, ours, 60)
    assert random_states(sync) == random_states(ours)


@pytest.mark.parametrize("task", ["navigate", "explore"])
def test_any_family_of_rooms(task):
    """Hidden regions, more states than locations; no time limit."""

    def make():
        return HexRoomEnv(RoomConfig(radius=2, states=tuple(range(5, 30)), hidden=0.6), task, "spanning")

    mode = AutoresetMode.SAME_STEP
    sync, ours = SyncVectorEnv([make] * 6, autoreset_mode=mode), HexRoomVectorEnv(make(), 6, autoreset_mode=mode)
    check_reset(sync, ours, seed=1)
    check_step_by_step(sync, ours, 200)
    assert sync.get_attr("room") == ours.get_attr("room")  # with what they hide


@pytest.mark.parametrize("task", ["", "Explore"])
def test_reset_options(task):
    env_id = f"ESWM-RandomWall19{task}-v0"
    sync, ours = both(env_id, 4)
    options = {"room": Room(2, range(18, -1, -1), [8, 9, 10]), "start": 4}
    check_reset(sync, ours, seed=0, options=options)
    check_step_by_step(sync, ours, 40)
    mask = np.array([True, False, True, False])
    check_reset(sync, ours, options={"reset_mask": mask, "start": 9} if not task else {"reset_mask": mask})
    check_step_by_step(sync, ours, 40)
    assert random_states(sync) == random_states(ours)


def test_mask_is_left_in_the_options():
    _, ours = both("ESWM-RandomWall19-v0", 2)
    ours.reset(seed=0)
    options = {"reset_mask": np.array([True, False])}
    ours.reset(options=options)
    assert list(options) == ["reset_mask"]


def test_many_rooms_of_one_object():
    """So many that episodes are drawn ahead unevenly; the same seeds give the same results."""
    env = RandomWallVectorEnv(1200, max_episode_steps=30, memory_bank="spanning")
    sync = gym.make_vec("ESWM-RandomWall-v0", 3, "sync")
    env.reset(seed=10)
    sync.reset(seed=10)
    rng = np.random.default_rng(0)
    for _ in range(150):
        actions = rng.integers(6, size=1200)
        results = env.step(actions)
        check_equal(sync.step(actions[:3])[0], {key: column[:3] for key, column in results[0].items()})
    assert random_states(env)[:3] == random_states(sync)


def test_arrays_are_fresh():
    _, env = both("ESWM-RandomWall19-v0", 50, AutoresetMode.SAME_STEP)
    kept = [env.reset(seed=0)]
    for _ in range(40):
        kept.append(env.step(env.action_space.sample()))
    before = copy.deepcopy(kept)
    env.step(np.zeros(50, int))
    env.reset(seed=1)
    assert data_equivalence(before, kept)
    for part in kept[-1][:2] + (kept[-1][4]["action_mask"],):  # and writing to them does no harm
        for array in part.values() if isinstance(part, dict) else [part]:
            array[...] = 0
    assert env.step(np.zeros(50, int))[4]["action_mask"].any()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_alike(again):
    _, env = both("ESWM-RandomWall19-v0", 4)
    env.reset(seed=0)
    twin = again(env)
    for actions in np.random.default_rng(0).integers(6, size=(40, 4)):
        assert data_equivalence(env.step(actions), twin.step(actions))


def test_wrappers():
    env = wrappers.RecordEpisodeStatistics(gym.make_vec("ESWM-OpenArena-v0", 6))
    env = wrappers.FlattenObservation(env)
    env = wrappers.TransformObservation(env, lambda seen: seen * 2)
    seen, infos = env.reset(seed=0)
    assert seen.shape == (6, 12)
    lengths = []
    for _ in range(40):
        *_, infos = env.step(env.action_space.sample())
        lengths += infos["episode"]["l"][infos["_episode"]].tolist() if "episode" in infos else []
    assert max(lengths) == 15  # the time limit of the id


@every_mode
def test_infos_as_lists(mode):
    sync, ours = (wrappers.DictInfoToList(env) for env in both("ESWM-RandomWall19-v0", 3, mode, max_episode_steps=1))
    assert data_equivalence(sync.reset(seed=0), ours.reset(seed=0))
    actions = sync.action_space.sample()
    assert data_equivalence(sync.step(actions)[4], ours.step(actions)[4])


def test_time_limit():
    env = gym.make_vec("ESWM-RandomWall-v0", 3, max_episode_steps=2)
    env.reset(seed=0, options={"room": Room(3, range(37)), "start": 0, "goal": 36})
    assert [env.step([0] * 3)[3].tolist() for _ in range(3)] == [[False] * 3, [True] * 3, [False] * 3]
    assert env.spec.max_episode_steps == 30 and env.spec.kwargs["max_episode_steps"] == 2
    forever = RandomWallVectorEnv(1, radius=2)
    forever.reset(seed=0, options={"start": 0, "goal": 18, "room": Room(2, range(19))})
    assert not any(forever.step([0])[3].any() for _ in range(50))


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
    _, env = both("ESWM-RandomWall19-v0", 3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=message):
        env.step(np.array(actions))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.uint64, np.int32])
def test_actions_of_other_types(dtype):
    one, two = (both("ESWM-RandomWall19-v0", 3)[1] for _ in range(2))
    for env in (one, two):
        env.reset(seed=0)
    actions = np.array([0, 1, 1])
    assert np.array_equal(one.step(actions.astype(dtype))[0]["state"], two.step(actions)[0]["state"])


def test_nothing_before_reset():
    _, env = both("ESWM-RandomWall19-v0", 3, render_mode="ansi")
    calls = (
        lambda: env.step([0, 0, 0]),
        env.render,
        lambda: env.np_random,
        lambda: env.get_attr("room"),
        lambda: env.reset(options={"reset_mask": np.array([True, True, False])}),
    )
    for call in calls:
        with pytest.raises(ResetNeeded):
            call()


def test_disabled_resetting_wants_a_reset():
    _, env = both("ESWM-RandomWall19-v0", 3, AutoresetMode.DISABLED, max_episode_steps=1)
    env.reset(seed=0)
    env.step([0, 0, 0])
    env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded, match=r"rooms \[1, 2\] have ended"):
        env.step([0, 0, 0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"seed": [1, 2]}, "3 rooms, got 2"),
        ({"options": {"reset_mask": [True, False, True]}}, "reset_mask must be a \\(3,\\) bool array"),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, "at least one True"),
        ({"options": {"begin": 1}}, "got \\['begin'\\]"),
        ({"options": {"start": 19}}, "got 19"),
    ],
)
def test_wrong_resets(kwargs, message):
    _, env = both("ESWM-RandomWall19-v0", 3)
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


@pytest.mark.parametrize("env_id", ["ESWM-RandomWall19-v0", "ESWM-RandomWall19Explore-v0"])
def test_render(env_id):
    sync, ours = both(env_id, 3, render_mode="ansi")
    for env in (sync, ours):
        env.reset(seed=0)
        for _ in range(5):
            env.step([0, 1, 2])
    assert sync.render() == ours.render()
    pytest.importorskip("pygame")
    _, ours = both(env_id, 2, render_mode="rgb_array")
    ours.reset(seed=0)
    first, second = ours.render()
    assert first.shape == second.shape and first.dtype == np.uint8 and (first != second).any()
    ours.close()


def test_attributes():
    sync, ours = both("ESWM-RandomWall19-v0", 3)
    for env in (sync, ours):
        env.reset(seed=0)
        env.step([0, 1, 2])
    for name in ("location", "goal", "shortest_path_length", "task", "n_states", "config"):
        assert sync.get_attr(name) == ours.get_attr(name)
    for name in ("add_walls", "nothing"):
        with pytest.raises(AttributeError, match=name):
            ours.call(name)
