"""MiniGrid's own environments as views of classes, against what MiniGrid itself shows and does."""

import warnings

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from minigrid.core.world_object import Ball, Box, Door, Floor, Goal, Key, Lava, Wall
from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper, ViewSizeWrapper
from minigrid_worlds import Corridor
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from eswm_gym.wrappers import MiniGridViews
from eswm_gym.wrappers.minigrid_views import OBJECTS

LEFT, RIGHT, AHEAD = 0, 1, 2
IN_FRONT, HERE = (3, 5), (3, 6)  # of a view of 7 x 7 cells: columns from left to right, the farthest cell first
# Ids, and something that one sees there
IDS = [("Empty-8x8", "wall"), ("FourRooms", "goal"), ("MultiRoom-N2-S4", "door"), ("Unlock", "key"),
       ("LavaGapS5", "lava"), ("DoorKey-5x5", "key"), ("Fetch-8x8-N3", "ball")]  # fmt: skip
# MiniGrid's own codes: 0 unseen, 1 empty, 2 wall, 3 floor, 4 door, 5 key, 6 ball, 7 box, 8 goal, 9 lava
NAMES = ("unseen", "empty", "wall", "empty", "door", "key", "ball", "box", "goal", "lava")
OPEN = 0  # state of a door


def make(name="Empty-5x5", **options):
    return MiniGridViews(gym.make(f"MiniGrid-{name}-v0", **options))


def classes(image):
    """The classes that an image of MiniGrid stands for, cell by cell."""
    size = len(image)
    names = [["empty" if (c, s) == (4, OPEN) else NAMES[c] for c, _, s in column] for column in image.tolist()]
    names[size // 2][size - 1] = "empty"  # the agent's own cell, or what it carries
    return np.array([[OBJECTS.index(name) for name in column] for column in names])


def episode(env, seed=0, steps=60, **options):
    """(view, pose, reward, ended, success) at the start of an episode of random moves and after each of them."""
    rng = np.random.default_rng(0)
    obs, info = env.reset(seed=seed, **options)
    shown = [(obs["state"].copy(), tuple(info["pose"].tolist()), 0.0, False, info["is_success"])]
    while len(shown) <= steps and not shown[-1][3]:
        obs, reward, terminated, truncated, info = env.step(int(rng.integers(3)))
        ended = terminated or truncated
        shown.append((obs["state"].copy(), tuple(info["pose"].tolist()), reward, ended, info["is_success"]))
    return shown


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(one, other, strict=True)
    )


def corridor(*things, **options):
    env = MiniGridViews(Corridor(*things, **options))
    env.reset(seed=0)
    return env


def ahead(env):
    """What a move ahead shows in front, the cell (x, y) where it ends, and whether that ended the episode."""
    obs, _, terminated, _, info = env.step(AHEAD)
    assert info["pose"][2] == 0
    return OBJECTS[obs["state"][IN_FRONT]], tuple(info["pose"][:2].tolist()), terminated


@pytest.mark.parametrize(("name", "thing"), IDS)
def test_views_are_minigrids(name, thing):
    env, kinds = make(name), set()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        obs, info = env.reset(seed=seed)
        for _ in range(60):
            world = env.unwrapped
            np.testing.assert_array_equal(obs["state"], classes(world.gen_obs()["image"]))
            assert obs["state"].dtype == np.uint8 and env.observation_space.contains(obs)
            assert info["pose"].dtype == np.int64
            assert info["pose"].tolist() == [*world.agent_pos, world.agent_dir]
            kinds |= set(obs["state"].ravel().tolist())
            obs, _, terminated, truncated, info = env.step(int(rng.integers(3)))
            if terminated or truncated:
                break
    assert OBJECTS.index(thing) in kinds


@pytest.mark.parametrize("side", [5, 9])
def test_views_of_another_size(side):
    env = MiniGridViews(ViewSizeWrapper(gym.make("MiniGrid-FourRooms-v0"), side))
    obs, _ = env.reset(seed=0)
    assert env.observation_space["state"].shape == (side, side)
    for action in (LEFT, LEFT, AHEAD, RIGHT):
        grid, seen = env.unwrapped.gen_obs_grid(side)
        np.testing.assert_array_equal(obs["state"], classes(grid.encode(seen)))
        obs, *_ = env.step(action)


def warnings_of(check, env, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check(env, **options)
    return [str(warning.message) for warning in caught]


def test_gymnasiums_check():
    told = warnings_of(check_env, MiniGridViews(Corridor(Door("red"), Key("red"), None)), skip_render_check=True)
    assert [text for text in told if "is different from the unwrapped version" not in text] == []


def test_gymnasiums_check_of_an_id():
    told = warnings_of(check_env, MiniGridViews(gym.make("MiniGrid-Unlock-v0").unwrapped), skip_render_check=True)
    assert [text for text in told if "is different from the unwrapped version" not in text] == []


@pytest.mark.parametrize("name", ["Empty-5x5", "Unlock"])
def test_stable_baselines3s_check(name):
    told = warnings_of(sb3_check_env, make(name))
    assert [text for text in told if "state has an unconventional shape" not in text] == []


def test_spaces():
    env = make()
    assert env.action_space == spaces.Discrete(3)
    assert set(env.observation_space) == {"state"}


def test_a_closed_door_is_opened_and_then_passed():
    door = Door("red")
    env = corridor(door, None, None)
    assert OBJECTS[env.reset()[0]["state"][IN_FRONT]] == "door"
    assert ahead(env) == ("empty", (1, 1), False) and door.is_open
    assert ahead(env) == ("empty", (2, 1), False)
    assert ahead(env) == ("empty", (3, 1), False) and door.is_open
    assert env.unwrapped.step_count == 3


def test_a_locked_door_needs_a_key():
    door = Door("red", is_locked=True)
    env = corridor(door)
    assert ahead(env) == ("door", (1, 1), False) and door.is_locked
    door = Door("red", is_locked=True)
    env = corridor(Key("red"), door, None)
    assert ahead(env) == ("empty", (1, 1), False) and env.unwrapped.carrying.type == "key"
    assert ahead(env) == ("door", (2, 1), False)
    assert ahead(env) == ("empty", (2, 1), False) and door.is_open
    assert ahead(env) == ("empty", (3, 1), False)


@pytest.mark.parametrize("thing", [Key("red"), Ball("blue"), Box("green")])
def test_things_are_picked_up_and_do_not_show_in_the_hand(thing):
    env = corridor(thing, None)
    assert OBJECTS[env.reset()[0]["state"][IN_FRONT]] == thing.type
    obs, *_, info = env.step(AHEAD)
    assert env.unwrapped.carrying is thing and info["pose"].tolist() == [1, 1, 0]
    assert OBJECTS[obs["state"][IN_FRONT]] == OBJECTS[obs["state"][HERE]] == "empty"
    assert ahead(env) == ("empty", (2, 1), False)


def test_with_full_hands_nothing_more_is_picked_up():
    env = corridor(Key("red"), Ball("red"))
    ahead(env)
    assert ahead(env)[:2] == ahead(env)[:2] == ("ball", (2, 1))


def test_walls_stop_and_floors_do_not():
    env = corridor(Floor("blue"), Wall())
    assert ahead(env) == ("wall", (2, 1), False)
    assert ahead(env) == ("wall", (2, 1), False)


def test_turns():
    env = corridor(None)
    assert [env.step(action)[4]["pose"].tolist() for action in (LEFT, LEFT, RIGHT)] == [[1, 1, 3], [1, 1, 2], [1, 1, 3]]


def test_success_is_to_end_with_a_reward():
    env = corridor(None, Goal())
    first = env.step(AHEAD)
    assert (first[1], first[2], first[4]["is_success"]) == (0, False, False)
    _, reward, terminated, truncated, info = env.step(AHEAD)
    assert reward > 0 and (terminated, truncated, info["is_success"]) == (True, False, True)
    assert env.reset()[1]["is_success"] is False
    _, reward, terminated, _, info = corridor(Lava()).step(AHEAD)
    assert (reward, terminated, info["is_success"]) == (0, True, False)
    _, _, terminated, truncated, info = corridor(None, max_steps=1).step(LEFT)
    assert (terminated, truncated, info["is_success"]) == (False, True, False)


def stand_before(env, kind):
    """Put the agent beside the only thing of a kind, and look at it."""
    world = env.unwrapped
    every = [(x, y) for x in range(world.width) for y in range(world.height)]
    (x, y), *_ = [cell for cell in every if getattr(world.grid.get(*cell), "type", None) == kind]
    for heading, (dx, dy) in enumerate(((1, 0), (0, 1), (-1, 0), (0, -1))):
        if world.grid.get(x - dx, y - dy) is None:
            world.agent_pos, world.agent_dir = (x - dx, y - dy), heading
            break
    env.step(LEFT)
    assert OBJECTS[env.step(RIGHT)[0]["state"][IN_FRONT]] == kind


@pytest.mark.parametrize("seed", range(3))
def test_unlock_ends_with_success_when_its_door_opens(seed):
    env = make("Unlock")
    env.reset(seed=seed)
    stand_before(env, "key")
    assert not env.step(AHEAD)[2] and env.unwrapped.carrying.type == "key"
    stand_before(env, "door")
    _, reward, terminated, _, info = env.step(AHEAD)
    assert reward > 0 and terminated and info["is_success"] is True


@pytest.mark.parametrize("action", [3, -1, 1.5, "ahead", None, [2]])
def test_no_other_actions(action):
    env = corridor(None)
    with pytest.raises(ValueError, match="is none of 0: left, 1: right, 2: ahead"):
        env.step(action)
    assert env.unwrapped.step_count == 0


@pytest.mark.parametrize("action", [np.int64(1), np.array(1), np.uint8(1)])
def test_integers_of_numpy_are_actions(action):
    assert corridor(None).step(action)[4]["pose"].tolist() == [1, 1, 1]


class Pretender(gym.Env):
    """Says that it shows images of a shape."""

    def __init__(self, *shape):
        self.observation_space = spaces.Dict({"image": spaces.Box(0, 255, shape, np.uint8)})
        self.action_space = spaces.Discrete(7)


@pytest.mark.parametrize(
    "env",
    [
        lambda: gym.make("CartPole-v1"),
        lambda: ImgObsWrapper(gym.make("MiniGrid-Empty-5x5-v0")),
        lambda: ViewSizeWrapper(gym.make("MiniGrid-Empty-5x5-v0"), 3),
        lambda: Pretender(6, 6, 3),
        lambda: Pretender(7, 5, 3),
        lambda: Pretender(7, 7),
        lambda: Pretender(7, 7, 4),
    ],
)
def test_only_environments_with_a_square_image_of_an_odd_side(env):
    with pytest.raises(ValueError, match=r"needs MiniGrid's egocentric `image`, \(side, side, 3\) with an odd side"):
        MiniGridViews(env())


def test_whole_rooms_are_no_views():
    env = MiniGridViews(FullyObsWrapper(gym.make("MiniGrid-Empty-5x5-v0")))
    with pytest.raises(ValueError, match="10 is no code of a cell in a view .* FullyObsWrapper"):
        env.reset(seed=0)


def test_the_same_seed_shows_the_same_episode():
    one, other = make("MultiRoom-N2-S4"), make("MultiRoom-N2-S4")
    first = episode(one, 4)
    assert same(first, episode(other, 4)) and same(first, episode(one, 4))
    assert not same(first, episode(one, 5))


def test_what_is_handed_out_is_the_callers():
    def scribble(obs, info):
        obs["state"][:] = 1
        info["pose"][:] = 9

    one, other = make("Unlock"), make("Unlock")
    scribble(*one.reset(seed=1)), other.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(80):
        action = int(rng.integers(3))
        obs, *mine, info = one.step(action)
        true, *theirs, of_the_other = other.step(action)
        np.testing.assert_array_equal(obs["state"], true["state"])
        assert mine == theirs and info["pose"].tolist() == of_the_other["pose"].tolist()
        scribble(obs, info)


@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_many_at_once(kind):
    names = ["Empty-8x8", "Empty-8x8", "FourRooms"]
    envs = kind([lambda name=name: make(name) for name in names])
    alone = [make(name) for name in names]
    obs, info = envs.reset(seed=[3, 4, 5])
    each = [env.reset(seed=seed) for env, seed in zip(alone, (3, 4, 5), strict=True)]
    for action in (AHEAD, RIGHT, AHEAD, LEFT):
        np.testing.assert_array_equal(obs["state"], [one[0]["state"] for one in each])
        np.testing.assert_array_equal(info["pose"], [one[-1]["pose"] for one in each])
        obs, *_, info = envs.step(np.full(3, action))
        each = [env.step(action) for env in alone]
    envs.close()


def test_spec_builds_the_wrapped_environment_again():
    env = make("FourRooms")
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(again, MiniGridViews) and same(episode(env, 3), episode(again, 3))


def test_no_step_before_the_first_reset():
    with pytest.raises(gym.error.ResetNeeded):
        make().step(AHEAD)


def test_a_move_ahead_never_turns():
    env = make("Dynamic-Obstacles-5x5")
    obs, info = env.reset(seed=0)
    assert OBJECTS[obs["state"][IN_FRONT]] == "ball"
    assert env.step(AHEAD)[4]["pose"][2] == info["pose"][2]
