"""`Room`, against rooms worked out by hand and against networkx."""

import copy
import json
import pickle

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import Lattice, Room, RoomConfig, generate_rooms, pose_lattice, square_lattice, torus_lattice

# Radius 2, by location; the walls of ROOM are in brackets.
#         0   1   2
#       3   4   5   6
#     7  [8] [9] [10] 11
#      12  13  14  15
#        16  17  18
E, NE, NW, W, SW, SE = range(6)
WALLS = [8, 9, 10]
STATES = [18 - location for location in range(19)]


UNNAMED = Lattice(actions=("stay",), neighbors=np.array([[0]]), reverse=np.array([0]), xy=np.zeros((1, 2)))


@pytest.fixture
def room():
    return Room(2, STATES, WALLS)


def graph(room: Room, walls) -> nx.Graph:
    """The free locations of a room, from coordinates alone."""
    rim = range(-room.radius, room.radius + 1)
    places = {c: i for i, c in enumerate((q, r) for r in rim for q in rim if -room.radius <= q + r <= room.radius)}
    free = nx.Graph()
    free.add_nodes_from(set(places.values()) - set(walls))
    for (q, r), i in places.items():
        for there in ((q + 1, r), (q, r + 1), (q - 1, r + 1)):
            if there in places and {i, places[there]} <= set(free):
                free.add_edge(i, places[there])
    return free


def place_of(room, state):
    return room.states.tolist().index(state)


def random_rooms(n):
    """Rooms of both sizes, some of them split by long walls."""
    rng, rooms = np.random.default_rng(5), []
    for radius in (2, 3):
        config = RoomConfig.random_wall(radius, wall_length=(3, 2 * radius + 3), hidden=0.0)
        rooms += [Room.generate(rng, config) for _ in range(n)]
    assert any((room.distances_from(room.walls.argmin()) < 0).sum() > room.walls.sum() for room in rooms)
    return rooms


def test_moves(room):
    assert room.next_location(4, E) == 5
    assert room.next_location(4, NW) == 0
    assert room.next_location(4, SW) == 4  # into the wall at 8
    assert room.next_location(3, W) == 3  # off the lattice
    assert room.is_blocked(4, SW) and room.is_blocked(3, W) and not room.is_blocked(4, E)
    assert room.next_state(14, E) == 13
    assert room.next_state(14, SE) == 14
    assert room.location_of(14) == 4


def test_paths(room):
    assert room.shortest_path(4, 13) == [4, 3, 7, 12, 13]
    assert room.shortest_path(4, 4) == [4]
    distances = room.distances_from(4)
    assert distances[[4, 5, 7, 13, 11, 18]].tolist() == [0, 1, 2, 4, 3, 5]
    assert distances[WALLS].tolist() == [-1, -1, -1]


def test_split_room(room):
    room.add_walls([7, 11])
    assert room.shortest_path(4, 13) == []
    assert np.flatnonzero(room.distances_from(4) >= 0).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_walls_change_moves_and_paths(room):
    room.remove_walls([8])
    assert room.next_location(4, SW) == 8
    assert room.shortest_path(4, 13) == [4, 8, 13]
    room.add_walls([3, 0])
    assert room.is_blocked(4, W)
    assert room == Room(2, STATES, [0, 3, 9, 10])


@pytest.mark.parametrize("room", random_rooms(12), ids=repr)
def test_distances_and_paths_like_networkx(room):
    free = graph(room, np.flatnonzero(room.walls).tolist())
    lengths = dict(nx.all_pairs_shortest_path_length(free))
    for start in free:
        expected = [lengths[start].get(goal, -1) if goal in free else -1 for goal in range(room.n_locations)]
        assert room.distances_from(start).tolist() == expected
        for goal in free:
            path = room.shortest_path(start, goal)
            assert len(path) == lengths[start].get(goal, -1) + 1
            if path:
                assert (path[0], path[-1]) == (start, goal)
                assert nx.is_path(free, path)


@pytest.mark.parametrize("room", random_rooms(6), ids=repr)
@pytest.mark.parametrize("extra", [0, 7])
def test_memory_bank_is_true_and_spans(room, extra):
    bank = room.memory_bank(np.random.default_rng(0), extra)
    walls = np.flatnonzero(room.walls).tolist()
    free, whole = graph(room, walls), graph(room, [])
    walked, bumped = nx.Graph(), set()
    walked.add_nodes_from(free)
    for source, action, end in bank.tolist():
        here, there = place_of(room, source), place_of(room, end)
        ahead = room.lattice.neighbors[here, action]
        assert here in free
        if there == here:
            assert ahead == -1 or ahead in walls
            bumped.add(int(ahead))
        else:
            assert ahead == there and free.has_edge(here, there)
            walked.add_edge(here, there)
    assert set(map(frozenset, nx.connected_components(walked))) == set(map(frozenset, nx.connected_components(free)))
    next_to_free = {wall for wall in walls if set(whole[wall]) & set(free)}
    assert bumped - {-1} == next_to_free
    minimal = len(free) - nx.number_connected_components(free) + len(next_to_free)
    assert len(bank) == minimal + extra
    assert len(np.unique(bank, axis=0)) == len(bank)
    assert bank.dtype == np.int64


def test_bank_covers_the_observed_part_only():
    room = Room(2, STATES, observed=[0, 1, 2, 3, 4])
    bank = room.memory_bank(np.random.default_rng(0))
    assert len(bank) == 4
    assert set(bank[:, [0, 2]].ravel().tolist()) == {18, 17, 16, 15, 14}


def test_from_batch_and_back():
    rooms = generate_rooms(np.random.default_rng(1), 5, RoomConfig.random_wall(3))
    for i in range(5):
        room = Room.from_batch(rooms, i)
        batch = room.to_batch()
        for name in ("states", "walls", "observed"):
            np.testing.assert_array_equal(getattr(batch, name)[0], getattr(rooms, name)[i])


def test_generate_is_reproducible():
    draw = [Room.generate(np.random.default_rng(3), RoomConfig.random_wall(2)) for _ in range(2)]
    assert draw[0] == draw[1]


@pytest.mark.parametrize(
    "twin",
    [
        Room.copy,
        copy.copy,
        copy.deepcopy,
        lambda room: pickle.loads(pickle.dumps(room)),
        lambda room: Room.from_dict(json.loads(json.dumps(room.to_dict()))),
    ],
)
def test_copies_are_equal_and_independent(room, twin):
    other = twin(room)
    assert other == room
    other.add_walls([0])
    assert other != room
    assert room == Room(2, STATES, WALLS)


def test_equality_sees_everything(room):
    assert room == Room(2, np.array(STATES), np.isin(np.arange(19), WALLS), np.ones(19, bool))
    assert room != Room(2, STATES)
    assert room != Room(2, STATES[::-1], WALLS)
    assert room != Room(2, STATES, WALLS, observed=range(18))
    assert room != "room"


@pytest.mark.parametrize("name", ["states", "walls", "observed", "targets"])
def test_arrays_are_read_only(room, name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(room, name)[0] = 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda room: room.add_walls([0, 9]), "location 9 is a wall"),
        (lambda room: room.add_walls([19]), "got 19"),
        (lambda room: room.remove_walls([8, 4]), "location 4 is not a wall"),
        (lambda room: room.remove_walls([-1]), "got -1"),
        (lambda room: room.next_location(9, E), "location 9 is a wall"),
        (lambda room: room.next_location(4, 6), "got 6"),
        (lambda room: room.next_location(4, -1), "got -1"),
        (lambda room: room.next_state(40, E), "state 40"),
        (lambda room: room.distances_from(8), "location 8 is a wall"),
        (lambda room: room.distances_from(1.5), "got 1.5"),
        (lambda room: room.shortest_path(9, 0), "start 9 is a wall"),
        (lambda room: room.shortest_path(0, 19), "goal .* got 19"),
        (lambda room: Room(2, STATES[1:]), "19 locations, got 18 states"),
        (lambda room: Room(2, [3, *STATES[1:]]), "states must be different"),
        (lambda room: Room(2, [-1, *STATES[1:]]), "not negative"),
        (lambda room: Room(2, STATES, [22]), "got 22"),
        (lambda room: Room(2, STATES, np.ones(18, bool)), r"\(18,\)"),
        (lambda room: Room(0, [0]), "radius"),
        (lambda room: Room(2, STATES, numbers=[0, 1, 2, 3, 4, 4]), r"permutation of 0 to 5, got \[0, 1, 2, 3, 4, 4\]"),
        (lambda room: Room(2, STATES, numbers=range(5)), r"permutation of 0 to 5, got \[0, 1, 2, 3, 4\]"),
        (lambda room: Room(UNNAMED, [0]), "without a shape"),
    ],
)
def test_errors_name_the_value_and_change_nothing(room, call, message):
    with pytest.raises(ValueError, match=message):
        call(room)
    assert room == Room(2, STATES, WALLS)


def test_what_is_written_of_a_room(room):
    rest = {"states": STATES, "walls": WALLS, "observed": list(range(19))}
    assert room.to_dict() == {"radius": 2, **rest}
    assert Room(2, STATES, WALLS, numbers=range(6)).to_dict() == {"radius": 2, **rest}
    squares = Room(square_lattice(3, 2), range(6), [4], numbers=[3, 0, 1, 2])
    assert squares.to_dict() == {
        "lattice": "square",
        "size": [3, 2],
        "states": [0, 1, 2, 3, 4, 5],
        "walls": [4],
        "observed": [0, 1, 2, 3, 4, 5],
        "numbers": [3, 0, 1, 2],
    }
    assert repr(squares) == "Room(lattice='square', size=[3, 2], walls=[4])"
    for twin in (squares.copy(), Room.from_dict(json.loads(json.dumps(squares.to_dict())))):
        assert twin == squares != Room(square_lattice(3, 2), range(6), [4])
        assert twin.lattice is squares.lattice


def test_only_hexagons_have_a_radius(room):
    assert room.radius == 2
    with pytest.raises(AttributeError, match="radius"):
        Room(square_lattice(3, 2), range(6)).radius  # noqa: B018


def test_numbers_of_actions():
    """0 1 2 / 3 4 5; left, down, right and up have the numbers 3, 0, 1 and 2."""
    room = Room(square_lattice(3, 2), range(10, 16), [2], numbers=[3, 0, 1, 2])
    assert room.targets[4].tolist() == [4, 5, 1, 3]
    assert room.on_lattice[1].tolist() == [True, True, False, True]
    assert (room.next_state(14, 3), room.next_state(11, 1)) == (13, 11)
    for source, action, end in room.memory_bank(np.random.default_rng(0), extra=30).tolist():
        assert room.next_state(source, action) == end
    assert room.to_batch().is_true(np.array([[[14, 3, 13], [14, 0, 13], [14, 0, 14]]])).tolist() == [
        [True, False, True]
    ]


def test_paths_around_a_torus():
    room = Room(torus_lattice(4, 3), range(12))
    assert room.shortest_path(0, 3) == [0, 3]
    room.add_walls([3])
    assert room.distances_from(0).tolist() == [0, 1, 2, -1, 1, 2, 3, 2, 1, 2, 3, 2]


def test_walls_are_whole_cells():
    room = Room(pose_lattice(2, 2), range(16), [5])
    assert np.flatnonzero(room.walls).tolist() == [4, 5, 6, 7]
    room.add_walls([15])
    room.remove_walls([4])
    assert np.flatnonzero(room.walls).tolist() == [12, 13, 14, 15]
    assert np.flatnonzero(room.cells_of([0, 9])).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
