"""Squares, squares with diagonals, tori and poses, against networkx and against moves worked out one by one."""

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import (
    RoomBatch,
    add_transitions,
    diagonal_lattice,
    pose_lattice,
    random_regions,
    spanning_banks,
    square_lattice,
    torus_lattice,
    walk_banks,
)

WIDTH, HEIGHT, N = 5, 4, 40
CELLS = [(x, y) for y in range(HEIGHT) for x in range(WIDTH)]
LATTICES = {
    "square": square_lattice(WIDTH, HEIGHT),
    "diagonal": diagonal_lattice(WIDTH, HEIGHT),
    "torus": torus_lattice(WIDTH, HEIGHT),
    "pose": pose_lattice(3, 3),
}
GRAPHS = {
    "square": nx.grid_2d_graph(WIDTH, HEIGHT),
    "diagonal": nx.strong_product(nx.path_graph(WIDTH), nx.path_graph(HEIGHT)),
    "torus": nx.grid_2d_graph(WIDTH, HEIGHT, periodic=True),
}


def digraph(lattice) -> nx.DiGraph:
    moves = zip(*np.nonzero(lattice.on_lattice), strict=True)
    return nx.DiGraph([(int(here), int(lattice.neighbors[here, a])) for here, a in moves])


@pytest.mark.parametrize("name", GRAPHS)
def test_adjacent_locations_are_networkx(name):
    expected = {frozenset((CELLS.index(a), CELLS.index(b))) for a, b in GRAPHS[name].edges}
    assert {frozenset(edge) for edge in digraph(LATTICES[name]).edges} == expected
    assert {frozenset(edge) for edge in LATTICES[name].edges.tolist()} == expected
    assert len(LATTICES[name].edges) == len(expected)


def test_square_moves_are_what_they_are_called():
    lattice = square_lattice(3, 2)  # 0 1 2 / 3 4 5
    ends = dict(zip(lattice.actions, lattice.neighbors[4].tolist(), strict=True))
    assert ends == {"left": 3, "down": -1, "right": 5, "up": 1}
    ends = dict(zip(diagonal_lattice(3, 2).actions, diagonal_lattice(3, 2).neighbors[4].tolist(), strict=True))
    assert ends["up-left"] == 0 and ends["up-right"] == 2 and ends["down-left"] == -1
    assert torus_lattice(3, 3).neighbors[0].tolist() == [2, 3, 1, 6]


def test_poses():
    """In 3 x 2 cells: the pose 4 * 1 + 0 stands in the middle of the upper row and looks right."""
    lattice = pose_lattice(3, 2)
    assert lattice.actions == ("turn left", "turn right", "forward")
    assert lattice.neighbors[4].tolist() == [7, 5, 8]  # looks up, looks down, one cell to the right
    assert lattice.neighbors[5, 2] == 4 * 4 + 1 and lattice.neighbors[7, 2] == -1
    assert lattice.reverse.tolist() == [1, 0, -1]


def test_pose_moves_are_minigrids():
    """As `moved` of MiniGrid's rooms, in the middle of a grid."""
    from eswm_gym.rooms.grid import moved

    lattice = pose_lattice(5, 5)
    for heading in range(4):
        for action in range(3):
            x, y, turned = np.asarray(moved(np.array([2, 2, heading]), action)).tolist()
            assert lattice.neighbors[4 * 12 + heading, action] == 4 * (5 * y + x) + turned


@pytest.mark.parametrize("name", LATTICES)
def test_distances_arrivals_and_reverses(name):
    lattice, graph = LATTICES[name], digraph(LATTICES[name])
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    n = lattice.n_locations
    assert lattice.distances.tolist() == [[lengths[i][j] for j in range(n)] for i in range(n)]
    for here, action in zip(*np.nonzero(lattice.on_lattice), strict=True):
        there = lattice.neighbors[here, action]
        assert lattice.arrivals[there, action] == here
        if lattice.reverse[action] >= 0:
            assert lattice.neighbors[there, lattice.reverse[action]] == here


@pytest.fixture(params=LATTICES)
def rooms(request):
    """States are 100 more than locations, so that moves can be read off."""
    lattice, rng = LATTICES[request.param], np.random.default_rng(0)
    states = np.tile(np.arange(lattice.n_locations) + 100, (N, 1))
    cells = lattice.n_locations // (4 if request.param == "pose" else 1)
    walls = np.repeat(rng.random((N, cells)) < 0.2, lattice.n_locations // cells, 1)
    return RoomBatch(lattice, states, walls, ~random_regions(rng, rng.integers(0, 7, N), lattice))


def test_spanning_banks_join_all_that_hangs_together(rooms):
    """As many moves between free locations as a spanning forest has, all true, and a bump into each wall."""
    banks, graph = spanning_banks(np.random.default_rng(1), rooms), digraph(rooms.lattice)
    transitions = banks.transitions()
    assert rooms.is_true(transitions)[transitions[..., 1] >= 0].all()
    for i in range(N):
        free = np.flatnonzero(rooms.observed[i] & ~rooms.walls[i]).tolist()
        hangs_together = nx.Graph(graph.subgraph(free))
        moves = [(s - 100, a, e - 100) for s, a, e in transitions[i].tolist() if a >= 0]
        tree = nx.Graph([(s, e) for s, _, e in moves if s != e])
        tree.add_nodes_from(free)
        n_trees = nx.number_connected_components(hangs_together) if free else 0
        assert tree.number_of_edges() == len([m for m in moves if m[0] != m[2]]) == len(free) - n_trees
        if free:
            assert nx.number_connected_components(tree) == n_trees
        into = {
            int(graph_end)
            for here in free
            for graph_end in rooms.lattice.neighbors[here]
            if graph_end >= 0 and rooms.walls[i, graph_end] and rooms.observed[i, graph_end]
        }
        bumped = [int(rooms.lattice.neighbors[s, a]) for s, a, e in moves if s == e]
        assert sorted(bumped) == sorted(into)


def test_both_directions_and_every_action_occur(rooms):
    banks = spanning_banks(np.random.default_rng(2), rooms)
    assert set(np.unique(banks.action)) == {-1, *range(rooms.lattice.n_actions)}


def test_dense_banks_and_walks_are_true(rooms):
    rng = np.random.default_rng(3)
    for banks in (
        add_transitions(rng, spanning_banks(rng, rooms), np.full(N, 10)),
        walk_banks(rng, rooms, np.full(N, 25)),
    ):
        transitions = banks.transitions()
        assert banks.rooms.is_true(transitions)[transitions[..., 1] >= 0].all()


@pytest.mark.parametrize("build", [square_lattice, diagonal_lattice, pose_lattice])
def test_sizes_are_checked(build):
    with pytest.raises(ValueError, match="width must be a whole number of at least 1, got 0"):
        build(0, 3)
    with pytest.raises(ValueError, match="height must be a whole number of at least 1, got 2.5"):
        build(3, 2.5)


def test_a_torus_has_three_locations_each_way_at_least():
    with pytest.raises(ValueError, match="height must be a whole number of at least 3, got 2"):
        torus_lattice(3, 2)
