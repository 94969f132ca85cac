"""Banks that are one long way between two neighbours."""

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms import LatticeSource, RegionConfig

SIZES = {"hexagon": (6,), "square": (12, 12), "diagonal": (12, 12), "torus": (10, 10), "pose": (8, 8)}


@pytest.mark.parametrize("shape", SIZES)
def test_a_chain_leads_from_a_location_to_its_neighbor(shape):
    source = LatticeSource(RegionConfig(shape, SIZES[shape], 30, 64, 32), "chain", actions="known", rows=64)
    banks = source.draw_banks(np.random.default_rng(0), 60)
    lattice, lengths = banks.rooms.lattice, []
    for room in range(60):
        starts, ways = (part[room][banks.source[room] >= 0] for part in (banks.source, banks.action))
        ends, walls = lattice.next_location[starts, ways], banks.rooms.walls[room]
        tree = nx.Graph(
            (s, e) for s, e in zip(starts.tolist(), ends.tolist(), strict=True) if banks.rooms.passable[room, e]
        )
        free = np.flatnonzero(banks.rooms.observed[room] & banks.rooms.passable[room])
        assert nx.is_tree(tree) and set(tree) <= set(free.tolist())
        # What lies beside the way without being on it are bumps and, where episodes end, terminal locations.
        assert set(starts.tolist()) <= set(tree)
        assert walls[ends].sum() + (~walls & ~banks.rooms.passable[room])[ends].sum() + len(tree) - 1 == len(starts)
        apart = dict(nx.all_pairs_shortest_path_length(tree))
        neighbors = [(s, int(e)) for s in tree for e in lattice.neighbors[s] if e >= 0 and int(e) in tree]
        lengths.append(max(apart[s][e] for s, e in neighbors) + 1)
    assert np.mean(lengths) > 8 and max(lengths) <= 32 + 16
    queries = source.ask(np.random.default_rng(1), banks, 16)
    assert source.is_true(banks, queries.transitions)[queries.unknown == 0].all()


def test_the_same_seed_draws_the_same_chains():
    source = LatticeSource(RegionConfig("square", (8, 8), 10, 30), "chain", actions="known", rows=64)
    one, two = (source.draw_banks(np.random.default_rng(3), 20).transitions() for _ in range(2))
    assert np.array_equal(one, two)
