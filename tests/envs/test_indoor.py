"""Episodes in houses known by heart."""

import math

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from indoor_houses import ONE, TWO, close, explore, move, navigate

from eswm_gym.envs.indoor import IndoorEnv
from eswm_gym.envs.indoor_camera import camera
from eswm_gym.rooms.indoor import Space, from_procthor

pytestmark = pytest.mark.camera

RIGHT = math.pi / 2
every_task = pytest.mark.parametrize("task", ["navigate", "explore"])
PROCTHOR = {
    "rooms": [{"id": "room|2", "floorPolygon": [{"x": x, "z": z} for x, z in ((0, 0), (0, 3), (5, 3), (5, 0))]}],
    "walls": [],
    "objects": [{"assetId": "Sofa_1", "position": {"x": 1.0, "y": 0.4, "z": 2.0}}],
}


# Episodes by hand


def test_navigate():
    env, obs, info = navigate()
    close(info["pose"], [2, 2, 0])
    assert (info["distance"], info["is_success"], info["blocked"]) == (4, False, False)
    goal = obs["goal"]
    steps = [  # action, pose, metres left, success, blocked
        (move(turn=RIGHT), (2, 2, RIGHT), 4, False, False),
        (move(ahead=1.5), (3.5, 2, RIGHT), 2.5, False, False),
        (move(right=1.0, ahead=1.0, turn=1), (3.5, 2, RIGHT), 2.5, False, True),  # into the wall beside the door
        (move(ahead=1.5), (5, 2, RIGHT), 1, False, False),
        (move(right=-0.5, ahead=0.6, turn=-0.5), (5.6, 2.5, RIGHT - 0.5), math.hypot(0.4, 0.5), False, False),
        (move(turn=0.5), (5.6, 2.5, RIGHT), math.hypot(0.4, 0.5), False, False),
        (move(right=0.5), (5.6, 2, RIGHT), 0.4, False, False),  # it is there, but looks another way
        (move(turn=-1.1), (5.6, 2, RIGHT - 1.1), 0.4, True, False),
    ]
    for action, pose, left, done, blocked in steps:
        before = obs
        obs, reward, terminated, truncated, info = env.step(action)
        close(info["pose"], pose)
        close(env.pose, pose)
        assert info["distance"] == pytest.approx(left, abs=1e-6)
        assert (reward, terminated, truncated) == (1.0 if done else -0.01, done, False)
        assert (info["is_success"], info["blocked"]) == (done, blocked)
        assert data_equivalence(obs, before, exact=True) == blocked
        np.testing.assert_array_equal(obs["image"], camera().picture(TWO, np.array(env.pose)))
        np.testing.assert_array_equal(obs["goal"], goal)
    np.testing.assert_array_equal(goal, camera().picture(TWO, np.array([6, 2, 0])))
    close(env.goal, [6, 2, 0])
    kinds = {"pose": np.ndarray, "blocked": bool, "is_success": bool, "distance": float}
    assert {key: type(value) for key, value in info.items()} == kinds
    assert info["pose"].dtype == np.float32 and type(reward) is float


@pytest.mark.parametrize(
    ("pose", "done"),
    [
        ((3, 2.49, 0), True),
        ((3, 1.51, 0), True),
        ((2.66, 2.34, 0), True),
        ((3, 2.51, 0), False),
        ((2.64, 2.36, 0), False),  # less than half a metre along each axis
        ((3, 2, math.radians(29)), True),
        ((3, 2, -math.radians(29)), True),
        ((3, 2, math.radians(31)), False),
        ((3, 2, math.pi), False),
    ],
)
def test_the_goal_is_reached_within_half_a_metre_and_30_degrees(pose, done):
    for spun in (0, 2 * math.pi):
        env, *_ = navigate(start=(2, 2, 0), goal=(3, 2, spun), house=ONE)
        _, reward, terminated, _, info = env.step(move(pose[0] - 2, pose[1] - 2, pose[2]))
        assert (reward, terminated, info["is_success"]) == (1.0 if done else -0.01, done, done)


def test_headings_near_the_seam():
    env, *_ = navigate(start=(2, 2, 0), goal=(2, 2, math.pi), house=ONE)
    assert env.step(move(turn=-math.radians(160)))[2]


def test_explore():
    env, obs, info = explore(house=ONE)
    assert set(obs) == {"image"} and "distance" not in info and env.goal is None
    for k, (turn, new) in enumerate([(RIGHT, 0.25), (0.0, 0.0), (-RIGHT, 0.0), (-RIGHT, 0.25), (-RIGHT, 0.25)]):
        before = info["coverage"]
        _, reward, terminated, truncated, info = env.step(move(turn=turn))
        assert reward == new and info["coverage"] == before + new
        assert terminated == info["is_success"] == (k == 4) and not truncated
    assert info["coverage"] == 1 and type(info["coverage"]) is type(reward) is float
    assert explore(house=ONE)[2]["coverage"] == 0.25, "the start shows one of four walls"


def test_95_percent_of_the_walls_are_enough():
    env, _, info = explore(start=(0.5, 0.5, math.pi / 4), house=ONE)  # from here, two walls and some of the others
    assert info["coverage"] == pytest.approx(0.5, abs=0.1)
    for _ in range(3):
        *_, terminated, _, info = env.step(move(turn=RIGHT))
        assert terminated == (info["coverage"] >= 0.95)
    assert terminated


@pytest.mark.parametrize(
    ("pose", "action"),
    [
        ((0.3, 2, 0), move(right=-0.2, turn=1)),
        ((3, 2, RIGHT), move(right=0.8, ahead=1.4, turn=-1)),  # through the wall beside the door
        ((1, 2.4, 0), move(ahead=0.2)),  # into the box
        ((1, 2.4, 0), move(ahead=1.3)),  # over it
        ((2, 2, -RIGHT), move(ahead=1.5, right=1.5)),
        ((7.9 - 0.2, 2, RIGHT), move(ahead=1.5)),  # out of the house
    ],
)
@every_task
def test_a_blocked_action_changes_nothing(pose, action, task):
    env, obs, _ = explore(start=pose) if task == "explore" else navigate(start=pose, goal=(4, 2, 0))
    after, reward, terminated, _, info = env.step(action)
    assert info["blocked"] and not terminated and reward == (0 if task == "explore" else -0.01)
    np.testing.assert_array_equal(info["pose"], np.array(pose, np.float32))
    assert data_equivalence(after, obs, exact=True)
    assert not env.step(move(turn=1))[-1]["blocked"], "it may still turn"


@pytest.mark.parametrize(
    "action", [move(1.6), move(0, -1.6), move(turn=3.2), move(math.nan), np.zeros(2, np.float32), np.zeros((1, 3)), 0]
)
def test_actions_that_are_none(action):
    env, *_ = navigate()
    with pytest.raises(ValueError, match="action must be in Box"):
        env.step(action)
    close(env.pose, [2, 2, 0])


# Starts


@every_task
def test_what_reset_is_asked_for(task):
    env = IndoorEnv(task, rooms=2)
    env.reset(seed=3)
    assert len(env.house.rooms) == 2
    _, info = env.reset(options={"house": TWO, "start": [1, 1, 3 * math.pi / 2]})
    assert env.house == TWO and env.pose.tolist() == pytest.approx([1, 1, -RIGHT])
    assert info["pose"].tolist() == pytest.approx([1, 1, -RIGHT])
    env.reset(options={"house": PROCTHOR})
    assert env.house == from_procthor(PROCTHOR) and len(env.house.furniture) == 1
    env.reset()
    assert env.house != from_procthor(PROCTHOR)


def test_starts_and_goals_are_drawn_where_there_is_a_way():
    shut = TWO.with_door(0, True)
    env, sides = IndoorEnv(), set()
    for seed in range(12):
        _, info = env.reset(seed=seed, options={"house": shut})
        assert info["distance"] < math.inf and not info["is_success"]
        assert (env.pose[0] < 4) == (env.goal[0] < 4) and Space(shut).free(np.stack([env.pose, env.goal])[:, :2]).all()
        sides.add(bool(env.pose[0] < 4))
        env.reset(seed=seed, options={"house": shut, "goal": (6, 2, 0)})  # then the start is on its side
        assert env.pose[0] > 4 and env.goal.tolist() == [6, 2, 0]
        env.reset(seed=seed, options={"house": shut, "start": (6, 2, 0)})
        assert env.goal[0] > 4 and env.pose.tolist() == [6, 2, 0]
    assert sides == {True, False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hause": TWO}, r"'navigate' takes the reset options \('house', 'start', 'goal'\), got \['hause'\]"),
        ({"house": 3}, "House or a dict in ProcTHOR's format, got int"),
        ({"house": {"rooms": []}}, "ProcTHOR"),
        ({"start": (1, 3, 0)}, "start .* is not free"),
        ({"start": (0.1, 2, 0)}, "start .* is not free"),
        ({"goal": (9, 9, 0)}, "goal .* is not free"),
        ({"start": (1, 1)}, r"start must be \(x, y, heading\)"),
        ({"goal": (1, 1, math.nan)}, r"goal must be \(x, y, heading\)"),
        ({"start": (2, 2, 0), "goal": (2, 2.3, 0.3)}, "is reached at the start"),
        ({"house": TWO.with_door(0, True), "start": (2, 2, 0), "goal": (6, 2, 0)}, "cannot be reached"),
    ],
)
def test_reset_errors(options, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.reset(options={"house": TWO} | options)
    assert env.house == TWO and env.pose.tolist() == [2, 2, 0], "the episode goes on"


def test_there_is_no_goal_where_nothing_is_to_be_reached():
    with pytest.raises(ValueError, match=r"'explore' takes the reset options \('house', 'start'\), got \['goal'\]"):
        IndoorEnv("explore").reset(options={"goal": (1, 1, 0)})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"task": "walk"}, "task .* 'walk'"),
        ({"memory_bank": "spanning"}, "memory_bank .* 'spanning'"),
        ({"render_mode": "human"}, "render_mode .* 'human'"),
        ({"rooms": 0}, "rooms .* got 0"),
    ],
)
def test_constructor_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        IndoorEnv(**kwargs)


def test_before_the_first_reset():
    env = IndoorEnv(render_mode="rgb_array")
    for call in (
        lambda: env.step(move()),
        lambda: env.set_door(0, True),
        lambda: env.house,
        lambda: env.pose,
        lambda: env.goal,
        env.render,
        env.get_state,
    ):
        with pytest.raises(ResetNeeded):
            call()


# Doors


def test_doors():
    env, obs, _ = navigate(start=(2, 2, RIGHT))
    env.set_door(0, True)
    shut, *_, info = env.step(move())
    assert info["distance"] == math.inf and env.house == TWO.with_door(0, True)
    assert (shut["image"] != obs["image"]).any()
    np.testing.assert_array_equal(shut["image"], camera().picture(env.house, np.array([2, 2, RIGHT])))
    env.step(move(ahead=1.5))
    assert env.step(move(ahead=1.5))[-1]["blocked"]
    env.set_door(0, False)
    *_, info = env.step(move(ahead=1.5))
    assert not info["blocked"] and info["distance"] == 1 and env.house == TWO
    assert TWO.doors[0].closed is False


@pytest.mark.parametrize(
    ("kwargs", "number", "message"),
    [
        ({}, 1, "no door 1; the house has 1"),
        ({"start": (4, 2, 0)}, 0, "the agent stands in it"),
        ({"goal": (4.1, 2, 0)}, 0, "the goal stands in it"),
    ],
)
def test_door_errors(kwargs, number, message):
    env, *_ = navigate(**kwargs)
    with pytest.raises(ValueError, match=message):
        env.set_door(number, True)
    assert env.house == TWO
