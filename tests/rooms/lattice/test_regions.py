"""Regions of five lattices, room by room, against networkx."""

from dataclasses import replace
from functools import cache

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import Kind, LatticeSource, RegionConfig, draw_queries, lattice_of, move_kinds, spanning_banks
from eswm_gym.rooms.transitions import to_problems

SIZES = {"hexagon": (3,), "square": (6, 5), "diagonal": (6, 5), "torus": (5, 5), "pose": (4, 4)}
LEAST, MOST, WALLS, N_STATES, N = 4, 14, 6, 20, 60
every_shape = pytest.mark.parametrize("shape", SIZES)


def family(shape, **options) -> RegionConfig:
    return RegionConfig(
        shape, SIZES[shape], **{"least": LEAST, "most": MOST, "walls": WALLS, "n_states": N_STATES} | options
    )


def draw(shape, n=N, seed=0, **options):
    return family(shape, **options).generate(np.random.default_rng(seed), n)


@cache
def graph_of(lattice) -> nx.DiGraph:
    """Locations and the moves from one to another."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(lattice.n_locations))
    graph.add_edges_from(
        (here, there) for here, ahead in enumerate(lattice.neighbors.tolist()) for there in ahead if there >= 0
    )
    return graph


def locations(row) -> set[int]:
    return set(np.flatnonzero(row).tolist())


def parts(rooms, i) -> tuple[set[int], set[int], set[int], set[int]]:
    """Of one room: the walls, where an episode ends, what is observed, and where an agent that is observed can move."""
    walls, terminal, observed = (locations(part[i]) for part in (rooms.walls, rooms.terminal, rooms.observed))
    return walls, terminal, observed, observed - walls - terminal


@every_shape
def test_a_region_hangs_together_and_has_the_size_that_was_asked(shape):
    rooms, graph = draw(shape), graph_of(lattice_of(shape, SIZES[shape]))
    sizes, smaller = [], 0
    for i in range(N):
        walls, terminal, observed, region = parts(rooms, i)
        assert len(region) >= 1 and nx.is_weakly_connected(graph.subgraph(region))
        assert len(observed - walls) <= MOST and len(observed & walls) <= WALLS
        if len(region) < LEAST:  # it cannot grow: all around it is wall or ends an episode
            smaller += 1
            assert all(there in region | walls | terminal for here in region for there in graph[here])
        beside = {there for here in region for there in graph[here]} - region
        assert observed - region <= beside  # nothing is observed that does not lie beside it
        assert terminal & beside <= observed  # all that ends an episode is observed
        sizes.append(len(region))
    assert smaller < N / 10
    assert len(set(sizes)) > 7


@every_shape
def test_as_many_walls_are_observed_as_may_be(shape):
    for options in ({}, {"enclosed": 1.0}):
        rooms = draw(shape, **options)
        for i in range(N):
            walls, _, observed, region = parts(rooms, i)
            beside = {int(there) for here in region for there in rooms.lattice.neighbors[here]} & walls
            assert observed & walls <= beside
            assert len(observed & walls) == min(WALLS, len(beside))


@every_shape
def test_observed_free_locations_have_states_of_their_own(shape):
    rooms = draw(shape)
    assert rooms.states.min() >= 0 and rooms.states.max() < N_STATES
    for i in range(N):
        walls, _, observed, _ = parts(rooms, i)
        mine = rooms.states[i, sorted(observed - walls)].tolist()
        assert len(set(mine)) == len(mine)
        others = sorted(set(range(rooms.lattice.n_locations)) - (observed - walls))
        assert not set(rooms.states[i, others].tolist()) & set(mine)


@pytest.mark.parametrize("enclosed", [0.0, 1.0])
def test_walls_and_terminal_locations_of_poses_are_whole_cells(enclosed):
    rooms = draw("pose", 200, enclosed=enclosed)
    cells = rooms.lattice.cells
    assert cells.tolist() == [location // 4 for location in range(64)]
    for part in (rooms.walls, rooms.terminal):
        assert part.any() and not part.all(1).any()
        for room in part:
            full = {cell: room[cells == cell] for cell in range(16)}
            assert all(some.all() or not some.any() for some in full.values())


def test_half_of_the_regions_of_poses_hold_whole_cells():
    """All cells but one, which was not full yet; a region that cannot grow in its cell has none at all."""
    rooms = draw("pose", 200)
    open_cells = []
    for i in range(200):
        _, _, _, region = parts(rooms, i)
        held = [len([location for location in region if location // 4 == cell]) for cell in range(16)]
        open_cells.append(len([n for n in held if 0 < n < 4]))
    assert 0.4 < np.mean([n <= 1 for n in open_cells]) < 0.95 and max(open_cells) > 2


@every_shape
def test_an_enclosed_room_has_no_way_out(shape):
    """Beyond the region's own cells all is wall, or ends the episode."""
    rooms = draw(shape, enclosed=1.0)
    graph, cells = graph_of(rooms.lattice), rooms.lattice.cells
    for i in range(N):
        walls, terminal, observed, region = parts(rooms, i)
        own = {location for location in range(len(cells)) if cells[location] in cells[sorted(region)]}
        assert set(graph) - walls - terminal == own - walls
        assert not own & walls
        for here in region:
            assert set(graph[here]) <= own | walls | (terminal & observed)
    free = (~draw(shape).walls).sum(1)
    assert free.mean() > 1.3 * (~rooms.walls).sum(1).mean()  # the others are not enclosed


@every_shape
def test_nothing_moves_out_of_a_terminal_location(shape):
    rng = np.random.default_rng(1)
    for bank in ("minimal", "dense", "walk", "trajectory"):
        source = LatticeSource(family(shape, least=8, n_states=96), bank, rows=60)
        banks = source.draw_banks(rng, N)
        rooms, held = banks.rooms, banks.source >= 0
        ended = rooms.terminal
        assert ended.any()
        room = np.arange(N)[:, None]
        assert not ended[room, banks.source][held].any() and not rooms.walls[room, banks.source][held].any()
        queries = source.ask(rng, banks, 30)
        asked = queries.kind >= 0
        assert not ended[room, queries.location][asked].any()
        assert (move_kinds(banks)[ended] == -1).all()
        # Seen or unseen, into a terminal location or not: what is asked and known is true.
        known = np.isin(queries.kind, (Kind.SEEN, Kind.UNSEEN))
        assert source.is_true(banks, queries.transitions)[known].all()
        assert source.is_true(banks, banks.transitions())[held].all()


@every_shape
def test_a_walk_to_where_queries_start_does_not_end_the_episode(shape):
    rng = np.random.default_rng(2)
    source = LatticeSource(family(shape, least=8, walls=0), context=5, rows=20)
    banks = source.draw_banks(rng, N)
    walk = banks.source[:, -5:]
    room = np.arange(N)[:, None]
    passable = banks.rooms.passable
    assert banks.source.shape == (N, 20) and (walk >= 0).any()
    assert passable[room, walk][walk >= 0].all()
    ends = banks.rooms.targets()[room, banks.source, banks.action][:, -5:]
    assert (passable & banks.rooms.observed)[room, ends][walk >= 0].all()
    following = (walk[:, 1:] >= 0) & (walk[:, :-1] >= 0)
    assert (ends[:, :-1] == walk[:, 1:])[following].all()
    # The bank before the walk is whole.
    minimal = replace(source, context=0, rows=15).draw_banks(np.random.default_rng(3), N)
    longer = source.draw_banks(np.random.default_rng(3), N)
    width = minimal.source.shape[1]
    assert (longer.source[:, :width] == minimal.source).all()


@every_shape
def test_spanning_banks_hold_one_move_into_what_no_way_leads_through(shape):
    """As many moves as a spanning tree has, and one into each observed wall and terminal location."""
    rooms = draw(shape)
    banks = spanning_banks(np.random.default_rng(1), rooms)
    transitions = banks.transitions()
    assert rooms.is_true(transitions)[transitions[..., 1] >= 0].all()
    for i in range(N):
        walls, terminal, observed, region = parts(rooms, i)
        held = [(int(s), int(a)) for s, a in zip(banks.source[i], banks.action[i], strict=True) if s >= 0]
        ahead = [(here, int(rooms.lattice.neighbors[here, action])) for here, action in held]
        tree = nx.Graph([move for move in ahead if move[1] in region])
        tree.add_nodes_from(region)
        assert nx.is_tree(tree) and tree.number_of_edges() == len(region) - 1
        into = [there for _, there in ahead if there not in region]
        assert sorted(into) == sorted(observed - region)
        assert len(held) == len(observed) - 1
        assert set(into) <= walls | terminal


@every_shape
@pytest.mark.parametrize("bank", ["minimal", "dense", "walk", "trajectory"])
def test_banks_fit_the_rows(shape, bank):
    """However few there are; without a number given, as many as such banks can have."""
    rng = np.random.default_rng(4)
    for options in ({"rows": MOST + WALLS - 1}, {}):
        source = LatticeSource(family(shape, n_states=96), bank, actions="permuted", **options)
        problems = source.draw(rng, 20, 5)
        assert problems.memories.shape == (20, source.capacity, 3)
        assert source.capacity >= MOST + WALLS - 1
        assert problems.truth[..., ::2].min() >= 0 and problems.truth[..., ::2].max() < 96


def test_a_bank_that_does_not_fit_is_an_error():
    rng = np.random.default_rng(0)
    source = LatticeSource(RegionConfig("square", (6, 6), 20, 24), rows=10)
    banks = source.draw_banks(rng, 3)
    with pytest.raises(ValueError, match="does not fit into 10 rows"):
        to_problems(banks, draw_queries(rng, banks, 2), source.capacity)


@every_shape
def test_the_same_seed_draws_the_same_rooms(shape):
    one, same, other = (draw(shape, 10, seed, enclosed=0.5) for seed in (5, 5, 6))
    for name in ("states", "walls", "observed", "terminal"):
        assert (getattr(one, name) == getattr(same, name)).all()
    assert (one.states != other.states).any() and (one.observed != other.observed).any()


@every_shape
def test_new_names_change_nothing_else(shape):
    rooms = draw(shape)
    named = family(shape).name(np.random.default_rng(9), rooms)
    assert (named.states != rooms.states).any(1).all()
    assert all(getattr(named, x) is getattr(rooms, x) for x in ("lattice", "walls", "observed", "terminal"))


def test_without_terminal_locations():
    assert not draw("square", 200, terminal=False).terminal.any()
    ending = draw("square", 400).terminal.any(1).mean()
    assert 0.15 < ending < 0.27  # a quarter, of which a few have so small a share that none was drawn


@pytest.mark.parametrize("size", [(1, 1), (2, 1)])
def test_a_room_of_nothing_but_walls_is_empty(size):
    """Then nothing is observed, but never a wall in place of a free location."""
    rooms = RegionConfig("square", size, 1, 1).generate(np.random.default_rng(0), 300)
    full = rooms.walls.all(1)
    assert full.any() and not rooms.observed[full].any()
    assert ((rooms.observed & ~rooms.walls).sum(1)[~full & ~rooms.terminal.any(1)] == 1).all()


def test_bad_arguments():
    for options, message in (
        ({"least": 0}, "least and most must be 1 <= least <= most < 20 states and at most 37 locations, got 0 and 14"),
        ({"least": 9, "most": 8}, "got 9 and 8"),
        ({"most": 20}, "got 4 and 20"),
        ({"most": 38, "n_states": 96}, "at most 37 locations, got 4 and 38"),
        ({"walls": -1}, "walls must not be negative, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            family("hexagon", **options)
    with pytest.raises(ValueError, match="lattice must be one of .*hexagon.* got 'cube'"):
        RegionConfig("cube", (3,))
    with pytest.raises(ValueError, match=r"the size of a square lattice is \(width, height\), got \(3,\)"):
        RegionConfig("square", (3,))
    with pytest.raises(ValueError, match=r"the size of a hexagon lattice is \(radius\), got \(3, 3\)"):
        RegionConfig("hexagon", (3, 3))
    with pytest.raises(ValueError, match="height must be a whole number of at least 3, got 2"):
        RegionConfig("torus", (3, 2), 1, 2)
    rooms = draw("hexagon")
    with pytest.raises(ValueError, match="observed locations need more than 3 states"):
        family("hexagon", least=1, most=2, n_states=3).name(np.random.default_rng(0), rooms)
