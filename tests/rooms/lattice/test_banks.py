"""Memory banks against what a plain walk through the room and networkx say."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import (
    RoomBatch,
    RoomConfig,
    add_transitions,
    generate_rooms,
    hex_lattice,
    observed_moves,
    spanning_banks,
    walk_banks,
)

ROOMS = 3
seeds = st.integers(0, 2**32 - 1)


@st.composite
def batches(draw) -> tuple[RoomBatch, np.random.Generator]:
    """Some rooms with walls that may split them, and a generator to go on with."""
    rng = np.random.default_rng(draw(seeds))
    radius = draw(st.integers(1, 4))
    longest = draw(st.integers(0, 3 * radius))
    config = RoomConfig.random_wall(
        radius,
        wall_length=draw(st.sampled_from([None, (0, 0), (longest // 2, longest)])),
        straightness=draw(st.sampled_from([0.3, 0.8, 1.0])),
        hidden=draw(st.sampled_from([0.0, 0.4, 1.0])),
    )
    return generate_rooms(rng, ROOMS, config), rng


def rooms_by_hand(radius: int, walls=(), hidden=(), n: int = 1) -> RoomBatch:
    """n copies of a room in which each location's state is its number."""
    lattice = hex_lattice(radius)
    states = np.tile(np.arange(lattice.n_locations), (n, 1))
    is_wall, observed = np.zeros_like(states, bool), np.ones_like(states, bool)
    is_wall[:, list(walls)] = True
    observed[:, list(hidden)] = False
    return RoomBatch(lattice, states, is_wall, observed)


def rows(bank: np.ndarray) -> list[tuple[int, int, int]]:
    """The transitions of a padded bank; checks that all of the padding comes last."""
    padding = bank[:, 0] < 0
    assert (bank[padding] == -1).all()
    assert (bank[~padding] >= 0).all()
    assert not (padding[:-1] & ~padding[1:]).any()
    return [tuple(row) for row in bank[~padding].tolist()]


def spanned(room, moves) -> tuple[frozenset, set]:
    """The parts that moves join the observed free locations into, and the wall locations bumped into."""
    graph = nx.Graph()
    graph.add_nodes_from(room.free)
    graph.add_edges_from((here, room.end(here, action)) for here, action in moves)
    bumped = {room.ahead(*move) for move in moves} & room.walls
    return frozenset(map(frozenset, nx.connected_components(graph))), bumped


# Minimal spanning banks


@given(batch=batches())
def test_a_spanning_bank_is_true_spanning_and_minimal(true_room, batch):
    rooms, rng = batch
    banks = spanning_banks(rng, rooms)
    for i, bank in enumerate(banks.transitions()):
        room = true_room(rooms, i)
        transitions = rows(bank)
        assert all(room.happens(t) for t in transitions)
        moves = room.moves(bank)
        assert len(set(moves)) == len(moves)
        assert set(moves) <= room.observed_moves()
        assert all(room.ahead(*move) >= 0 for move in moves), "a move off the lattice"

        parts = frozenset(map(frozenset, nx.connected_components(room.graph(room.free))))
        bumpable = {wall for wall in room.walls & room.observed if room.free & set(room.neighbors[wall])}
        assert spanned(room, moves) == (parts, bumpable)
        assert len(moves) == len(room.free) - len(parts) + len(bumpable), "not a forest and one bump a wall"
        for k in range(len(moves)):
            assert spanned(room, moves[:k] + moves[k + 1 :]) != (parts, bumpable), "could leave one out"


@given(batch=batches())
def test_a_bank_tells_the_same_three_ways(batch):
    rooms, rng = batch
    banks = spanning_banks(rng, rooms)
    bank = banks.transitions()
    assert banks.source.shape == banks.action.shape == bank.shape[:2]
    held = set()
    for i, slot in np.argwhere(banks.source >= 0):
        source, action = banks.source[i, slot], banks.action[i, slot]
        assert (rooms.states[i, source], action) == tuple(bank[i, slot, :2])
        held.add((i, source, action))
    assert {tuple(move) for move in np.argwhere(banks.holds())} == held
    np.testing.assert_array_equal(banks.source < 0, bank[..., 0] < 0)
    np.testing.assert_array_equal(banks.source < 0, banks.action < 0)


@given(radius=st.integers(1, 4), seed=seeds)
def test_paper_size_of_banks(radius, seed):
    """Paper, "Generating Memory Banks": at most 18 and 36 transitions."""
    rng = np.random.default_rng(seed)
    n_locations = 3 * radius * (radius + 1) + 1
    walled = spanning_banks(rng, generate_rooms(rng, 20, RoomConfig.random_wall(radius)))
    assert walled.transitions().shape[1] <= n_locations - 1
    arena = spanning_banks(rng, generate_rooms(rng, 20, RoomConfig.open_arena(radius)))
    assert arena.transitions().shape == (20, n_locations - 1, 3)


def test_wall_in_the_centre_by_hand():
    """A ring of six: five moves around it and one bump into the centre."""
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, walls=[3], n=50))
    for bank in banks.transitions():
        bumps = [t for t in rows(bank) if t[0] == t[2]]
        assert len(rows(bank)) == 6
        assert len(bumps) == 1
        assert bumps[0][:2] in {(0, 5), (1, 4), (2, 0), (4, 3), (5, 1), (6, 2)}


def test_a_wall_splits_the_room_by_hand():
    """Rows 0 1 / wall wall wall / 5 6: one move in each half and three bumps."""
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, walls=[2, 3, 4], n=50))
    for bank in banks.transitions():
        transitions = set(rows(bank))
        assert len(transitions) == 5
        assert len(transitions & {(0, 0, 1), (1, 3, 0)}) == 1
        assert len(transitions & {(5, 0, 6), (6, 3, 5)}) == 1
        assert len(transitions & {(0, 4, 0), (5, 2, 5)}) == 1  # into 2
        assert len(transitions & {(0, 5, 0), (1, 4, 1), (5, 1, 5), (6, 2, 6)}) == 1  # into 3
        assert len(transitions & {(1, 5, 1), (6, 1, 6)}) == 1  # into 4


@pytest.mark.parametrize("hidden", [range(7), range(6), [0, 1, 2, 4, 5, 6]])
def test_nothing_to_remember(hidden):
    """Nothing observed, one corner, or the centre alone."""
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, hidden=hidden, n=4))
    np.testing.assert_array_equal(banks.transitions(), np.full((4, 1, 3), -1))
    assert not banks.holds().any()


def test_unobserved_and_unreachable_walls_are_not_remembered():
    """Walls at the centre 3, itself hidden, and at 2, whose free neighbours 0 and 5 are hidden."""
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, walls=[2, 3], hidden=[0, 3, 5], n=20))
    for bank in banks.transitions():
        assert len(rows(bank)) == 2  # 1 to 4 and 4 to 6, either way
        assert all(s != e for s, _, e in rows(bank))


# Randomness


def test_directions_are_random():
    """Each adjacent pair is walked from either end equally often (paper: "with equal chances")."""
    n = 6000
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, n=n))
    held = banks.holds().sum(0)
    lattice = banks.rooms.lattice
    for here, there in lattice.edges.tolist():
        forth = held[here, lattice.neighbors[here].tolist().index(there)]
        back = held[there, lattice.neighbors[there].tolist().index(here)]
        total = forth + back
        assert total > n / 4
        assert abs(forth - total / 2) < 5 * total**0.5 / 2


def test_bumps_come_from_every_side():
    n = 6000
    banks = spanning_banks(np.random.default_rng(0), rooms_by_hand(1, walls=[3], n=n))
    held = banks.holds().sum(0)
    for here, action in [(0, 5), (1, 4), (2, 0), (4, 3), (5, 1), (6, 2)]:
        assert abs(held[here, action] - n / 6) < 5 * (n * 5 / 36) ** 0.5


def test_forests_are_random():
    """Edges that a symmetry of the empty hexagon maps onto each other are used equally often."""
    n = 6000
    rooms = rooms_by_hand(1, n=n)
    held = spanning_banks(np.random.default_rng(0), rooms).holds().sum(0)
    spokes = [held[3, a] + held[rooms.lattice.neighbors[3, a], (a + 3) % 6] for a in range(6)]
    ring = [
        held[a, x] + held[b, (x + 3) % 6]
        for a, x, b in [(0, 0, 1), (1, 5, 4), (4, 4, 6), (6, 3, 5), (5, 2, 2), (2, 1, 0)]
    ]
    assert sum(spokes) + sum(ring) == 6 * n
    for counts in (spokes, ring):
        assert max(abs(c - np.mean(counts)) for c in counts) < 5 * (n / 4) ** 0.5


@pytest.mark.parametrize("kind", ["spanning", "extra", "walk"])
def test_order_is_random(kind):
    """Where a transition stands in the bank tells nothing: each location's mean rank is the middle."""
    n = 4000
    rng = np.random.default_rng(0)
    rooms = rooms_by_hand(1, walls=[0], n=n)
    banks = walk_banks(rng, rooms, np.full(n, 12)) if kind == "walk" else spanning_banks(rng, rooms)
    old = banks.holds()
    if kind == "extra":
        banks = add_transitions(rng, banks, np.full(n, 6))
    count = (banks.source >= 0).sum(1, keepdims=True)
    rank = (np.arange(banks.source.shape[1]) + 0.5) / count  # 0 to 1
    for location in range(1, 7):
        ranks = rank[banks.source == location]
        assert abs(ranks.mean() - 0.5) < 5 * 0.3 / len(ranks) ** 0.5
    bank = banks.transitions()
    bumps = rank[(bank[..., 0] == bank[..., 2]) & (bank[..., 0] >= 0)]
    assert abs(bumps.mean() - 0.5) < 5 * 0.3 / len(bumps) ** 0.5
    was_there = (banks.source >= 0) & old[np.arange(n)[:, None], banks.source, banks.action]
    assert abs(rank[was_there].mean() - 0.5) < 0.02


@given(batch=batches(), seed=seeds)
def test_same_seed_same_banks(batch, seed):
    rooms, _ = batch

    def draw():
        rng = np.random.default_rng(seed)
        spanning = spanning_banks(rng, rooms)
        more = add_transitions(rng, spanning, np.full(ROOMS, 5))
        walk = walk_banks(rng, rooms, np.full(ROOMS, 9))
        return [bank.transitions() for bank in (spanning, more, walk)]

    for first, second in zip(draw(), draw(), strict=True):
        np.testing.assert_array_equal(first, second)


# Observed moves and extra transitions


@given(batch=batches())
def test_observed_moves(true_room, batch):
    rooms, _ = batch
    moves = observed_moves(rooms)
    for i in range(ROOMS):
        assert {tuple(move) for move in np.argwhere(moves[i])} == true_room(rooms, i).observed_moves()


@given(
    batch=batches(),
    extra=st.lists(st.integers(0, 60), min_size=ROOMS, max_size=ROOMS),
    off_lattice=st.booleans(),
)
def test_add_transitions(true_room, batch, extra, off_lattice):
    rooms, rng = batch
    minimal = spanning_banks(rng, rooms)
    banks = add_transitions(rng, minimal, np.array(extra), off_lattice)
    assert banks.rooms is rooms
    for i, (old, new) in enumerate(zip(minimal.transitions(), banks.transitions(), strict=True)):
        room = true_room(rooms, i)
        before, after = room.moves(old), room.moves(new)
        assert all(room.happens(t) for t in rows(new))
        assert len(set(after)) == len(after)
        assert set(before) <= set(after)
        possible = room.observed_moves() - set(before)
        if not off_lattice:
            possible = {move for move in possible if room.ahead(*move) >= 0}
        added = set(after) - set(before)
        assert added <= possible
        assert len(added) == min(extra[i], len(possible))


def test_every_observed_move_can_be_added():
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, 50, RoomConfig.random_wall(2))
    banks = add_transitions(rng, spanning_banks(rng, rooms), np.full(50, 1000))
    np.testing.assert_array_equal(banks.holds(), observed_moves(rooms))


def test_each_move_is_as_likely_to_be_added():
    """The centre's six moves, and all others, of an open room: 42 moves, 6 in the bank, 9 more added."""
    n = 6000
    rng = np.random.default_rng(0)
    minimal = spanning_banks(rng, rooms_by_hand(1, n=n))
    added = add_transitions(rng, minimal, np.full(n, 9)).holds() & ~minimal.holds()
    could = (~minimal.holds()).sum(0)
    assert (abs(added.sum(0) - could * 9 / 36) < 5 * (could * 0.25 * 0.75) ** 0.5).all()


# Walks


@given(
    batch=batches(),
    steps=st.lists(st.integers(0, 40), min_size=ROOMS, max_size=ROOMS),
    curiosity=st.sampled_from([0.0, 0.8, 1.0]),
)
def test_a_walk_leaves_a_connected_true_bank(true_room, batch, steps, curiosity):
    rooms, rng = batch
    banks = walk_banks(rng, rooms, np.array(steps), curiosity)
    np.testing.assert_array_equal(banks.rooms.states, rooms.states)
    np.testing.assert_array_equal(banks.rooms.walls, rooms.walls)
    for i, bank in enumerate(banks.transitions()):
        room = true_room(banks.rooms, i)
        moves = room.moves(bank)
        assert all(room.happens(t) for t in rows(bank))
        assert len(set(moves)) == len(moves) <= steps[i]
        assert bool(moves) == (steps[i] > 0)
        touched = {here for here, _ in moves} | {room.ahead(*m) for m in moves if room.ahead(*m) >= 0}
        if moves:
            assert room.observed == touched
        else:
            assert len(room.free) == len(room.observed) == 1  # where the agent stands
        parts, _ = spanned(room, moves)
        assert len(parts) == 1


def test_a_long_walk_sees_all_that_can_be_reached(true_room):
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, 20, RoomConfig.random_wall(2, hidden=1.0))
    banks = walk_banks(rng, rooms, np.full(20, 2000))
    for i in range(20):
        room = true_room(banks.rooms, i)
        passable = room.graph(set(room.locations) - room.walls)
        part = nx.node_connected_component(passable, next(iter(room.free)))
        assert room.free == part
        assert room.observed - room.free == {wall for wall in room.walls if part & set(room.neighbors[wall])}
        adjacent = {(here, action) for here in part for action in range(6) if room.ahead(here, action) >= 0}
        assert adjacent <= set(room.moves(banks.transitions()[i]))


def test_curiosity_finds_more():
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, 500, RoomConfig.random_wall(3))
    sizes = [(walk_banks(rng, rooms, np.full(500, 60), c).source >= 0).sum(1).mean() for c in (0.0, 0.5, 1.0)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_walks_start_anywhere():
    n = 7000
    banks = walk_banks(np.random.default_rng(0), rooms_by_hand(1, walls=[3], n=n), np.zeros(n, int))
    counts = banks.rooms.observed.sum(0)
    assert counts[3] == 0
    assert (abs(counts[[0, 1, 2, 4, 5, 6]] - n / 6) < 5 * (n * 5 / 36) ** 0.5).all()


def test_orderly_walks_see_more_and_stay_true(n=200):
    rng = np.random.default_rng(0)
    rooms = generate_rooms(rng, n, RoomConfig.random_wall(3))
    steps = np.full(n, 30)
    orderly, other = (walk_banks(rng, rooms, steps, orderly=share) for share in (1.0, 0.0))
    assert orderly.rooms.observed.sum(1).mean() > 1.4 * other.rooms.observed.sum(1).mean()
    held = orderly.transitions()
    assert rooms.is_true(held)[held[..., 1] >= 0].all()
    assert (orderly.source >= 0).sum(1).max() <= 30
