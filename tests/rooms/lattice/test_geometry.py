"""Hexagonal lattices against geometry done independently (conftest.py) and against networkx, and one made by hand."""

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import ACTION_NAMES, DISPLACEMENTS, N_ACTIONS, Lattice, hex_lattice, reverse_action

RADII = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def graph(true_neighbors):
    """`graph(radius)` is the lattice as a networkx graph."""

    def build(radius):
        rows = enumerate(true_neighbors(radius))
        return nx.Graph([(here, there) for here, row in rows for there in row if there >= 0])

    return build


@pytest.mark.parametrize(
    ("radius", "locations", "edges", "moves"),
    [(1, 7, 12, 24), (2, 19, 42, 84), (3, 37, 90, 180), (4, 61, 156, 312)],
)
def test_sizes(graph, radius, locations, edges, moves):
    lattice = hex_lattice(radius)
    assert graph(radius).number_of_nodes() == lattice.n_locations == locations
    assert graph(radius).number_of_edges() == len(lattice.edges) == edges
    assert lattice.on_lattice.shape == (locations, N_ACTIONS)
    assert lattice.on_lattice.sum() == moves


def test_radius_one_by_hand():
    """Rows of two, three and two locations: 0 1 / 2 3 4 / 5 6."""
    expected = [
        # E NE NW W SW SE
        [1, -1, -1, -1, 2, 3],
        [-1, -1, -1, 0, 3, 4],
        [3, 0, -1, -1, -1, 5],
        [4, 1, 0, 2, 5, 6],
        [-1, -1, 1, 3, 6, -1],
        [6, 3, 2, -1, -1, -1],
        [-1, 4, 3, 5, -1, -1],
    ]
    np.testing.assert_array_equal(hex_lattice(1).neighbors, expected)


@pytest.mark.parametrize("radius", RADII)
def test_moves(true_neighbors, radius):
    lattice = hex_lattice(radius)
    expected = np.array(true_neighbors(radius))
    np.testing.assert_array_equal(lattice.neighbors, expected)
    np.testing.assert_array_equal(lattice.on_lattice, expected >= 0)
    here = np.arange(len(expected))[:, None]
    np.testing.assert_array_equal(lattice.next_location, np.where(expected < 0, here, expected))


@pytest.mark.parametrize("radius", RADII)
def test_edges_are_each_adjacent_pair_once(graph, radius):
    ours = [frozenset(pair) for pair in hex_lattice(radius).edges.tolist()]
    assert len(ours) == len(set(ours))
    assert set(ours) == {frozenset(pair) for pair in graph(radius).edges}


@pytest.mark.parametrize("radius", RADII)
def test_distances_between_all_pairs(graph, radius):
    lattice = hex_lattice(radius)
    expected = dict(nx.all_pairs_shortest_path_length(graph(radius)))
    for here in range(lattice.n_locations):
        for there in range(lattice.n_locations):
            assert lattice.distances[here, there] == expected[here][there]
    assert lattice.distances.max() == 2 * radius


@pytest.mark.parametrize("radius", RADII)
def test_coordinates(true_centres, radius):
    lattice = hex_lattice(radius)
    np.testing.assert_allclose(lattice.xy, true_centres(radius), atol=1e-3)
    east, south_east = np.array([1, 0]), np.array([0.5, 0.75**0.5])  # what q and r count
    np.testing.assert_allclose(lattice.axial @ [east, south_east], true_centres(radius), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "east", "south"),
    [("E", 1, 0), ("NE", 1, -1), ("NW", -1, -1), ("W", -1, 0), ("SW", -1, 1), ("SE", 1, 1)],
)
def test_action_names_say_where_they_go(name, east, south):
    lattice = hex_lattice(1)
    centre = lattice.distances.max(1).argmin()
    moved = lattice.xy[lattice.neighbors[centre, ACTION_NAMES.index(name)]] - lattice.xy[centre]
    np.testing.assert_allclose(np.hypot(*moved), 1)
    np.testing.assert_array_equal(np.sign(np.round(moved, 6)), [east, south])


def test_reverse_action_names():
    opposite = {"E": "W", "NE": "SW", "NW": "SE", "W": "E", "SW": "NE", "SE": "NW"}
    assert {name: ACTION_NAMES[reverse_action(a)] for a, name in enumerate(ACTION_NAMES)} == opposite
    np.testing.assert_array_equal(reverse_action(np.arange(6)), [3, 4, 5, 0, 1, 2])


@pytest.mark.parametrize("radius", RADII)
def test_reverse_action_undoes_each_move(radius):
    lattice = hex_lattice(radius)
    here, action = np.nonzero(lattice.on_lattice)
    there = lattice.neighbors[here, action]
    np.testing.assert_array_equal(lattice.neighbors[there, reverse_action(action)], here)
    np.testing.assert_array_equal(lattice.neighbors[there, lattice.reverse[action]], here)


@pytest.mark.parametrize("radius", RADII)
def test_actions_add_their_displacements(radius):
    lattice = hex_lattice(radius)
    assert lattice.actions == ACTION_NAMES and lattice.n_actions == N_ACTIONS == len(DISPLACEMENTS)
    here, action = np.nonzero(lattice.on_lattice)
    there = lattice.neighbors[here, action]
    np.testing.assert_array_equal(lattice.axial[here] + lattice.displacements[action], lattice.axial[there])


@pytest.mark.parametrize("radius", RADII)
def test_rows_of_edges(radius):
    lattice = hex_lattice(radius)
    for here, action in np.argwhere(lattice.on_lattice).tolist():
        edge = lattice.edges[lattice.edge_of[here, action]].tolist()
        assert set(edge) == {here, lattice.neighbors[here, action]}
    assert (lattice.edge_of[~lattice.on_lattice] == 0).all()


def test_a_lattice_by_hand():
    """Three seats in a circle, which only go round one way, and a pit that one jumps into and never leaves."""
    lattice = Lattice(
        actions=("on", "wait", "jump"),
        neighbors=np.array([[1, 0, 3], [2, 1, -1], [0, 2, -1], [-1, -1, -1]]),
        reverse=np.array([-1, 1, -1]),
        xy=np.zeros((4, 2)),
    )
    assert (lattice.n_locations, lattice.n_actions, lattice.displacements) == (4, 3, None)
    assert lattice.on_lattice.tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert lattice.next_location.tolist() == [[1, 0, 3], [2, 1, 1], [0, 2, 2], [3, 3, 3]]
    assert lattice.distances.tolist() == [[0, 1, 2, 1], [2, 0, 1, 3], [1, 2, 0, 2], [4, 4, 4, 0]]  # 4: no way
    assert sorted(map(sorted, lattice.edges.tolist())) == [[0, 1], [0, 2], [0, 3], [1, 2]]


def test_a_pair_with_several_moves_between_is_one_edge():
    """A ring of two: east and west both lead to the other location."""
    ring = Lattice(
        actions=("E", "W"), neighbors=np.array([[1, 1], [0, 0]]), reverse=np.array([1, 0]), xy=np.zeros((2, 2))
    )
    assert len(ring.edges) == 1 and ring.edge_of.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("radius", [0, -1, 1.5, 0.5, float("nan"), float("inf"), "2", None])
def test_radius_errors(radius):
    with pytest.raises(ValueError, match="radius must be a whole number of at least 1"):
        hex_lattice(radius)


@pytest.mark.parametrize("radius", [5.0, np.int64(6), np.int8(7)])
def test_any_whole_number_is_a_radius(radius):
    lattice = hex_lattice(radius)
    assert lattice.n_locations == 3 * int(radius) * (int(radius) + 1) + 1
    assert type(lattice.radius) is int


def test_a_lattice_is_shared_and_cannot_be_changed():
    lattice = hex_lattice(2)
    assert hex_lattice(2) is lattice
    for name in ("axial", "neighbors", "reverse", "xy", "next_location", "on_lattice", "edges", "edge_of", "distances"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(lattice, name)[0] = 0


def test_a_lattice_leaves_alone_what_it_is_made_of():
    neighbors, reverse, xy = np.array([[1], [-1]]), np.array([-1]), np.zeros((2, 2))
    lattice = Lattice(actions=("on",), neighbors=neighbors, reverse=reverse, xy=xy)
    neighbors[0, 0] = -1
    assert lattice.neighbors.tolist() == [[1], [-1]] and DISPLACEMENTS.flags.writeable
