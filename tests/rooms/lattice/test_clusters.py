"""Two clusters of memories side by side, as models are trained on them."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.rooms import Kind, LatticeSource, RoomConfig, move_kinds, random_walls
from eswm_gym.rooms.lattice.clusters import cluster_banks, draw_clusters, gap_moves, placement_belief

ROOMS = RoomConfig.random_wall(3, states=tuple(range(40)))


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), radius=st.sampled_from([2, 3]))
def test_each_cluster_hangs_together_and_touches_the_other(seed, radius):
    rooms, cluster, joined = draw_clusters(np.random.default_rng(seed), 6, RoomConfig.random_wall(radius))
    assert cluster.shape == rooms.states.shape and len(rooms) == len(joined) == 6
    for i, sides in enumerate(cluster):
        graph = nx.Graph(edge for edge in rooms.lattice.edges.tolist() if not rooms.walls[i][edge].any())
        graph.add_nodes_from(np.flatnonzero(~rooms.walls[i]).tolist())
        parts = [set(np.flatnonzero((sides == j) & ~rooms.walls[i]).tolist()) for j in (0, 1)]
        assert all(nx.is_connected(graph.subgraph(part)) for part in parts)
        sides_of = [(a, b) for a, b in graph.edges if {a, b} <= set.union(*parts)]
        across = {frozenset(edge) for edge in sides_of if (edge[0] in parts[0]) != (edge[1] in parts[0])}
        found = np.argwhere(gap_moves(rooms, cluster)[i]).tolist()
        assert across == {frozenset((here, rooms.lattice.next_location[here, action])) for here, action in found}
        assert across


def test_most_banks_tell_how_clusters_lie_and_many_by_obstacles_alone():
    """What they tell is judged by other rooms of the same family here."""
    rooms, cluster, joined = draw_clusters(np.random.default_rng(1), 240, ROOMS)
    assert joined.mean() == pytest.approx(0.6, abs=0.1)
    both_see_some = np.logical_and(*(((cluster == i) & rooms.walls).any(1) for i in (0, 1)))
    few = (cluster >= 0).sum(1) < 2 / 3 * rooms.lattice.n_locations
    assert (joined & both_see_some & few).mean() > 0.2
    prior = random_walls(np.random.default_rng(2), 4000, ROOMS)
    belief = np.array(
        [placement_belief(rooms.lattice, *room, prior) for room in zip(cluster, rooms.walls, strict=True)]
    )
    assert np.isnan(belief).mean() < 0.1  # a rare wall that none of the other rooms has
    assert np.nanmean(belief[joined]) > 0.9 and np.nanmean(belief[~joined]) < 0.2
    assert ((belief > 0.5) == joined)[~np.isnan(belief)].mean() > 0.95


def test_what_cannot_be_placed_is_not_known():
    source = LatticeSource(ROOMS, "clusters", mix=(0.5, 0.0, 0.5, 0.0))
    rng = np.random.default_rng(3)
    banks = source.draw_banks(rng, 40)
    queries = source.ask(rng, banks, 12)
    room = np.arange(40)[:, None]
    ends = banks.rooms.targets()[room, queries.location, queries.action]
    assert (banks.cluster[room, queries.location] == 1 - banks.cluster[room, ends]).all()
    assert (queries.kind == np.where(banks.joined, Kind.UNSEEN, Kind.UNSOLVABLE)[:, None]).all()
    assert (queries.unknown == ~banks.joined[:, None]).all()
    kinds = move_kinds(banks)
    within = banks.holds()
    assert (kinds[within] == Kind.SEEN).all() and not (within & gap_moves(banks.rooms, banks.cluster)).any()
    # A wall that only the other cluster observes is not asked about, unless the bank tells where it is.
    ahead = banks.rooms.lattice.next_location
    bumps = (banks.cluster >= 0)[..., None] & ~banks.rooms.walls[..., None] & banks.rooms.walls[:, ahead]
    bumps &= (banks.cluster[:, ahead] == 1 - banks.cluster[..., None]) & banks.rooms.lattice.on_lattice
    assert bumps.any((1, 2))[banks.joined].any() and bumps.any((1, 2))[~banks.joined].any()
    assert (kinds[bumps] == np.where(banks.joined, Kind.UNSEEN, -1)[np.nonzero(bumps)[0]]).all()
    same = source.draw_banks(np.random.default_rng(3), 40)
    np.testing.assert_array_equal(same.transitions(), banks.transitions())


@pytest.mark.parametrize("n", [1, 3])
def test_few_rooms_and_no_obstacle_that_no_memory_shows(n):
    for seed in range(20):
        rooms, cluster, _ = draw_clusters(np.random.default_rng(seed), n, ROOMS)
        assert len(rooms) == n and gap_moves(rooms, cluster).any((1, 2)).all()
        banks = cluster_banks(np.random.default_rng(seed), rooms, cluster)
        ahead = rooms.lattice.next_location[banks.source, banks.action]
        for i in range(n):
            bumped = {int(at) for at in ahead[i][banks.source[i] >= 0] if rooms.walls[i, at]}
            assert bumped == set(np.flatnonzero((cluster[i] >= 0) & rooms.walls[i]).tolist())
