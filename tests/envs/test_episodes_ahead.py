"""A single environment draws episodes ahead: nobody can tell, but by the time it takes."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

from eswm_gym.envs import OpenArenaEnv, RandomWallEnv

IDS = ("ESWM-RandomWall19-v0", "ESWM-RandomWall19Explore-v0", "ESWM-OpenArena-v0")
every_id = pytest.mark.parametrize("env_id", IDS)


def play(env, n, seed=0):
    """Everything that n episodes of three steps show."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        found.append(env.reset())
        found += [env.step(int(action)) for action in rng.integers(6, size=3)]
        found.append(env.unwrapped.room.to_dict())
    return found


@every_id
def test_same_seed_same_episodes(env_id):
    one, other = gym.make(env_id), gym.make(env_id)
    for env in (one, other):
        env.reset(seed=7)
    first = play(one, 40)
    assert data_equivalence(first, play(other, 40))
    one.reset(seed=7)
    assert data_equivalence(first, play(one, 40))
    other.reset(seed=8)
    assert not data_equivalence(first, play(other, 40))


@every_id
@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_a_state_tells_what_was_drawn_ahead(env_id, n):
    env = gym.make(env_id).unwrapped
    env.reset(seed=1)
    play(env, n)
    state = json.loads(json.dumps(env.get_state()))
    copied = copy.deepcopy(env)
    later = play(env, 20)
    assert data_equivalence(later, play(copied, 20))
    other = gym.make(env_id).unwrapped
    other.reset(seed=3)
    play(other, 4)
    for restored in (other, env):
        restored.set_state(state)
        assert data_equivalence(later, play(restored, 20))


def test_a_seed_or_a_generator_of_ones_own_forgets_what_was_drawn_ahead():
    env, fresh = RandomWallEnv(radius=2), RandomWallEnv(radius=2)
    env.reset(seed=0)
    play(env, 3)
    assert data_equivalence(env.reset(seed=5), fresh.reset(seed=5)) and data_equivalence(play(env, 9), play(fresh, 9))
    for one in (env, fresh):
        one.np_random = np.random.default_rng(4)
    assert data_equivalence(play(env, 9), play(fresh, 9))


def test_episodes_differ_and_fit_their_rooms():
    env = OpenArenaEnv(memory_bank="spanning")
    env.reset(seed=0)
    seen = set()
    for _ in range(200):
        obs, info = env.reset()
        room = env.room
        seen.add(room.states.tobytes())
        assert not room.walls[[env.location, env.goal]].any() and env.location != env.goal
        assert info["shortest_path_length"] == room.distances_to(env.goal)[env.location] > 0
        assert info["location"] == env.location and (obs["goal"] == env.observe(room.states[env.goal])).all()
        bank = info["memory_bank"]
        assert bank.shape == (18, 3) and bank.dtype == np.int64
        assert all(room.next_state(source, action) == end for source, action, end in bank.tolist())
        assert not (room.states.flags.writeable or room.targets.flags.writeable)
    assert len(seen) == 200


def test_walls_of_one_episode_are_gone_in_the_next():
    """Also in an environment that goes back to a state from before, and draws the same episodes again."""
    plain, walled = (RandomWallEnv(radius=2) for _ in range(2))
    for env in (plain, walled):
        env.reset(seed=0)
    state = walled.get_state()
    for _ in range(2):
        walled.set_state(state)
        plain.set_state(state)
        for _ in range(10):
            assert data_equivalence(plain.reset(), walled.reset())
            assert plain.room == walled.room
            free = np.flatnonzero(~walled.room.walls)
            walled.add_walls([int(at) for at in free if at not in (walled.location, walled.goal)][:3])
