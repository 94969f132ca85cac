"""Episodes worked out by hand in MiniGrid rooms."""

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from minigrid.core.actions import Actions

from eswm_gym.envs import MiniGridRoomEnv

LEFT, RIGHT, FORWARD = 0, 1, 2
TO_RIGHT, DOWN, TO_LEFT, UP = range(4)


def grid(rows: str) -> np.ndarray:
    """Walls #, plain floor ., and floors by the first letters of their colours; s is grey."""
    return np.array([["#.rgbpys".index(cell) + 1 for cell in row] for row in rows.split()])


ROOM = grid("""
    #########
    #rgbpys.#
    #gbpys.r#
    #b#####g#
    #pys.rgb#
    #ys.rgbp#
    #s#####r#
    #.rgbpys#
    #########
""")
ARENA = np.pad(np.full((7, 7), 2), 1, constant_values=1)
CORRIDOR = np.ones((9, 9), int)
CORRIDOR[1, 1:3] = 2


def navigate(start=(1, 1, TO_RIGHT), goal=(3, 2, DOWN), room=ROOM, **kwargs):
    env = MiniGridRoomEnv(**kwargs)
    return env, *env.reset(seed=0, options={"grid": room, "start": start, "goal": goal})


def explore(start=(4, 4, TO_RIGHT), room=ARENA, **kwargs):
    env = MiniGridRoomEnv(task="explore", **kwargs)
    return env, *env.reset(seed=0, options={"grid": room, "start": start})


def pose_graph(room: np.ndarray) -> nx.DiGraph:
    """The pose that follows each pose by each action, told by the rules alone."""
    ahead = ((1, 0), (0, 1), (-1, 0), (0, -1))
    graph = nx.DiGraph()
    for y, x in np.argwhere(room != 1).tolist():
        for heading, (dx, dy) in enumerate(ahead):
            graph.add_edge((x, y, heading), (x, y, (heading - 1) % 4), action=LEFT)
            graph.add_edge((x, y, heading), (x, y, (heading + 1) % 4), action=RIGHT)
            if room[y + dy, x + dx] != 1:
                graph.add_edge((x, y, heading), (x + dx, y + dy, heading), action=FORWARD)
    return graph


def test_navigate():
    env, obs, info = navigate()
    assert info["pose"].tolist() == [1, 1, TO_RIGHT]
    assert (info["shortest_path_length"], info["is_success"], info["blocked"]) == (4, False, False)
    assert "coverage" not in info
    steps = [  # action, pose, reward, at the goal, blocked, steps left
        (LEFT, (1, 1, UP), -0.01, False, False, 5),
        (FORWARD, (1, 1, UP), -0.01, False, True, 5),
        (RIGHT, (1, 1, TO_RIGHT), -0.01, False, False, 4),
        (FORWARD, (2, 1, TO_RIGHT), -0.01, False, False, 3),
        (FORWARD, (3, 1, TO_RIGHT), -0.01, False, False, 2),
        (RIGHT, (3, 1, DOWN), -0.01, False, False, 1),
        (FORWARD, (3, 2, DOWN), 1.0, True, False, 0),
    ]
    goal = obs["goal"]
    for action, pose, reward, done, blocked, left in steps:
        obs, got, terminated, truncated, info = env.step(action)
        assert tuple(info["pose"]) == env.pose == pose
        assert (got, terminated, truncated) == (reward, done, False)
        assert (info["is_success"], info["blocked"], info["shortest_path_length"]) == (done, blocked, left)
        np.testing.assert_array_equal(obs["goal"], goal)
    np.testing.assert_array_equal(obs["state"], goal)
    assert {key: type(info[key]) for key in ("is_success", "blocked", "shortest_path_length")} == {
        "is_success": bool,
        "blocked": bool,
        "shortest_path_length": int,
    }


def test_observation():
    _, obs, _ = navigate()
    # The agent at the upper left looks to the right; its own cell, which is red, shows as plain floor.
    assert obs["state"].tolist() == [  # from far to near, and from its left to its right
        [0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1],
        [7, 6, 5, 4, 2],
        [8, 7, 6, 5, 4],
        [1, 1, 1, 1, 5],
    ]
    assert obs["state"].dtype == obs["goal"].dtype == obs["image"].dtype == np.uint8
    assert obs["image"][2].tolist() == [[3, 4, 0], [3, 3, 0], [3, 2, 0], [3, 1, 0], [1, 0, 0]]
    assert obs["image"][1, 0].tolist() == [2, 5, 0]
    assert set(obs) == {"state", "goal", "image"}
    assert set(explore()[1]) == {"state", "image"}


def test_explore():
    env, obs, info = explore()
    assert "shortest_path_length" not in info
    seen = 24
    for action, new in ((RIGHT, 16), (RIGHT, 14), (RIGHT, 10), (RIGHT, 0), (LEFT, 0)):
        assert info["coverage"] == pytest.approx(seen / 81)
        _, reward, terminated, _, info = env.step(action)
        assert (reward, terminated, info["is_success"]) == (new, False, False)
        assert type(reward) is float
        seen += new
    assert type(info["coverage"]) is float


def test_explore_to_the_end():
    env, _, info = explore(start=(1, 1, TO_RIGHT), room=CORRIDOR)
    assert info["coverage"] == pytest.approx(8 / 12)  # what lies around the two cells, and they
    for action, new in ((LEFT, 2), (LEFT, 1), (FORWARD, 0), (LEFT, 0), (LEFT, 0), (FORWARD, 0)):
        _, reward, terminated, _, info = env.step(action)
        assert (reward, terminated) == (new, False)
    assert info["coverage"] == pytest.approx(11 / 12)
    _, reward, terminated, truncated, info = env.step(LEFT)  # sees where it came from
    assert (reward, terminated, truncated) == (1, True, False)
    assert info["is_success"] and info["coverage"] == 1


def test_exploring_random_rooms_ends():
    env = MiniGridRoomEnv(task="explore")
    rng = np.random.default_rng(0)
    for seed in range(5):
        _, info = env.reset(seed=seed)
        first, gained, terminated = info["coverage"], 0.0, False
        while not terminated:
            _, reward, terminated, truncated, info = env.step(rng.choice([LEFT, RIGHT, FORWARD, FORWARD]))
            gained += reward
        assert not truncated and info["coverage"] == 1
        assert gained / (1 - first) == pytest.approx(round(gained / (1 - first)))  # the number of cells in all


def test_shortest_paths():
    env = MiniGridRoomEnv()
    rng = np.random.default_rng(0)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for wall in (None, *rng.integers(1, 8, (3, 2)).tolist()):
            if wall and tuple(wall) not in (env.pose[:2], env.goal[:2]) and env.grid_classes[wall[1], wall[0]] != 1:
                env.add_walls([wall])
            *_, info = env.step(rng.integers(2))
            graph = pose_graph(env.grid_classes)
            reachable = nx.has_path(graph, env.pose, env.goal)
            length = nx.shortest_path_length(graph, env.pose, env.goal) if reachable else -1
            assert info["shortest_path_length"] == length


def test_following_the_shortest_path_succeeds():
    env = gym.make("ESWM-MiniGrid-v0")
    for seed in range(10):
        obs, info = env.reset(seed=seed)
        graph = pose_graph(env.unwrapped.grid_classes)
        path = nx.shortest_path(graph, tuple(info["pose"].tolist()), env.unwrapped.goal)
        rewards = []
        for here, there in zip(path, path[1:], strict=False):
            obs, reward, terminated, _, info = env.step(graph.edges[here, there]["action"])
            rewards.append(reward)
        assert terminated and info["is_success"]
        assert rewards == [-0.01] * (len(path) - 2) + [1.0]
        np.testing.assert_array_equal(obs["state"], obs["goal"])


def test_starts_and_goals():
    """Everything free is drawn, walls never; a goal looks like nothing else."""
    starts, goals = set(), set()
    env = MiniGridRoomEnv()
    for seed in range(400):
        _, info = env.reset(seed=seed, options={"grid": ROOM})
        assert info["shortest_path_length"] > 0
        starts.add(env.pose)
        goals.add(env.goal)
    free = {(x, y, h) for y, x in np.argwhere(ROOM != 1).tolist() for h in range(4)}
    assert len(free) == 156
    assert starts <= free and goals <= free
    assert len(starts) > 120 and len(goals) > 100
    for goal in sorted(goals)[:20]:
        views = [navigate(start, goal)[1] for start in free - {goal}]
        assert all((obs["state"] != obs["goal"]).any() for obs in views)


def test_bank_holds_what_the_environment_does():
    env = gym.make("ESWM-MiniGrid-v0").unwrapped
    for seed in range(2):
        bank = env.reset(seed=seed)[1]["memory_bank"]
        assert (bank.shape, bank.dtype) == ((24, 51), np.int64)
        room, happens = env.grid_classes, set()
        for pose in pose_graph(room):
            for action in range(3):
                obs, _ = env.reset(options={"grid": room, "start": pose})
                after = env.step(action)[0]
                happens.add((*obs["state"].ravel().tolist(), action, *after["state"].ravel().tolist()))
        rows = bank[bank[:, 0] >= 0].tolist()
        assert rows and all(tuple(row) in happens for row in rows)
    assert "memory_bank" not in navigate()[2]


def test_action_masks():
    env, _, info = navigate()
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].tolist() == [1, 1, 1]
    assert env.action_masks().dtype == bool
    assert env.action_masks().tolist() == [True, True, True]


def test_what_is_handed_out_is_a_copy():
    env, obs, info = navigate()
    goal = obs["goal"].copy()
    obs["goal"][:] = 7
    info["pose"][:] = 7
    np.testing.assert_array_equal(env.gen_obs()["goal"], goal)
    env.grid_classes[:] = 7
    assert env.pose == (1, 1, TO_RIGHT)
    assert env.grid_classes.dtype == np.int8
    np.testing.assert_array_equal(env.grid_classes, ROOM)


def test_walls_come_and_go():
    env, obs, _ = navigate(goal=(4, 1, TO_RIGHT))
    env.add_walls([(2, 1)])
    after, *_, info = env.step(FORWARD)
    assert (tuple(info["pose"]), info["blocked"]) == ((1, 1, TO_RIGHT), True)
    assert info["shortest_path_length"] == 9  # round the wall
    assert after["state"][2].tolist() == [7, 6, 5, 1, 2]  # MiniGrid's light goes round the corner
    np.testing.assert_array_equal(after["goal"], obs["goal"])  # as it was
    env.add_walls(np.array([[1, 2]]))
    *_, info = env.step(FORWARD)
    assert info["shortest_path_length"] == -1
    env.remove_walls([(2, 1)])
    after, *_, info = env.step(FORWARD)
    assert (tuple(info["pose"]), info["shortest_path_length"]) == ((2, 1, TO_RIGHT), 2)
    assert env.grid_classes[1, 2] == 2
    assert ROOM[1, 2] == 4 and ROOM[2, 1] == 4  # the caller's room is untouched


def test_exploring_takes_new_walls_into_account():
    env, *_ = explore(start=(1, 1, TO_RIGHT), room=CORRIDOR)
    env.add_walls([(2, 1)])
    rewards = [env.step(LEFT)[1] for _ in range(2)]
    assert rewards == [2, 1]
    assert env.step(LEFT)[2]  # the cell under the agent cannot be seen any more
    longer = CORRIDOR.copy()
    longer[1, 3:6] = 2
    env, *_ = explore(start=(1, 1, DOWN), room=longer)
    env.add_walls([(2, 1)])  # nothing beyond it can be seen from here
    assert [env.step(RIGHT)[2] for _ in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([(1, 1)], r"cell \(1, 1\): the agent"),
        ([(5, 1), (3, 2)], r"cell \(3, 2\): the goal"),
        ([(5, 1), (2, 3)], r"\(2, 3\) is a wall"),
        ([(0, 4)], "inside the walls"),
        ([(4, 9)], "inside the walls"),
        ([(1, 1, 0)], "2 integers"),
        ([4], "2 integers"),
        ([(1.0, 2.0)], "2 integers"),
    ],
)
def test_add_walls_errors(cells, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.add_walls(cells)
    np.testing.assert_array_equal(env.grid_classes, ROOM)


@pytest.mark.parametrize(
    ("cells", "message"), [([(2, 3), (4, 1)], r"\(4, 1\) is not a wall"), ([(0, 1)], "inside the walls")]
)
def test_remove_walls_errors(cells, message):
    env, *_ = navigate()
    with pytest.raises(ValueError, match=message):
        env.remove_walls(cells)
    np.testing.assert_array_equal(env.grid_classes, ROOM)


def with_cell(x: int, y: int, kind: int) -> np.ndarray:
    room = ROOM.copy()
    room[y, x] = kind
    return room


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": (2, 3, 0)}, r"start \(2, 3, 0\) is in a wall"),
        ({"goal": (2, 3, 0)}, r"goal \(2, 3, 0\) is in a wall"),
        ({"start": (0, 1, 0)}, "start must be .* inside"),
        ({"goal": (1, 1, 4)}, "goal must be .* heading from 0 to 3"),
        ({"start": (1, 1)}, "start must be 3 integers"),
        ({"start": "111"}, "start must be 3 integers"),
        ({"start": (1, 1, 0), "goal": (1, 1, 0)}, "another pose than start"),
        ({"grid": ARENA, "goal": (1, 1, 0)}, "goal .* view that no other"),
        ({"grid": ARENA}, "no pose, apart from the start"),
        ({"grid": ROOM[1:]}, r"\(9, 9\) integers, got \(8, 9\)"),
        ({"grid": ROOM.astype(float)}, "integers, got .* float64"),
        ({"grid": "room"}, "grid must be"),
        ({"grid": with_cell(4, 4, 9)}, "classes from 1 to 8, got 1 to 9"),
        ({"grid": with_cell(4, 4, 0)}, "classes from 1 to 8, got 0 to 8"),
        ({"grid": with_cell(4, 0, 2)}, "walls .* all around"),
        ({"grid": with_cell(1, 3, 1) + np.where(with_cell(7, 3, 0) == 0, 1 - ROOM, 0)}, "hang together"),
        ({"grid": np.ones((9, 9), int)}, "free cell"),
        ({"room": ROOM}, "room"),
    ],
)
def test_reset_errors_leave_the_episode_alone(options, message):
    env, obs, _ = navigate()
    with pytest.raises(ValueError, match=message):
        env.reset(options={"grid": ROOM, **options})
    assert (env.pose, env.goal) == ((1, 1, TO_RIGHT), (3, 2, DOWN))
    np.testing.assert_array_equal(env.grid_classes, ROOM)
    assert data_equivalence(env.gen_obs(), obs)


def test_exploring_takes_no_goal():
    env, *_ = explore()
    with pytest.raises(ValueError, match="goal"):
        env.reset(options={"goal": (1, 1, 0)})


def test_reset_options_are_kept_and_the_rest_is_drawn():
    env = MiniGridRoomEnv()
    ends = [env.reset(seed=seed, options={"grid": ROOM, "goal": (3, 2, DOWN)})[1]["pose"] for seed in range(20)]
    assert env.goal == (3, 2, DOWN)
    assert len({tuple(pose) for pose in ends}) > 15
    narrow = CORRIDOR.copy()
    narrow[1, 1:3] = 3, 4
    for seed in range(40):  # the start is never the goal
        assert env.reset(seed=seed, options={"grid": narrow, "goal": (1, 1, TO_RIGHT)})[1]["shortest_path_length"] > 0
    env.reset(seed=0, options={"grid": ROOM, "goal": (3, 2, DOWN)})
    env.reset(seed=0, options={"grid": ROOM.tolist(), "start": ends[0]})
    assert env.pose == tuple(ends[0])
    np.testing.assert_array_equal(env.grid_classes, ROOM)
    env.reset(seed=0, options={"grid": np.asfortranarray(ROOM.astype(np.uint8))})
    np.testing.assert_array_equal(env.grid_classes, ROOM)
    env.reset(seed=0)
    assert (env.grid_classes != ROOM).any()


@pytest.mark.parametrize("action", [3, 6, -1, 2.0, "forward", None, np.array([1])])
def test_invalid_actions(action):
    env, *_ = navigate()
    with pytest.raises(ValueError, match="action must be an integer from 0 to 2, got"):
        env.step(action)
    assert env.step_count == 0


def test_other_actions_of_minigrid_do_nothing():
    env, obs, _ = navigate()
    for action in (Actions.pickup, Actions.drop, Actions.toggle, Actions.done):
        after, reward, terminated, _, info = env.step(action)
        assert data_equivalence(after, obs)
        assert (reward, terminated, info["blocked"]) == (-0.01, False, True)
    assert env.step(Actions.forward)[4]["pose"].tolist() == [2, 1, TO_RIGHT]


def test_set_state_errors():
    env, *_ = navigate()
    with pytest.raises(ValueError, match="explore"):
        explore()[0].set_state(env.get_state())
    with pytest.raises(ValueError, match="grid must be"):
        MiniGridRoomEnv().set_state({**env.get_state(), "grid": [[1]]})
