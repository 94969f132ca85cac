"""Episodes worked out by hand in one small room."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from eswm_gym.envs import HexRoomEnv, OpenArenaEnv, RandomWallEnv
from eswm_gym.rooms import Room, RoomConfig

# Radius 2, by location; walls in brackets. The state at each location is 18 minus its number.
#         0   1   2
#       3   4   5   6
#     7  [8] [9] [10] 11
#      12  13  14  15
#        16  17  18
E, NE, NW, W, SW, SE = range(6)
WALLS = [8, 9, 10]
ROOM = Room(2, [18 - location for location in range(19)], WALLS)


def navigate(start=4, goal=13, room=ROOM, **kwargs):
    env = RandomWallEnv(radius=2, **kwargs)
    return env, *env.reset(seed=0, options={"room": room, "start": start, "goal": goal})


def explore(start=4, room=ROOM):
    env = RandomWallEnv(radius=2, task="explore")
    return env, *env.reset(seed=0, options={"room": room, "start": start})


def test_navigate():
    env, obs, info = navigate()
    assert obs == {"state": 14, "goal": 5}
    assert (info["location"], info["shortest_path_length"]) == (4, 4)
    assert not info["blocked"] and not info["is_success"]
    steps = [  # action, location, reward, at the goal, blocked, steps left
        (SE, 4, -0.01, False, True, 4),  # into the wall at 9
        (NW, 0, -0.01, False, False, 4),
        (W, 0, -0.01, False, True, 4),  # off the lattice
        (SW, 3, -0.01, False, False, 3),
        (SW, 7, -0.01, False, False, 2),
        (SE, 12, -0.01, False, False, 1),
        (E, 13, 1.0, True, False, 0),
    ]
    for action, location, reward, done, blocked, left in steps:
        obs, got, terminated, truncated, info = env.step(action)
        assert obs == {"state": 18 - location, "goal": 5}
        assert (got, terminated, truncated) == (reward, done, False)
        assert (info["location"], info["is_success"], info["blocked"]) == (location, done, blocked)
        assert info["shortest_path_length"] == left


def test_explore():
    room = Room(2, ROOM.states, [7, 8, 9, 10, 11])  # locations 0 to 6 are cut off from the rest
    env, obs, info = explore(room=room)
    assert obs == {"state": 14}
    assert "shortest_path_length" not in info
    walk = [(W, 1), (E, 0), (SE, 0), (NW, 1), (E, 1), (E, 1), (SE, 1)]
    for action, reward in walk:
        _, got, terminated, _, info = env.step(action)
        assert (got, terminated, info["is_success"]) == (reward, False, False)
    _, reward, terminated, truncated, info = env.step(W)
    assert (reward, terminated, truncated, info["is_success"], info["location"]) == (1, True, False, True, 5)


def test_action_mask_shows_the_rim_and_not_the_wall():
    for location, on_lattice in ((4, [1, 1, 1, 1, 1, 1]), (0, [1, 0, 0, 0, 1, 1]), (11, [0, 0, 1, 1, 1, 0])):
        env, _, info = navigate(start=location)
        assert info["action_mask"].dtype == np.int8
        assert info["action_mask"].tolist() == on_lattice
        assert env.action_masks().tolist() == [bool(on) for on in on_lattice]


def test_walls_come_and_go():
    env, _, info = navigate()
    env.remove_walls([8])
    *_, info = env.step(SW)
    assert (info["location"], info["blocked"], info["shortest_path_length"]) == (8, False, 1)
    env.add_walls([12])
    *_, info = env.step(SW)
    assert (info["location"], info["blocked"], info["shortest_path_length"]) == (8, True, 1)
    env.add_walls([14, 16, 17])
    env.step(NE)
    env.add_walls([8])
    *_, info = env.step(E)
    assert info["shortest_path_length"] == -1
    assert ROOM.walls.nonzero()[0].tolist() == WALLS  # the caller's room is untouched


def test_exploring_takes_new_walls_into_account():
    env, *_ = explore(start=0, room=Room(2, ROOM.states, [4, 7, 8]))
    assert env.step(E)[2] is False
    env.step(W)
    env.add_walls([1, 12])
    *_, terminated, _, info = env.step(SW)  # 0 and 3 are all that is left
    assert terminated and info["is_success"]


@pytest.mark.parametrize(
    ("locations", "message"),
    [([4], "location 4: the agent"), ([0, 13], "location 13: the goal"), ([9], "9 is a wall"), ([40], "40")],
)
def test_add_walls_errors(locations, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.add_walls(locations)
    assert env.room == ROOM


@pytest.mark.parametrize(("locations", "message"), [([4], "4 is not a wall"), ([-2], "got -2")])
def test_remove_walls_errors(locations, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.remove_walls(locations)


def test_reset_options_are_kept_and_the_rest_is_drawn():
    env = RandomWallEnv(radius=2)
    split = Room(2, ROOM.states, [7, 8, 9, 10, 11])
    seen = set()
    for seed in range(60):
        obs, info = env.reset(seed=seed, options={"room": split, "start": 2})
        assert info["location"] == 2
        seen.add(18 - obs["goal"])
    assert seen == {0, 1, 3, 4, 5, 6}
    seen = set()
    for seed in range(60):
        obs, info = env.reset(seed=seed, options={"room": split, "goal": 13})
        assert obs["goal"] == 5
        seen.add(info["location"])
    assert seen == {12, 14, 15, 16, 17, 18}


def test_start_is_never_the_goal_nor_cut_off():
    env = RandomWallEnv(radius=2, wall_length=(5, 9), no_wall=0.0, straightness=0.3)
    for seed in range(200):
        _, info = env.reset(seed=seed)
        assert info["shortest_path_length"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 9}, "start 9 is a wall"),
        ({"goal": 8}, "goal 8 is a wall"),
        ({"start": 19}, "start .* got 19"),
        ({"goal": -1}, "goal .* got -1"),
        ({"start": 4, "goal": 4}, "goal 4 must be another location than start 4"),
        ({"start": 4, "goal": 13, "room": Room(2, range(19), [7, 8, 9, 10, 11])}, "goal 13 .* reachable"),
        ({"start": 0, "room": Room(2, range(19), [1, 3, 4])}, "location 0 is walled in"),
        ({"goal": 0, "room": Room(2, range(19), [1, 3, 4])}, "location 0 is walled in"),
        ({"room": Room(2, range(19), range(1, 19))}, "no two free locations"),
        ({"room": Room(3, range(37))}, r"hexagon \(2,\), got hexagon \(3,\)"),
        ({"room": Room(2, range(1, 20))}, "states below 19, got 19"),
        ({"room": "room"}, "must be a Room, got 'room'"),
        ({"begin": 3}, "begin"),
    ],
)
def test_reset_errors_leave_the_episode_alone(options, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.reset(options={"room": ROOM, **options})
    assert (env.room, env.location, env.goal) == (ROOM, 4, 13)


def test_exploring_takes_no_goal():
    env, *_ = explore()
    with pytest.raises(ValueError, match="goal"):
        env.reset(options={"goal": 3})


@pytest.mark.parametrize("action", [6, -1, 1.0, "E", None, np.array([1])])
def test_invalid_actions(action):
    env, *_ = navigate()
    with pytest.raises(ValueError, match="action must be an integer from 0 to 5"):
        env.step(action)


def test_before_the_first_reset():
    env = RandomWallEnv(render_mode="ansi")
    for call in (
        lambda: env.step(0),
        lambda: env.add_walls([0]),
        lambda: env.remove_walls([0]),
        env.render,
        env.get_state,
        env.action_masks,
    ):
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises(ResetNeeded):
        gym.make("ESWM-RandomWall-v0").step(0)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"task": "walk"}, "task .* 'walk'"),
        ({"memory_bank": "full"}, "memory_bank .* 'full'"),
        ({"render_mode": "svg"}, "render_mode .* 'svg'"),
        ({"radius": 0}, "radius"),
        ({"wall_length": (5, 2)}, "wall_length"),
        ({"no_wall": 2}, "no_wall"),
        ({"straightness": -1}, "straightness"),
    ],
)
def test_constructor_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        RandomWallEnv(**kwargs)


def test_wall_options():
    env = gym.make("ESWM-RandomWall-v0", wall_length=(4, 4), no_wall=0.0, straightness=1.0).unwrapped
    for seed in range(20):
        env.reset(seed=seed)
        walls = env.room.lattice.axial[env.room.walls]
        assert 1 <= len(walls) <= 4
        q, r = walls.T
        assert min(len(set(q)), len(set(r)), len(set(q + r))) == 1  # straight
    env = RandomWallEnv(no_wall=1.0)
    env.reset(seed=0)
    assert not env.room.walls.any()


def test_rooms_with_duplicate_states_are_not_walked_in():
    with pytest.raises(ValueError, match="no duplicate states"):
        HexRoomEnv(RoomConfig.random_wall(2, duplicates=(0, 3)))


def test_open_arena_sees_bits_and_remembers_numbers():
    env = OpenArenaEnv(memory_bank="spanning", states=range(32, 64))
    room = Room(2, range(40, 59))
    obs, info = env.reset(seed=0, options={"room": room, "start": 0, "goal": 18})
    assert obs["state"].tolist() == [1, 0, 1, 0, 0, 0]  # 40 = 32 + 8
    assert obs["goal"].tolist() == [1, 1, 1, 0, 1, 0]  # 58 = 32 + 16 + 8 + 2
    assert set(info["memory_bank"][:, [0, 2]].ravel().tolist()) == set(range(40, 59))
    env.reset(seed=1)
    assert env.room.states.min() >= 32
    with pytest.raises(ValueError, match="below 64, got 64"):
        OpenArenaEnv(states=range(30, 65))


def test_set_state_of_another_task_or_room():
    env, *_ = navigate()
    with pytest.raises(ValueError, match="explore"):
        explore()[0].set_state(env.get_state())
    with pytest.raises(ValueError, match=r"hexagon \(3,\), got hexagon \(2,\)"):
        RandomWallEnv(radius=3).set_state(env.get_state())


def test_state_keeps_changed_walls_and_visits():
    env, *_ = explore()
    env.step(W)
    env.remove_walls([9])
    other = RandomWallEnv(radius=2, task="explore")
    other.set_state(env.get_state())
    env.add_walls([0])
    assert other.step(E)[1] == 0
    assert other.step(SE)[4]["location"] == 9


def test_any_family_of_rooms():
    config = RoomConfig(radius=1, states=(3, 5, 7, 11, 13, 17, 19, 23), wall_length=(1, 1), no_wall=0, hidden=0)
    env = HexRoomEnv(config, memory_bank="spanning")
    obs, info = env.reset(seed=0)
    assert env.observation_space["state"].n == 24
    assert obs["state"] in config.states
    assert info["memory_bank"].shape == (6, 3)
