"""MiniGrid with absolute moves, and its poses."""

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TransformReward
from minigrid.core.world_object import Door, Lava, Wall
from stable_baselines3.common.env_checker import check_env as sb3_check_env

from eswm_gym.wrappers import AbsoluteMoves, DiscreteStates, Poses

LEFT, DOWN, RIGHT, UP = range(4)


def cells(name="Empty-5x5", **options):
    return AbsoluteMoves(gym.make(f"MiniGrid-{name}-v0", **options))


def poses(name="Empty-5x5", **options):
    return Poses(gym.make(f"MiniGrid-{name}-v0", **options))


@pytest.mark.parametrize("make", [cells, poses])
def test_what_minigrid_shows_passes_stable_baselines3s_check(make):
    sb3_check_env(make())


STEPS = {LEFT: (-1, 0), DOWN: (0, 1), RIGHT: (1, 0), UP: (0, -1)}  # y grows downwards


@pytest.mark.parametrize("name", ["Empty-5x5", "SimpleCrossingS9N3", "FourRooms"])
def test_absolute_moves_go_where_the_grid_is_free(name):
    env = cells(name, max_steps=1000)
    at, _ = env.reset(seed=1)
    grid, rng = env.unwrapped.grid, np.random.default_rng(0)
    seen = set()
    for _ in range(150):
        action = int(rng.integers(4))
        ahead = at + STEPS[action]
        content = grid.get(*ahead)
        free = content is None or content.can_overlap()
        end, reward, terminated, truncated, _ = env.step(action)
        assert end.tolist() == (ahead if free else at).tolist() == list(env.unwrapped.agent_pos)
        assert not truncated and terminated == (content is not None and content.type == "goal") == (reward > 0)
        seen.add(free)
        at = env.reset(seed=1)[0] if terminated else end
    assert len(seen) == 2 and env.observation_space.contains(at)


def test_absolute_moves_take_as_many_steps_as_turns_need():
    env = cells()
    env.reset(seed=0)  # looks to the right
    counts = []
    for action in (RIGHT, LEFT, UP, DOWN, DOWN, RIGHT):
        before = env.unwrapped.step_count
        env.step(action)
        counts.append(env.unwrapped.step_count - before)
    assert counts == [1, 3, 2, 3, 1, 2]  # up from left: one turn right; right from down: one turn left


def test_rewards_of_turns_add_up():
    env = AbsoluteMoves(TransformReward(gym.make("MiniGrid-Empty-5x5-v0"), lambda reward: 0.5))
    env.reset(seed=0)
    assert [env.step(action)[1] for action in (RIGHT, LEFT, UP)] == [0.5, 1.5, 1.0]


def test_time_may_be_up_in_the_middle_of_a_move():
    env = cells(max_steps=2)
    env.reset(seed=0)
    cell, _, terminated, truncated, _ = env.step(LEFT)  # two turns, and then a step that is not taken
    assert (cell.tolist(), terminated, truncated, env.unwrapped.step_count) == ([1, 1], False, True, 2)


def door_in_a_corridor(**options):
    """The agent in (1, 1) looks up; a door right of it."""
    env = cells()
    env.reset(seed=0)
    env.unwrapped.grid.set(2, 1, Door("red", **options))
    env.unwrapped.agent_dir = 3
    return env, env.unwrapped.grid.get(2, 1)


def test_doors_are_opened_and_not_shut_again():
    env, door = door_in_a_corridor()
    assert env.step(RIGHT)[0].tolist() == [2, 1] and door.is_open
    assert env.unwrapped.step_count == 3  # turn, open, step
    assert env.step(LEFT)[0].tolist() == [1, 1] and env.step(RIGHT)[0].tolist() == [2, 1] and door.is_open
    assert env.step(RIGHT)[0].tolist() == [3, 1]


def test_locked_doors_are_bumped_into():
    env, door = door_in_a_corridor(is_locked=True)
    assert env.step(RIGHT)[0].tolist() == [1, 1] and not door.is_open and door.is_locked
    assert env.unwrapped.step_count == 2


def test_a_move_opens_the_doors_of_multi_room():
    env = cells("MultiRoom-N2-S4")
    env.reset(seed=0)
    world = env.unwrapped
    places = [(x, y) for x in range(world.width) for y in range(world.height)]
    (door,) = [place for place in places if isinstance(world.grid.get(*place), Door)]
    (action, beside) = next(
        (action, (door[0] - dx, door[1] - dy))
        for action, (dx, dy) in STEPS.items()
        if not isinstance(world.grid.get(door[0] - dx, door[1] - dy), Wall)
    )
    world.agent_pos = beside
    assert tuple(env.step(action)[0].tolist()) == door and world.grid.get(*door).is_open


def test_lava_ends_the_episode_without_success():
    env = DiscreteStates(cells(), lattice="square")
    env.reset(seed=0)
    env.unwrapped.grid.set(1, 2, Lava())
    obs, reward, terminated, _, info = env.step(DOWN)
    assert (reward, terminated, info["is_success"], obs["goal"]) == (0, True, False, -1)
    assert obs["state"] == env.number(np.array([1, 2]))


def test_poses():
    env = poses()
    shown = [env.reset(seed=0)[0]] + [env.step(action)[0] for action in (0, 2, 1, 2, 1, 2, 1)]
    expected = [(1, 1, 0), (1, 1, 3), (1, 1, 3), (1, 1, 0), (2, 1, 0), (2, 1, 1), (2, 2, 1), (2, 2, 2)]
    assert [tuple(pose.tolist()) for pose in shown] == expected
    assert env.action_space == spaces.Discrete(3)
    assert env.observation_space == spaces.MultiDiscrete([5, 5, 4])


def test_poses_reach_the_goal_and_time_is_up():
    env = DiscreteStates(poses(max_steps=4), lattice="pose")
    env.reset(seed=0)
    assert [env.step(action)[3] for action in (0, 0, 0, 0)] == [False, False, False, True]
    env = DiscreteStates(poses(), lattice="pose")
    env.reset(seed=0)
    found = [env.step(action) for action in (2, 2, 1, 2, 2)]
    assert [terminated for _, _, terminated, _, _ in found] == [False] * 4 + [True]
    assert found[-1][4]["is_success"] and found[-1][0]["goal"] == found[-1][0]["state"] == 5
