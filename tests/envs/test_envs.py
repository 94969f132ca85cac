"""What every registered id owes to Gymnasium and stable-baselines3."""

import copy
import json
import pickle
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import eswm_gym
from eswm_gym.envs import register_envs
from eswm_gym.rooms import Room, bits_to_state, square_lattice

IDS = [env_id for env_id in gym.registry if env_id.startswith("ESWM-")]
HOUSES = [env_id for env_id in IDS if "Indoor" in env_id]
ROOMS = [env_id for env_id in IDS if "MiniGrid" not in env_id and env_id not in HOUSES]
NAVIGATE = [env_id for env_id in ROOMS if "Explore" not in env_id]
every_id = pytest.mark.parametrize(
    "env_id", [pytest.param(env_id, marks=pytest.mark.camera if env_id in HOUSES else ()) for env_id in IDS]
)
# Those with places and layouts. Houses have poses, and banks of pictures: see test_indoor_package.py.
every_discrete_id = pytest.mark.parametrize("env_id", [env_id for env_id in IDS if env_id not in HOUSES])
every_room_id = pytest.mark.parametrize("env_id", ROOMS)
WORLDS = {  # lattice, locations, actions, states, time limit
    "RandomWall": (3, 37, 6, 37, 30),
    "RandomWall19": (2, 19, 6, 19, 15),
    "OpenArena": (2, 19, 6, 64, 15),
    "Lattice": (square_lattice(6, 6), 36, 4, 36, 60),
}

# Warnings of the checkers that are right about an environment, but that we want this way.
ALLOWED = (
    "has an unconventional shape",  # a view of 5 x 5 cells, which SB3 flattens
    "the upper and lower bounds are not in [0, 255]",  # MiniGrid's encoding, which is no picture
    "The minimal resolution for an image is 36x36",
    "The system font",  # MiniGrid asks pygame for it
    "symmetric and normalized",  # metres and radians
)


def play(env, actions) -> list:
    """Every result of stepping through the actions, with a reset whenever an episode ends."""
    results = []
    for action in actions:
        results.append(env.step(as_action(env.action_space, action)))
        if results[-1][2] or results[-1][3]:
            results.append(env.reset())
    return results


def as_action(space, number):
    """One of six actions, or of as many as there are."""
    if isinstance(space, gym.spaces.Discrete):
        return number % space.n
    return np.random.default_rng(number).uniform(space.low, space.high).astype(space.dtype)


def actions(n=100):
    return np.random.default_rng(0).integers(6, size=n)


def some_actions(env_id):
    return actions(10 if env_id in HOUSES else 100)  # drawing takes time


def same(one, other) -> bool:
    """Whether all is the same to the last bit, NaN where the other has NaN."""
    return data_equivalence(without_nan(one), without_nan(other), exact=True)


def without_nan(data):
    if isinstance(data, dict):
        return {key: without_nan(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(map(without_nan, data))
    return np.nan_to_num(data, nan=9e9) if isinstance(data, np.ndarray) and data.dtype.kind == "f" else data


def world(env_id):
    return WORLDS[env_id.split("-")[1].removesuffix("Explore")]


def test_ids():
    names = (*WORLDS, "MiniGrid", "Indoor")
    assert set(IDS) == {f"ESWM-{name}{task}-v0" for name in names for task in ("", "Explore")}


def test_registration_is_idempotent():
    before = dict(gym.registry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register_envs()
    assert gym.registry == before


@every_id
def test_gymnasium_check_env(env_id):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_env(gym.make(env_id).unwrapped)
    assert not_allowed(caught) == []


@every_id
def test_stable_baselines_check_env(env_id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        checker.check_env(gym.make(env_id).unwrapped)
    assert not_allowed(caught) == []


def not_allowed(caught) -> list[str]:
    messages = [str(warning.message) for warning in caught]
    return [message for message in messages if not any(allowed in message for allowed in ALLOWED)]


@every_id
def test_twins_are_the_same(env_id):
    one, two = gym.make(env_id), gym.make(env_id)
    assert same(one.reset(seed=7), two.reset(seed=7))
    assert same(play(one, some_actions(env_id)), play(two, some_actions(env_id)))
    assert not same(one.reset(seed=7), one.reset(seed=8))


@every_id
@pytest.mark.parametrize("twin", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_continue_identically(env_id, twin):
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=3)
    play(env, actions(5))
    env.render()
    other = twin(env)
    other.render()
    assert same(play(env, some_actions(env_id)), play(other, some_actions(env_id)))
    room = "room" if env_id in ROOMS else "_space" if env_id in HOUSES else "grid"
    assert getattr(env.unwrapped, room) is not getattr(other.unwrapped, room)


@every_discrete_id
def test_place_and_layout_are_in_every_world(env_id):
    env, other = gym.make(env_id).unwrapped, gym.make(env_id).unwrapped
    _, info = env.reset(seed=3)
    assert env.place == (info["location"] if env_id in ROOMS else tuple(info["pose"].tolist()))
    other.reset(seed=4, options={env.LAYOUT_OPTION: env.layout, "start": env.place})
    assert np.array_equal(other.layout, env.layout) and other.place == env.place
    env.step(0)
    assert env.place == (env.location if env_id in ROOMS else env.pose)


@every_discrete_id
def test_space_of_memory_banks(env_id):
    env = gym.make(env_id).unwrapped
    _, info = env.reset(seed=3)
    space = env.bank_space
    assert space.low.min() == space.low.max() == -1 and space.dtype == np.int64
    if "memory_bank" in info:
        assert info["memory_bank"] in space
    if env_id in ROOMS:
        _, n, n_actions, n_states, _ = world(env_id)
        assert space.high.tolist() == [[n_states - 1, n_actions - 1, n_states - 1]] * (n - 1)
    else:
        assert space.high.tolist() == [[8] * 25 + [2] + [8] * 25] * 24


@every_id
def test_state_carries_over(env_id):
    env, other = gym.make(env_id).unwrapped, gym.make(env_id).unwrapped
    env.reset(seed=3)
    play(env, actions(5))
    state = json.loads(json.dumps(env.get_state()))
    future = play(env, some_actions(env_id))
    other.set_state(state)
    assert same(play(other, some_actions(env_id)), future)
    env.set_state(state)
    assert same(play(env, some_actions(env_id)), future)


@every_room_id
def test_spec_survives_json(env_id):
    spec = gym.make(env_id, render_mode="ansi").spec
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again == spec
    env = again.make()
    env.reset(seed=0)
    assert "#wall#" in env.render()


@every_discrete_id
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vectorised(env_id, mode):
    envs = gym.make_vec(env_id, num_envs=3, vectorization_mode=mode)
    singles = [gym.make(env_id) for _ in range(3)]
    try:
        observations, infos = envs.reset(seed=5)
        expected = [env.reset(seed=5 + i) for i, env in enumerate(singles)]
        for key in observations:
            np.testing.assert_array_equal(observations[key], [obs[key] for obs, _ in expected])
        for key in expected[0][1]:
            np.testing.assert_array_equal(infos[key], [info[key] for _, info in expected])
        for step_actions in actions(90).reshape(30, 3):
            envs.step(step_actions % envs.single_action_space.n)
    finally:
        envs.close()


def test_banks_of_split_rooms_stack():
    """Forests of different sizes fit into one array."""
    envs = gym.make_vec("ESWM-RandomWall19-v0", num_envs=16, vectorization_mode="sync", wall_length=(5, 7), no_wall=0.3)
    banks = envs.reset(seed=0)[1]["memory_bank"]
    sizes = (banks[:, :, 1] >= 0).sum(1)
    assert banks.shape == (16, 18, 3)
    assert sizes.max() == 18 and sizes.min() < 18
    for bank, size in zip(banks, sizes, strict=True):
        assert (bank[:size] >= 0).all() and (bank[size:] == -1).all()


@every_room_id
def test_time_limit(env_id):
    env = gym.make(env_id)
    lattice, n_locations, _, _, limit = world(env_id)
    env.reset(seed=0, options={"room": Room(lattice, range(n_locations)), "start": 0})
    ends = [env.step(3)[2:4] for _ in range(limit)]  # location 0 has nothing to its west, or above it
    assert ends == [(False, False)] * (limit - 1) + [(False, True)]


@every_room_id
def test_info(env_id):
    env = gym.make(env_id)
    obs, info = env.reset(seed=1)
    assert obs in env.observation_space
    step = {"action_mask", "location", "is_success", "blocked"}
    step |= {"shortest_path_length"} if env_id in NAVIGATE else set()
    assert set(info) == step | ({"memory_bank"} if env_id in NAVIGATE else set())
    *_, info = env.step(0)
    assert set(info) == step
    assert {key: type(info[key]) for key in ("location", "is_success", "blocked")} == {
        "location": int,
        "is_success": bool,
        "blocked": bool,
    }
    masks = env.get_wrapper_attr("action_masks")()
    assert masks.dtype == bool
    np.testing.assert_array_equal(masks, info["action_mask"])


@pytest.mark.parametrize("env_id", NAVIGATE)
def test_following_the_shortest_path_succeeds(env_id):
    env = gym.make(env_id)
    for seed in range(20):
        obs, info = env.reset(seed=seed)
        room, goal = env.unwrapped.room, env.unwrapped.goal
        path = room.shortest_path(info["location"], goal)
        length = info["shortest_path_length"]
        assert length == len(path) - 1 > 0
        assert as_state(obs["goal"]) == room.states[goal]
        rewards = []
        for here, there in zip(path, path[1:], strict=False):
            assert as_state(obs["state"]) == room.states[here]
            obs, reward, terminated, truncated, info = env.step(room.targets[here].tolist().index(there))
            rewards.append(reward)
            length -= 1
            assert info["shortest_path_length"] == length
            assert terminated == info["is_success"] == (length == 0)
            assert not info["blocked"] and not truncated
        assert rewards == [-0.01] * (len(path) - 2) + [1.0]
        assert data_equivalence(obs["state"], obs["goal"])


def as_state(observed) -> int:
    return int(bits_to_state(observed)) if np.ndim(observed) else observed


@pytest.mark.parametrize("env_id", NAVIGATE)
def test_bank_holds_what_the_environment_does(env_id):
    env = gym.make(env_id)
    for seed in range(10):
        bank = env.reset(seed=seed)[1]["memory_bank"]
        room, n = env.unwrapped.room, env.unwrapped.room.n_locations
        assert bank.shape == (n - 1, 3)
        assert bank.dtype == np.int64
        for source, action, end in bank[bank[:, 1] >= 0].tolist():
            start = room.location_of(source)
            others = np.flatnonzero(room.distances_from(start) > 0)
            if others.size:  # else the start is walled in
                env.reset(options={"room": room, "start": start, "goal": int(others[0])})
                assert as_state(env.step(action)[0]["state"]) == end


@pytest.mark.parametrize(
    "make",
    [
        'import eswm_gym; env = gym.make("ESWM-RandomWall-v0")',
        'env = gym.make("eswm_gym:ESWM-RandomWall-v0")',
    ],
)
def test_import_forms_in_a_fresh_process(make):
    run(
        f"import sys, gymnasium as gym; {make}; env.reset(); "
        "loaded = {'torch', 'pygame', 'minigrid', 'networkx'} & set(sys.modules); assert not loaded, loaded"
    )


def test_rooms_import_without_gymnasium():
    run("import sys; sys.modules['gymnasium'] = None; import eswm_gym.rooms; eswm_gym.rooms.Room(1, range(7))")


def test_arguments_survive_json():
    env = gym.make("ESWM-OpenArena-v0", states=list(range(20)))
    again = gym.envs.registration.EnvSpec.from_json(env.spec.to_json()).make()
    again.reset(seed=0)
    assert again.unwrapped.room.states.max() < 20


def run(code: str) -> None:
    path = [entry for entry in sys.path if entry]
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {path!r}; {code}"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""


def test_spawned_workers():
    envs = gym.make_vec(
        "eswm_gym:ESWM-RandomWall19-v0",
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"context": "spawn"},
    )
    try:
        assert envs.reset(seed=0)[1]["memory_bank"].shape == (2, 18, 3)
    finally:
        envs.close()


def test_version():
    assert eswm_gym.__version__.count(".") == 2
