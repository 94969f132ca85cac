"""Banks and queries ask the lattice for its actions: here squares with four of them, in place of hexagons."""

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import (
    Kind,
    Lattice,
    RoomBatch,
    add_transitions,
    draw_queries,
    observed_moves,
    random_regions,
    spanning_banks,
    walk_banks,
)
from eswm_gym.rooms.lattice.trajectories import add_walks, free_distances, trajectory_banks

WIDTH, HEIGHT, N = 5, 4, 30
STEPS = ((1, 0), (0, -1), (-1, 0), (0, 1))  # E, N, W, S


def ahead(location: int, action: int) -> int:
    """What lies there, -1 off the lattice."""
    x, y = location % WIDTH + STEPS[action][0], location // WIDTH + STEPS[action][1]
    return y * WIDTH + x if 0 <= x < WIDTH and 0 <= y < HEIGHT else -1


SQUARES = Lattice(
    actions=("E", "N", "W", "S"),
    neighbors=np.array([[ahead(i, a) for a in range(4)] for i in range(WIDTH * HEIGHT)]),
    reverse=np.array([2, 3, 0, 1]),
    xy=np.array([(i % WIDTH, i // WIDTH) for i in range(WIDTH * HEIGHT)], float),
    displacements=np.array(STEPS),
)


@pytest.fixture(scope="module")
def rooms():
    """States are 100 more than locations, so that the moves can be read off."""
    rng = np.random.default_rng(0)
    states = np.tile(np.arange(WIDTH * HEIGHT) + 100, (N, 1))
    walls = rng.random(states.shape) < 0.2
    return RoomBatch(SQUARES, states, walls, ~random_regions(rng, rng.integers(0, 7, N), SQUARES))


def check_true(banks) -> None:
    bank = banks.transitions()
    for walls, rows in zip(banks.rooms.walls, bank, strict=True):
        for source, action, end in rows[rows[:, 1] >= 0].tolist():
            there = ahead(source - 100, action)
            stays = there < 0 or walls[there]
            assert not walls[source - 100] and end - 100 == (source - 100 if stays else there)
    assert banks.rooms.is_true(bank)[bank[..., 1] >= 0].all()


def free_graph(rooms: RoomBatch, i: int) -> nx.Graph:
    free = set(np.flatnonzero(rooms.observed[i] & ~rooms.walls[i]).tolist())
    graph = nx.Graph([(here, ahead(here, a)) for here in free for a in range(4) if ahead(here, a) in free])
    graph.add_nodes_from(free)
    return graph


def test_spanning_banks(rooms):
    banks = spanning_banks(np.random.default_rng(1), rooms)
    check_true(banks)
    for i, rows in enumerate(banks.transitions()):
        graph, rows = free_graph(rooms, i), rows[rows[:, 1] >= 0] - [100, 0, 100]
        tree = nx.Graph([(s, e) for s, _, e in rows.tolist() if s != e])
        tree.add_nodes_from(graph)
        assert nx.is_forest(tree) and set(map(frozenset, nx.connected_components(tree))) == set(
            map(frozenset, nx.connected_components(graph))
        )
        bumped = {ahead(s, a) for s, a, e in rows.tolist() if s == e}
        walls = np.flatnonzero(rooms.walls[i] & rooms.observed[i]).tolist()
        assert bumped == {wall for wall in walls if any(ahead(wall, a) in graph for a in range(4))}


def test_dense_banks_walks_and_trajectories(rooms):
    rng = np.random.default_rng(2)
    banks = add_transitions(rng, spanning_banks(rng, rooms), np.full(N, 1000))
    check_true(banks)
    np.testing.assert_array_equal(banks.holds(), observed_moves(rooms))
    assert banks.holds().shape == (N, 20, 4)
    for other in (
        walk_banks(rng, rooms, np.full(N, 30), orderly=0.5),
        trajectory_banks(rng, rooms, 60),
        add_walks(rng, banks, 5, 90),
    ):
        check_true(other)
        assert (other.source >= 0).sum() > 5 * N


def test_distances(rooms):
    distances = free_distances(rooms)
    for i in range(N):
        lengths = dict(nx.all_pairs_shortest_path_length(free_graph(rooms, i)))
        for here in range(20):
            expected = [lengths.get(here, {}).get(there, 20) for there in range(20)]
            assert distances[i, here].tolist() == expected


def test_distances_where_moves_lead_one_way():
    ring = Lattice(
        actions=("on",), neighbors=np.array([[1], [2], [3], [0]]), reverse=np.array([-1]), xy=np.zeros((4, 2))
    )
    free = np.zeros((1, 4), bool)
    room = RoomBatch(ring, np.arange(4)[None], free, ~free)
    assert room.distances_to(np.array([1])).tolist() == [[1, 0, 3, 2]]
    assert room.distances_from(np.array([1])).tolist() == [[3, 0, 1, 2]]


def test_queries(rooms):
    banks = spanning_banks(np.random.default_rng(3), rooms)
    queries = draw_queries(np.random.default_rng(4), banks, 40, mix=(0.4, 0.2, 0.2, 0.2))
    for i, j in np.ndindex(queries.kind.shape):
        here, action, kind = queries.location[i, j], queries.action[i, j], queries.kind[i, j]
        there = ahead(int(here), int(action))
        assert 0 <= action < 4 and (kind == Kind.OFF_LATTICE) == (there < 0)
        if kind == Kind.UNSOLVABLE:
            assert rooms.observed[i, here] != rooms.observed[i, there]
    assert set(np.unique(queries.kind).tolist()) == {0, 1, 2, 3}
