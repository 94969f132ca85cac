"""Random rooms: what a family promises, over many seeds and families."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import RoomBatch, RoomConfig, generate_rooms, hex_lattice

N_LOCATIONS = {1: 7, 2: 19, 3: 37, 4: 61}
seeds = st.integers(0, 2**32 - 1)


@st.composite
def configs(draw) -> RoomConfig:
    radius = draw(st.integers(1, 4))
    n = N_LOCATIONS[radius]
    low = draw(st.integers(0, 2 * radius))
    return RoomConfig(
        radius=radius,
        states=tuple(draw(st.permutations(range(0, 3 * n, draw(st.integers(1, 3)))))),
        wall_length=draw(st.none() | st.tuples(st.just(low), st.integers(low, min(n - 1, low + 4)))),
        no_wall=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])),
        straightness=draw(st.sampled_from([0.0, 0.5, 0.8, 1.0])),
        hidden=draw(st.sampled_from([0.0, 0.1, 0.4, 0.9])),
    )


def rooms_of(config: RoomConfig, n: int = 2000, seed: int = 0) -> RoomBatch:
    return generate_rooms(np.random.default_rng(seed), n, config)


@given(config=configs(), n=st.integers(1, 6), seed=seeds)
def test_every_room_keeps_the_promises_of_its_family(true_room, config, n, seed):
    rooms = rooms_of(config, n, seed)
    n_locations = N_LOCATIONS[config.radius]
    longest = 2 * config.radius - 1 if config.wall_length is None else config.wall_length[1]
    assert len(rooms) == n
    assert rooms.states.shape == rooms.walls.shape == rooms.observed.shape == (n, n_locations)
    assert np.issubdtype(rooms.states.dtype, np.integer)
    assert rooms.walls.dtype == rooms.observed.dtype == bool
    for i in range(n):
        room = true_room(rooms, i)
        assert len(set(room.state_of)) == n_locations
        assert set(room.state_of) <= set(config.states)
        assert len(room.walls) <= longest
        if room.walls:
            assert nx.is_connected(room.graph(room.walls))
        hidden = set(room.locations) - room.observed
        assert len(hidden) <= config.hidden * n_locations
        if hidden:
            assert nx.is_connected(room.graph(hidden))


@given(config=configs(), seed=seeds)
def test_same_seed_same_rooms(config, seed):
    first, second = rooms_of(config, 4, seed), rooms_of(config, 4, seed)
    for name in ("states", "walls", "observed"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_different_seeds_different_rooms():
    first, second = rooms_of(RoomConfig(), 4, 0), rooms_of(RoomConfig(), 4, 1)
    assert (first.states != second.states).any(1).all()


def test_rooms_of_one_batch_differ():
    rooms = rooms_of(RoomConfig(), 500)
    assert len({tuple(states) for states in rooms.states.tolist()}) == 500
    assert len({tuple(walls) for walls in rooms.walls.tolist()}) > 100
    assert len({tuple(observed) for observed in rooms.observed.tolist()}) > 300


# States


def test_a_vocabulary_as_large_as_the_room_is_permuted():
    rooms = rooms_of(RoomConfig.random_wall(2), 200)
    np.testing.assert_array_equal(np.sort(rooms.states, axis=1), np.tile(np.arange(19), (200, 1)))


@pytest.mark.parametrize("config", [RoomConfig.random_wall(1), RoomConfig.open_arena(1, states=tuple(range(10, 20)))])
def test_each_state_is_as_likely_at_each_location(config):
    n = 20_000
    rooms = rooms_of(config, n)
    p = 1 / len(config.states)
    for location, state in itertools.product(range(7), config.states):
        count = (rooms.states[:, location] == state).sum()
        assert abs(count - n * p) < 5 * (n * p * (1 - p)) ** 0.5, (location, state)


# Walls


@pytest.mark.parametrize("no_wall", [0.0, 0.1, 0.5, 1.0])
def test_share_of_rooms_without_a_wall(no_wall):
    rooms = rooms_of(RoomConfig.random_wall(3, no_wall=no_wall), 4000)
    assert abs((~rooms.walls.any(1)).mean() - no_wall) <= 5 * (no_wall * (1 - no_wall) / 4000) ** 0.5


def test_an_open_arena_has_no_wall_and_nothing_hidden():
    rooms = rooms_of(RoomConfig.open_arena(), 500)
    assert not rooms.walls.any()
    assert rooms.observed.all()
    assert rooms.states.shape == (500, 19)
    assert set(np.unique(rooms.states)) == set(range(64))


@pytest.mark.parametrize("radius", [2, 3, 4])
def test_walls_are_at_least_as_long_as_promised(radius):
    rooms = rooms_of(RoomConfig.random_wall(radius, no_wall=0), 2000)
    assert rooms.walls.sum(1).min() >= radius


@pytest.mark.parametrize("radius", [2, 3, 4])
def test_nearly_all_walls_have_a_promised_length_and_all_lengths_occur(radius):
    lengths = rooms_of(RoomConfig.random_wall(radius, no_wall=0), 4000).walls.sum(1)
    promised = np.arange(radius, 2 * radius)
    assert np.isin(lengths, promised).mean() > 0.95
    assert np.isin(promised, lengths).all()


@pytest.mark.parametrize("straightness", [0.0, 0.8, 1.0])
def test_straightness(true_centres, straightness):
    """Walls of four locations lie on a line exactly if they never turned (or turned the same way thrice)."""
    config = RoomConfig.random_wall(3, wall_length=(4, 4), no_wall=0, straightness=straightness)
    places = np.array(true_centres(3))
    rooms = rooms_of(config, 1000)
    lines = [places[walls] for walls in rooms.walls if walls.sum() == 4]
    straight = np.mean([np.linalg.matrix_rank(line[1:] - line[0], tol=0.01) == 1 for line in lines])
    # Three steps; two random turns after the first agree with it with probability 1/4.
    expected = {0.0: 0.25, 0.8: 0.8**3 + 0.2**3 / 4, 1.0: 1.0}[straightness]
    assert abs(straight - expected) < 0.07


def test_walls_lie_everywhere():
    rooms = rooms_of(RoomConfig.random_wall(2), 2000)
    share = rooms.walls.mean(0)
    assert share.min() > 0.05
    assert share.max() < 0.4


# Unobserved region


def test_sizes_of_the_hidden_region_are_uniform():
    n = 16_000
    sizes = (~rooms_of(RoomConfig.random_wall(2, hidden=0.4), n).observed).sum(1)
    counts = np.bincount(sizes, minlength=8)
    assert len(counts) == 8  # 0 to 7 of 19 locations
    assert (abs(counts - n / 8) < 5 * (n / 8 * 7 / 8) ** 0.5).all()


def test_hidden_region_lies_everywhere():
    share = (~rooms_of(RoomConfig.random_wall(2), 2000).observed).mean(0)
    assert share.min() > 0.05
    assert share.max() < 0.5


def test_everything_may_be_hidden():
    assert not rooms_of(RoomConfig.random_wall(1, hidden=1.0), 200).observed.any(1).all()


@given(radius=st.integers(1, 4), data=st.data(), seed=seeds)
def test_an_observed_region_of_so_many_locations_is_connected(true_room, radius, data, seed):
    n = N_LOCATIONS[radius]
    observed = data.draw(st.integers(1, n))
    rooms = rooms_of(RoomConfig.open_arena(radius, states=tuple(range(n)), observed=observed), 4, seed)
    assert rooms.observed.sum(1).tolist() == [observed] * 4
    for i in range(4):
        assert nx.is_connected(true_room(rooms, i).graph(true_room(rooms, i).observed))


def test_observed_regions_have_many_shapes():
    """Some as wide as the lattice of radius 4 lets 19 locations be, few as round as a hexagon of 19."""
    rooms = rooms_of(RoomConfig.open_arena(4, observed=19), 500)
    apart = np.where(rooms.observed[:, :, None] & rooms.observed[:, None], rooms.lattice.distances, 0)
    widths = apart.max((1, 2))
    assert (widths > 4).mean() > 0.9  # a hexagon of radius 2 is 4 wide
    assert widths.max() >= 8
    assert len(np.unique(rooms.observed, axis=0)) == 500


# Families


def test_families():
    default = RoomConfig()
    assert (default.radius, default.states, default.wall_lengths) == (3, tuple(range(37)), (3, 5))
    for radius, n in N_LOCATIONS.items():
        wall = RoomConfig.random_wall(radius)
        assert wall.states == tuple(range(n))
        assert wall.wall_lengths == (radius, 2 * radius - 1)
    arena = RoomConfig.open_arena()
    assert (arena.radius, arena.states, arena.wall_lengths, arena.hidden) == (2, tuple(range(64)), (0, 0), 0)
    assert RoomConfig.random_wall(2, hidden=0.1, wall_length=(1, 6)).wall_lengths == (1, 6)
    assert RoomConfig.open_arena(states=tuple(range(32))).states == tuple(range(32))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0}, "radius must be"),
        ({"radius": 2.5}, "radius must be"),
        ({"radius": 4}, "37 states cannot fill the 61 locations of radius 4"),
        ({"radius": 1, "states": ()}, "cannot fill|not negative"),
        ({"radius": 1, "states": (0, 1, 2, 3, 4, 5)}, "6 states cannot fill the 7 locations"),
        ({"radius": 1, "states": (0, 1, 2, 3, 4, 5, 5)}, "must be different"),
        ({"radius": 1, "states": (-1, 0, 1, 2, 3, 4, 5)}, "not negative"),
        ({"wall_length": (-1, 3)}, "wall_length must be"),
        ({"wall_length": (4, 3)}, "wall_length must be"),
        ({"wall_length": (0, 37)}, "wall_length must be"),
        ({"no_wall": -0.1}, "no_wall must lie between 0 and 1"),
        ({"no_wall": float("nan")}, "no_wall must lie between 0 and 1"),
        ({"straightness": 1.1}, "straightness must lie between 0 and 1"),
        ({"hidden": 40}, "hidden must lie between 0 and 1"),
        ({"observed": 0}, "observed must be 1 to 37 locations, got 0"),
        ({"observed": 38}, "observed must be 1 to 37 locations, got 38"),
    ],
)
def test_config_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        RoomConfig(**arguments)


def test_unknown_option():
    with pytest.raises(TypeError, match="wall_lenght"):
        RoomConfig.random_wall(2, wall_lenght=(2, 3))


# What is true in a room


@given(config=configs(), seed=seeds)
def test_targets(true_room, config, seed):
    rooms = rooms_of(config, 3, seed)
    targets = rooms.targets()
    for i in range(3):
        room = true_room(rooms, i)
        for here in set(room.locations) - room.walls:
            assert targets[i, here].tolist() == [room.end(here, action) for action in range(6)]


def test_true_transitions_by_hand():
    """Rows 0 1 / 2 3 4 / 5 6 with a wall in the centre; the state of a location is ten times its number."""
    walls = np.zeros((1, 7), bool)
    walls[0, 3] = True
    rooms = RoomBatch(hex_lattice(1), 10 * np.arange(7)[None], walls, np.ones((1, 7), bool))
    true = [(0, 0, 10), (10, 3, 0), (0, 4, 20), (0, 5, 0), (20, 0, 20), (0, 1, 0), (60, 5, 60)]
    false = [(0, 0, 0), (0, 0, 20), (0, 5, 30), (30, 0, 40), (30, 1, 30), (0, 1, 10)]
    unknown = [(-1, -1, -1), (0, -1, 10), (0, 6, 10), (5, 0, 5), (0, 0, 11), (999, 0, 999), (-2, 5, -2)]
    np.testing.assert_array_equal(rooms.is_true(np.array([true])), [[True] * len(true)])
    np.testing.assert_array_equal(rooms.is_true(np.array([false])), [[False] * len(false)])
    np.testing.assert_array_equal(rooms.is_true(np.array([unknown])), [[False] * len(unknown)])
    assert rooms.is_true(np.zeros((1, 0, 3), int)).shape == (1, 0)


@given(radius=st.integers(1, 2), seed=seeds)
def test_truth_of_every_possible_transition(true_room, radius, seed):
    rooms = rooms_of(RoomConfig.random_wall(radius), 2, seed)
    states = range(-2, N_LOCATIONS[radius] + 1)
    every = np.array(list(itertools.product(states, range(-1, 7), states)))
    answers = rooms.is_true(np.broadcast_to(every, (2, *every.shape)))
    for i in range(2):
        room = true_room(rooms, i)
        free = set(room.locations) - room.walls
        expected = {(room.state_of[x], a, room.state_of[room.end(x, a)]) for x in free for a in range(6)}
        assert {tuple(t) for t in every[answers[i]].tolist()} == expected
