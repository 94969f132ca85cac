"""Rooms on every lattice, against moves worked out from coordinates and against networkx."""

import json
import warnings

import gymnasium as gym
import networkx as nx
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from eswm_gym.envs import LatticeEnv, RandomWallEnv
from eswm_gym.rooms import CODES, Room, lattice_of, move_numbers, pose_lattice, square_lattice

SIZES = {"square": (4, 3), "diagonal": (3, 4), "torus": (3, 4), "pose": (3, 3), "hexagon": (2,)}
STEPS = {
    "left": (-1, 0), "down-left": (-1, 1), "down": (0, 1), "down-right": (1, 1),
    "right": (1, 0), "up-right": (1, -1), "up": (0, -1), "up-left": (-1, -1),
    "E": (1, 0), "NE": (1, -1), "NW": (0, -1), "W": (-1, 0), "SW": (-1, 1), "SE": (0, 1),
}  # fmt: skip
NAMES = {
    "square": ("left", "down", "right", "up"),
    "torus": ("left", "down", "right", "up"),
    "diagonal": ("left", "down-left", "down", "down-right", "right", "up-right", "up", "up-left"),
    "pose": ("turn left", "turn right", "forward"),
    "hexagon": ("E", "NE", "NW", "W", "SW", "SE"),
}
every_lattice = pytest.mark.parametrize("lattice", SIZES)
both_actions = pytest.mark.parametrize("actions", ["known", "permuted"])


def places(lattice) -> list:
    """The coordinates of each location, with the heading of a pose."""
    if lattice == "hexagon":
        rim = range(-2, 3)
        return [(q, r) for r in rim for q in rim if abs(q + r) <= 2]
    width, height = SIZES[lattice]
    cells = [(x, y) for y in range(height) for x in range(width)]
    return [(x, y, way) for x, y in cells for way in ("right", "down", "left", "up")] if lattice == "pose" else cells


def ahead(lattice, place, name):
    """Where a move leads if no wall is there; None off the lattice."""
    if name.startswith("turn"):
        ways = ("right", "down", "left", "up")
        return *place[:2], ways[(ways.index(place[2]) + (1 if name == "turn right" else -1)) % 4]
    dx, dy = STEPS[place[2] if name == "forward" else name]
    there = (place[0] + dx, place[1] + dy, *place[2:])
    if lattice == "torus":
        there = there[0] % 3, there[1] % 4
    return there if there in places(lattice) else None


def graph_of(lattice, room) -> nx.DiGraph:
    """The moves from free locations to others."""
    all_places, walls = places(lattice), set(np.flatnonzero(room.walls).tolist())
    graph = nx.DiGraph()
    graph.add_nodes_from(set(range(len(all_places))) - walls)
    for here in list(graph):
        for name in NAMES[lattice]:
            there = ahead(lattice, all_places[here], name)
            if there is not None and all_places.index(there) in graph:
                graph.add_edge(here, all_places.index(there))
    return graph


def make(lattice, **kwargs):
    return LatticeEnv(lattice, SIZES[lattice], **kwargs)


@every_lattice
@both_actions
def test_episodes(lattice, actions):
    """What an action does, what is seen, and how far the goal is."""
    env, rng = make(lattice, actions=actions, walls=0.4), np.random.default_rng(0)
    all_places, names = places(lattice), NAMES[lattice]
    for seed in range(12):
        obs, info = env.reset(seed=seed)
        room, here = env.room, info["location"]
        numbers = room.numbers.tolist()
        meaning = names if actions == "known" else [names[numbers.index(a)] for a in range(len(names))]
        graph = graph_of(lattice, room)
        lengths = nx.shortest_path_length(graph, target=env.goal)
        assert sorted(room.states.tolist()) == list(range(len(all_places)))
        for _ in range(15):
            told = obs.pop("actions").tolist()
            assert told == (move_numbers(names) if actions == "known" else CODES[: len(names)]).tolist()
            assert obs == {"state": room.states[here], "goal": room.states[env.goal]}
            assert (info["location"], info["shortest_path_length"]) == (here, lengths[here])
            ends = [ahead(lattice, all_places[here], name) for name in meaning]
            assert info["action_mask"].tolist() == [int(end is not None) for end in ends]
            action = int(rng.integers(len(names)))
            end = here if ends[action] is None else all_places.index(ends[action])
            end = end if end in graph else here
            obs, reward, terminated, _, info = env.step(action)
            assert (info["blocked"], terminated, reward) == (end == here, end == env.goal, 1 if terminated else -0.01)
            here = end
            if terminated:
                break


@every_lattice
def test_exploring_ends_when_all_that_can_be_reached_is_visited(lattice):
    env, rng = make(lattice, task="explore", walls=0.3), np.random.default_rng(0)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        left = nx.descendants(graph_of(lattice, env.room), info["location"])
        terminated = False
        while not terminated:
            _, reward, terminated, _, info = env.step(int(rng.integers(env.action_space.n)))
            assert reward == (info["location"] in left)
            left -= {info["location"]}
            assert terminated == info["is_success"] == (not left)


@every_lattice
@both_actions
def test_banks_span_the_room_in_the_environments_numbers(lattice, actions):
    env = make(lattice, actions=actions, memory_bank="spanning", walls=0.3)
    for seed in range(6):
        _, info = env.reset(seed=seed)
        bank, room = info["memory_bank"], env.room
        assert bank in env.bank_space
        tree, graph = nx.Graph(), graph_of(lattice, room)
        tree.add_nodes_from(graph)
        for source, action, end in bank[bank[:, 1] >= 0].tolist():
            start, there = room.location_of(source), room.location_of(end)
            if graph.out_degree(start):  # else an episode cannot begin here
                env.reset(options={"room": room, "start": start})
                assert env.step(action)[0]["state"] == end
            if start != there:
                tree.add_edge(start, there)
        assert nx.is_forest(tree)
        assert nx.number_connected_components(tree) == nx.number_weakly_connected_components(graph)


@every_lattice
def test_permuted_actions_change_with_the_episode_and_have_no_names(lattice):
    env = make(lattice, actions="permuted")
    dealt = set()
    for seed in range(40):
        env.reset(seed=seed)
        dealt.add(tuple(env.room.numbers.tolist()))
    assert env.action_names is None
    assert len(dealt) == 6 if lattice == "pose" else len(dealt) > 15
    known = make(lattice)
    assert known.action_names == NAMES[lattice]
    assert len(move_numbers(known.action_names)) == known.action_space.n


def test_known_actions_have_names_in_every_environment():
    assert gym.make("ESWM-Lattice-v0").unwrapped.action_names == ("left", "down", "right", "up")
    assert RandomWallEnv(2).action_names == ("E", "NE", "NW", "W", "SW", "SE")


@pytest.mark.parametrize(("walls", "most"), [(0.2, 7), (0, 0), (0.5, 18)])
def test_walls_are_whole_cells_and_as_many_as_asked_for(walls, most):
    env, counts = LatticeEnv("pose", (6, 6), walls=walls), set()
    for seed in range(150):
        env.reset(seed=seed)
        cells = env.room.walls.reshape(36, 4)
        assert (cells.all(1) == cells.any(1)).all()
        counts.add(int(cells.all(1).sum()))
    assert (min(counts), max(counts)) == (0, most)


# Poses in 3 x 1 cells, 4 * cell + heading; headings are right, down, left, up.
POSES = Room(pose_lattice(3, 1), range(12))


def test_the_way_there_is_not_as_long_as_the_way_back():
    env = LatticeEnv("pose", (3, 1))
    _, info = env.reset(options={"room": POSES, "start": 0, "goal": 8})
    assert info["shortest_path_length"] == 2  # forward, forward
    _, info = env.reset(options={"room": POSES, "start": 8, "goal": 0})
    assert info["shortest_path_length"] == 6  # and two turns before, two after
    assert POSES.distances_from(0)[[8, 9, 10, 6]].tolist() == [2, 3, 4, 3]
    assert POSES.distances_to(0)[[8, 9, 10, 6]].tolist() == [6, 5, 4, 3]
    assert POSES.shortest_path(8, 0) in ([8, 9, 10, 6, 2, 3, 0], [8, 11, 10, 6, 2, 1, 0])


def test_walls_come_and_go_by_cells():
    env = LatticeEnv("pose", (3, 1))
    env.reset(options={"room": POSES, "start": 0, "goal": 9})
    for location, message in ((3, "location 0: the agent"), (8, "location 9: the goal")):
        with pytest.raises(ValueError, match=message):
            env.add_walls([location])
    env.add_walls([6])
    assert np.flatnonzero(env.room.walls).tolist() == [4, 5, 6, 7]
    *_, info = env.step(2)
    assert info["blocked"] and info["shortest_path_length"] == -1
    env.remove_walls([5])
    assert not env.room.walls.any() and env.shortest_path_length == 3
    assert env.step(2)[4]["location"] == 4


@every_lattice
@both_actions
def test_state_carries_over_and_seeds_decide(lattice, actions):
    def play(env):
        results = []
        for action in np.random.default_rng(0).integers(env.action_space.n, size=50):
            results.append(env.step(action))
            if results[-1][2]:
                results.append(env.reset())
        return results

    one, two = (make(lattice, actions=actions, memory_bank="spanning") for _ in range(2))
    assert data_equivalence(one.reset(seed=3), two.reset(seed=3), exact=True)
    state = json.loads(json.dumps(one.get_state()))
    future = play(one)
    assert data_equivalence(play(two), future, exact=True)
    two.set_state(state)
    assert data_equivalence(play(two), future, exact=True)
    two.reset(options={"room": one.layout, "start": one.place})
    assert two.layout == one.layout and two.place == one.place


@every_lattice
@both_actions
@pytest.mark.parametrize("task", ["navigate", "explore"])
def test_gymnasiums_checks(lattice, actions, task):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env_id = "ESWM-Lattice-v0" if task == "navigate" else "ESWM-LatticeExplore-v0"
        env = gym.make(env_id, lattice=lattice, size=SIZES[lattice], actions=actions, render_mode="rgb_array")
        check_env(env.unwrapped)


def test_many_rooms():
    envs = gym.make_vec("ESWM-Lattice-v0", 3, lattice="pose", size=(3, 3), actions="permuted")
    assert isinstance(envs, gym.vector.SyncVectorEnv)
    _, infos = envs.reset(seed=0)
    assert infos["memory_bank"].shape == (3, 35, 3)
    envs.close()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"lattice": "cube"}, "lattice must be one of .* got 'cube'"),
        ({"lattice": "hexagon"}, r"size of a hexagon lattice is \(radius\), got \(6, 6\)"),
        ({"size": (6, 0)}, "height must be .* got 0"),
        ({"size": (1, 1)}, r"two locations .* square \(1, 1\)"),
        ({"lattice": "torus", "size": (2, 4)}, "width must be .* at least 3, got 2"),
        ({"actions": "hidden"}, "actions must be one of .* got 'hidden'"),
        ({"walls": 1}, "walls must be .* got 1"),
        ({"walls": -0.1}, "walls must be .* got -0.1"),
        ({"task": "walk"}, "task .* 'walk'"),
        ({"memory_bank": "full"}, "memory_bank .* 'full'"),
    ],
)
def test_constructor_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        LatticeEnv(**kwargs)


def test_a_room_has_to_fit():
    env = LatticeEnv(size=(3, 2))
    for room, message in (
        (Room(square_lattice(2, 3), range(6)), r"lattice square \(3, 2\), got square \(2, 3\)"),
        (Room(lattice_of("diagonal", (3, 2)), range(6)), r"got diagonal \(3, 2\)"),
        (Room(square_lattice(3, 2), range(1, 7)), "states below 6, got 6"),
        (Room(square_lattice(3, 2), range(6), numbers=[1, 0, 2, 3]), r"as its lattice does, got \[1, 0, 2, 3\]"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options={"room": room})
    env.reset(options={"room": Room(square_lattice(width=3, height=2), range(6))})


def test_text():
    env = LatticeEnv(size=(3, 2), render_mode="ansi")
    env.reset(options={"room": Room(square_lattice(3, 2), [5, 4, 3, 2, 1, 0], [4]), "start": 0, "goal": 2})
    assert env.render().splitlines()[:2] == ["(5)    4    [3]", " 2    #1#    0"]
    env = LatticeEnv("pose", (2, 1), task="explore", render_mode="ansi")
    env.reset(options={"room": Room(pose_lattice(2, 1), range(8)), "start": 1})
    env.step(0)
    assert env.render().splitlines()[:3] == ["    3           7", " 2    (0)    6     4", "   .1.          5"]


@every_lattice
def test_pixels(lattice):
    """Each wall is dark in its middle, each free location is not."""
    env = make(lattice, task="explore", render_mode="rgb_array", walls=0.6)
    env.reset(seed=4)
    frame, xy = env.render(), env.room.lattice.xy * (128 if lattice == "pose" else 64)
    reach = (32, 64 / np.sqrt(3) if lattice == "hexagon" else 32)
    x, y = (xy - xy.min(0) + 16 + reach).round().astype(int).T
    dark = (frame[y - 14, x] == 64).all(1)
    assert env.room.walls.any()
    np.testing.assert_array_equal(dark, env.room.walls)
