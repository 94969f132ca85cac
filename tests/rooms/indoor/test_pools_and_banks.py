"""Pools, banks and queries of houses against geometry, networkx and sets told anew."""

import math
from functools import cache
from itertools import product

import networkx as nx
import numpy as np
import pytest

from eswm_gym.rooms.indoor import (
    MAX_MEMORIES,
    POSES,
    RADIUS,
    Asked,
    Pool,
    Space,
    draw_bank,
    draw_house,
    draw_pool,
    draw_queries,
    query_kinds,
)
from eswm_gym.rooms.transitions import ACTION, END, SOURCE

every_seed = pytest.mark.parametrize("seed", range(4))
every_component = pytest.mark.parametrize("component", [SOURCE, ACTION, END])


@cache
def a_pool(seed, n=POSES):
    """A house of four rooms, the first of its doors closed, and its pool."""
    rng = np.random.default_rng(seed)
    house = draw_house(rng, 4).with_door(0, True)
    return house, draw_pool(house, rng, n)


def a_bank(seed, **kwargs):
    return draw_bank(np.random.default_rng(seed), a_pool(seed)[1], **kwargs)


def shown_by(pool: Pool, i: int) -> set:
    """(pose, bit): the points that pose i shows, of all that the poses of the pool see."""
    return {(j, bit) for j, word in enumerate(pool.sees[i].tolist()) for bit in range(32) if word >> bit & 1}


# Pools


@pytest.mark.parametrize("seed", range(2))
def test_pool(seed, clearance):
    house, pool = a_pool(seed)
    space, n = Space(house), POSES
    assert pool.poses.shape == (n, 3) and pool.poses.dtype == np.float32
    assert pool.moves.shape == pool.sees.shape == (n, n)
    assert pool.moves.dtype == bool and pool.sees.dtype == np.uint32
    assert not pool.moves.diagonal().any() and pool.moves.sum() > n
    np.testing.assert_array_equal(pool.sees, space.sees(pool.poses))
    assert np.abs(pool.poses[:, 2]).max() <= np.float32(math.pi)
    poses = pool.poses.astype(float).tolist()
    for (x, y, _), i in zip(poses, range(n), strict=True):
        assert clearance(house, (x, y), (x, y)) >= RADIUS - 1e-6, i
    for i, j in product(range(n), repeat=2):
        (x, y, heading), (to_x, to_y, to_heading) = poses[i], poses[j]
        away, direction = math.dist((x, y), (to_x, to_y)), math.atan2(to_x - x, to_y - y) - heading
        right, ahead, turn = pool.actions[i, j]
        assert (right, ahead) == pytest.approx((away * math.sin(direction), away * math.cos(direction)), abs=1e-9)
        assert math.cos(turn - to_heading + heading) == pytest.approx(1) and -math.pi <= turn <= math.pi
        if i != j and abs(right) <= 1.5 and abs(ahead) <= 1.5:
            free = clearance(house, (x, y), (to_x, to_y))
            assert pool.moves[i, j] == (free >= RADIUS) or 0.198 < free < RADIUS + 1e-6, "looked at every 5 cm"
        else:
            assert not pool.moves[i, j]


def test_pools_are_drawn_from_a_seed():
    house, pool = a_pool(0)
    one, two, other = (draw_pool(house, np.random.default_rng(seed), 20) for seed in (1, 1, 2))
    for name in ("poses", "moves", "sees"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.poses.shape == (20, 3) and (one.poses != other.poses).any()


def test_what_a_pool_sees():
    every, half, three, four = 2**32 - 1, 2**16 - 1, 0b111, 0b1111
    sees = np.array([[every, half, 0, three], [0, every, 0, 0], [0, half << 16, every, four], [0, 0, 0, every]])
    pool = Pool(np.zeros((4, 3), np.float32), np.zeros((4, 4), bool), sees.astype(np.uint32))
    shared = [[1, 1 / 2, 0, 3 / 32], [0, 1, 0, 0], [0, 1 / 2, 1, 1 / 8], [0, 0, 0, 1]]
    np.testing.assert_allclose(pool.shared, shared)
    overlap = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]  # a tenth of what either sees
    assert pool.overlap.astype(int).tolist() == overlap
    np.testing.assert_allclose(pool.covered(np.array([0, 2])), [1, 1, 1, 4 / 32])
    np.testing.assert_allclose(pool.covered(np.array([2])), [0, 1 / 2, 1, 4 / 32])
    np.testing.assert_allclose(pool.covered(np.array([0, 1, 2, 3])), 1)


# Banks


@every_seed
def test_a_bank_is_a_tree_and_so_is_every_first_part_of_it(seed):
    _, pool = a_pool(seed)
    bank = a_bank(seed)
    assert bank.dtype == np.int64 and bank.ndim == 2 and bank.shape[1] == 2
    assert 1 <= len(bank) <= MAX_MEMORIES == 32
    assert pool.moves[bank[:, 0], bank[:, 1]].all(), "each transition is what one action does"
    tree = nx.Graph()
    for n, (start, end) in enumerate(bank.tolist(), 1):
        tree.add_edge(start, end)
        assert nx.is_tree(tree) and tree.number_of_edges() == n


@every_seed
@pytest.mark.parametrize("kwargs", [{}, {"max_memories": 5}, {"enough": 0.3}])
def test_a_bank_grows_by_the_view_that_shows_most_that_is_new(seed, kwargs):
    _, pool = a_pool(seed)
    bank = a_bank(seed, **kwargs).tolist()
    shows = [shown_by(pool, i) for i in range(POSES)]
    near = nx.Graph([(i, j) for i, j in np.argwhere(pool.moves).tolist()])
    assert len(bank) <= kwargs.get("max_memories", 32)

    def grown_from(first) -> bool:
        joined, once, twice = {first}, shows[first], set()
        for start, end in bank:
            if len(twice) >= kwargs.get("enough", 0.95) * 32 * POSES or (start in joined) == (end in joined):
                return False
            # What was shown once counts half.
            new = {
                k: len(shows[k] - once) + len(shows[k] - twice)
                for k in set().union(*(near[i] for i in joined)) - joined
            }
            following = end if start in joined else start
            if new[following] != max(new.values()):
                return False
            joined, twice, once = joined | {following}, twice | once & shows[following], once | shows[following]
        full = len(bank) == kwargs.get("max_memories", 32)
        enough = len(twice) >= kwargs.get("enough", 0.95) * 32 * POSES
        return full or enough or not set().union(*(near[i] for i in joined)) - joined

    assert any(grown_from(first) for first in bank[0])


def test_banks_show_what_can_be_reached():
    for seed in range(4):
        _, pool = a_pool(seed)
        near = nx.Graph([(i, j) for i, j in np.argwhere(pool.moves).tolist()])
        bank = a_bank(seed)
        part = nx.node_connected_component(near, int(bank[0, 0]))
        shown, could = pool.covered(np.unique(bank)).sum(), pool.covered(np.array(sorted(part))).sum()
        assert shown > 0.85 * could


def test_banks_are_drawn_from_a_seed():
    _, pool = a_pool(0)
    one, two, other = (draw_bank(np.random.default_rng(seed), pool) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert one.shape != other.shape or (one != other).any()


def test_transitions_go_either_way():
    """Where the move and its reverse are both short enough, one of them is drawn."""
    _, pool = a_pool(0)
    first = [tuple(draw_bank(np.random.default_rng(seed), pool, 1)[0].tolist()) for seed in range(300)]
    both = {(i, j) for i, j in first if pool.moves[i, j] and pool.moves[j, i]}
    assert any((j, i) in both for i, j in both)


# Queries


@every_seed
@every_component
def test_kinds_of_queries(seed, component):
    _, pool = a_pool(seed)
    bank = a_bank(seed, max_memories=12)
    kinds = query_kinds(pool, bank, component)
    shows = [shown_by(pool, i) for i in range(POSES)]
    held = set(bank.ravel().tolist())
    shown = set().union(*(shows[i] for i in held))

    def share(view, seen):  # of what a view shows
        return sum((view, bit) in seen for bit in range(32)) / 32

    counts = np.zeros(4, int)
    for i, j in product(range(POSES), repeat=2):
        overlap = max(share(i, shows[j]), share(j, shows[i])) >= 0.1
        if component == ACTION:
            covers = share(i, shown), share(j, shown)
            known, unknown = overlap or min(covers) >= 0.7, not overlap and min(covers) <= 0.1
        else:
            given, asked = (i, j) if component == END else (j, i)
            cover = share(asked, shown | shows[given])
            known = cover >= 0.7 and (overlap or share(given, shown) >= 0.7)
            unknown = cover <= 0.1
        expected = -1
        if pool.moves[i, j]:
            if {i, j} <= held:
                in_bank = [i, j] in bank.tolist() or [j, i] in bank.tolist()
                expected = -1 if in_bank else Asked.BANK
            elif unknown:
                expected = Asked.UNKNOWN
            elif known and not {i, j} & held:
                expected = Asked.FREE
        assert kinds[i, j] == expected
        counts[expected] += 1
    assert (counts[: 1 + Asked.BANK] > 0).all()


def test_queries():
    _, pool = a_pool(1)
    bank = a_bank(1, max_memories=12)
    queries = draw_queries(np.random.default_rng(0), pool, bank, 3000)
    for name in ("start", "end", "masked", "asked", "overlap"):
        assert getattr(queries, name).shape == (3000,)
    for component in (SOURCE, ACTION, END):
        rows = queries.masked == component
        assert rows.mean() == pytest.approx(1 / 3, abs=0.03)
        kinds = query_kinds(pool, bank, component)
        np.testing.assert_array_equal(kinds[queries.start[rows], queries.end[rows]], queries.asked[rows])
        shares = [(queries.asked[rows] == kind).mean() for kind in Asked if (kinds == kind).any()]
        weights = np.array([w for kind, w in zip(Asked, (0.6, 0.25, 0.15), strict=True) if (kinds == kind).any()])
        assert shares == pytest.approx(weights / weights.sum(), abs=0.05)
        for kind in Asked:  # all that there are come up
            asked = {(i, j) for i, j in zip(queries.start[rows], queries.end[rows], strict=True) if kinds[i, j] == kind}
            assert len(asked) > 0.6 * min((kinds == kind).sum(), 50)
    np.testing.assert_array_equal(queries.overlap, pool.overlap[queries.start, queries.end])
    assert pool.moves[queries.start, queries.end].all()


@every_component
def test_queries_about_one_component(component):
    _, pool = a_pool(1)
    bank = a_bank(1)
    one, two = (draw_queries(np.random.default_rng(3), pool, bank, 50, (component,)) for _ in range(2))
    assert (one.masked == component).all()
    for name in ("start", "end", "masked", "asked", "overlap"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
