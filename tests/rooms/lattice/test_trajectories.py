"""Spanning trajectories: walks that happen, visit and bump into everything, and are as short as a salesman's tour."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import RoomConfig, generate_rooms
from eswm_gym.rooms.lattice.trajectories import free_distances, trajectory_banks

seeds = st.integers(0, 2**32 - 1)
configs = st.builds(
    lambda radius, walls, hidden: RoomConfig.random_wall(radius, wall_length=walls, hidden=hidden),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([(0, 0), (0, 2), (1, 4)]),
    st.sampled_from([0.0, 0.4, 1.0]),
)


@given(config=configs, seed=seeds)
def test_a_trajectory_spans_its_cluster(config, seed, true_room):
    rng = np.random.default_rng(seed)
    rooms = generate_rooms(rng, 4, config)
    banks = trajectory_banks(rng, rooms, 500)
    transitions = banks.transitions()
    for i in range(4):
        room = true_room(rooms, i)
        path = [t for t in transitions[i].tolist() if t[0] >= 0]
        assert all(room.happens(t) for t in path)
        assert all(before[2] == after[0] for before, after in zip(path, path[1:], strict=False))
        seen = set(np.flatnonzero(banks.rooms.observed[i]).tolist())
        clusters = [c for c in nx.connected_components(room.graph(room.free))]
        assert len(seen & room.free) == max(map(len, clusters), default=0)
        cluster = seen & room.free
        assert not cluster or cluster in clusters
        beside = {w for w in room.walls & room.observed if any(n in cluster for n in room.neighbors[w])}
        assert seen - cluster == beside
        visited = {room.location_of[s] for t in path for s in (t[0], t[2])}
        assert visited == cluster or (len(cluster) == 1 and not path)
        bumps = [room.ahead(room.location_of[s], a) for s, a, e in path if s == e]
        assert sorted(bumps) == sorted(beside)


@given(config=configs, seed=seeds)
def test_free_distances(config, seed, true_room):
    rooms = generate_rooms(np.random.default_rng(seed), 2, config)
    distances = free_distances(rooms)
    for i in range(2):
        room = true_room(rooms, i)
        expected = np.full(distances[i].shape, len(room.locations))
        for here, lengths in nx.all_pairs_shortest_path_length(room.graph(room.free)):
            for there, length in lengths.items():
                expected[here, there] = length
        assert (distances[i] == expected).all()


def test_trajectories_are_as_short_as_networkx_makes_them(true_room):
    """The paper's are networkx's approximations of a travelling salesman's."""
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, 40, RoomConfig.random_wall(3))
    banks = trajectory_banks(rng, rooms, 500)
    ours = theirs = 0
    for i in range(40):
        room = true_room(banks.rooms, i)
        if len(room.free) > 1:
            ours += int((banks.source[i] >= 0).sum()) - len(room.observed & room.walls)
            theirs += len(nx.approximation.traveling_salesman_problem(room.graph(room.free), cycle=False)) - 1
    assert ours <= theirs


def test_a_trajectory_is_cut_where_it_must_be():
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, 50, RoomConfig.open_arena())
    banks = trajectory_banks(rng, rooms, 5)
    assert banks.source.shape == (50, 5) and (banks.source >= 0).all()
    assert (banks.rooms.observed.sum(1) == 6).all()


def test_free_distances_in_large_rooms():
    for radius in (6, 7):
        rooms = generate_rooms(np.random.default_rng(0), 1, RoomConfig.open_arena(radius, states=tuple(range(169))))
        assert (free_distances(rooms)[0] == rooms.lattice.distances).all()
