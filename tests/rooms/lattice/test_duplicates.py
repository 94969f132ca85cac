"""Rooms in which pairs of locations share a state, walks that lead somewhere, and queries that start there."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import (
    BankBatch,
    LatticeSource,
    Room,
    RoomBatch,
    RoomConfig,
    draw_queries,
    generate_rooms,
    hex_lattice,
    move_kinds,
    spanning_banks,
)
from eswm_gym.rooms.lattice.trajectories import add_walks

seeds = st.integers(0, 2**32 - 1)
families = st.builds(
    lambda radius, walls, hidden: {"radius": radius, "wall_length": walls, "hidden": hidden},
    st.sampled_from([1, 2, 3]),
    st.sampled_from([(0, 0), (0, 2), (1, 4)]),
    st.sampled_from([0.0, 0.4, 1.0]),
)


@given(family=families, low=st.integers(0, 3), more=st.integers(0, 3), seed=seeds)
def test_pairs_of_free_locations_share_a_state(family, low, more, seed):
    high = min(3, low + more)
    rooms = generate_rooms(np.random.default_rng(seed), 5, RoomConfig.random_wall(**family, duplicates=(low, high)))
    plain = generate_rooms(np.random.default_rng(seed), 5, RoomConfig.random_wall(**family))
    for i in range(5):
        shown = rooms.states[i].tolist()
        free = set(np.flatnonzero(rooms.observed[i] & ~rooms.walls[i]).tolist())
        shared = {state for state, n in Counter(shown).items() if n > 1}
        assert all(shown.count(state) == 2 for state in shared)
        assert min(low, len(free) // 2) <= len(shared) <= high
        pairs = {here for here, state in enumerate(shown) if state in shared}
        assert pairs <= free
        assert set(np.flatnonzero(rooms.duplicated()[i]).tolist()) == pairs
        # All else is as it would be without: one of each pair has its own state still.
        assert (rooms.states[i] != plain.states[i]).sum() == len(shared)
        assert (rooms.walls[i] == plain.walls[i]).all() and (rooms.observed[i] == plain.observed[i]).all()


def test_any_number_of_pairs_anywhere():
    rooms = generate_rooms(np.random.default_rng(0), 4000, RoomConfig.open_arena(1, duplicates=(0, 3)))
    pairs = np.array([7 - len(set(states)) for states in rooms.states.tolist()])
    assert (abs(np.bincount(pairs) - 1000) < 5 * (4000 * 3 / 16) ** 0.5).all()
    share = rooms.duplicated().mean(0)  # 3 / 2 pairs among 7 locations on average
    assert share == pytest.approx(3 / 7, abs=0.04)


@pytest.mark.parametrize("duplicates", [(-1, 2), (3, 2), (0, 19), (19, 19)])
def test_errors(duplicates):
    with pytest.raises(ValueError, match="duplicates must be 0 <= least <= greatest <= 18 pairs of 37 locations, got"):
        RoomConfig.random_wall(3, duplicates=duplicates)
    RoomConfig.random_wall(3, duplicates=(0, 18))


def test_a_single_room_is_refused():
    """Environments and agents take a state for a place."""
    with pytest.raises(ValueError, match="states must be different"):
        Room.generate(np.random.default_rng(0), RoomConfig.random_wall(2, duplicates=(1, 1)))


def two_sevens() -> RoomBatch:
    """Rows 0 1 / 2 3 4 / 5 6; locations 1 and 5 show state 7, location 4 is a wall and 6 is not observed."""
    walls, observed = np.zeros((1, 7), bool), np.ones((1, 7), bool)
    walls[0, 4], observed[0, 6] = True, False
    return RoomBatch(hex_lattice(1), np.array([[0, 7, 2, 3, 4, 7, 6]]), walls, observed)


def test_truth_by_hand():
    """True from either location: 1 lies beside 0, 3 and the wall, 5 beside 2, 3 and 6."""
    rooms = two_sevens()
    assert rooms.duplicated().tolist() == [[False, True, False, False, False, True, False]]
    true = [(7, 3, 0), (7, 4, 3), (7, 5, 7), (7, 2, 2), (7, 1, 3), (7, 0, 6), (0, 0, 7), (2, 5, 7), (7, 3, 7)]
    false = [(7, 3, 2), (7, 4, 0), (7, 2, 3), (7, 0, 0), (4, 3, 3), (3, 0, 4), (7, 6, 7), (7, -1, 7), (-1, 0, -1)]
    assert rooms.is_true(np.array([true])).all()
    assert not rooms.is_true(np.array([false])).any()


# Walks


@given(family=families, steps=st.integers(1, 6), more=st.integers(0, 3), seed=seeds)
def test_a_walk_goes_through_the_observed_region(true_room, family, steps, more, seed):
    rng = np.random.default_rng(seed)
    banks = spanning_banks(rng, generate_rooms(rng, 5, RoomConfig.random_wall(**family)))
    length = banks.source.shape[1]
    walked = add_walks(rng, banks, steps, length + more + steps)
    assert walked.rooms is banks.rooms
    for mine, theirs in ((walked.source, banks.source), (walked.action, banks.action)):
        np.testing.assert_array_equal(mine[:, :length], theirs)
        assert (mine[:, length : length + more] == -1).all()
    for i in range(5):
        room = true_room(banks.rooms, i)
        moves = {(here, action) for here, action in room.observed_moves() if room.ahead(here, action) >= 0}
        way = list(zip(walked.source[i, -steps:].tolist(), walked.action[i, -steps:].tolist(), strict=True))
        if not moves:
            assert way == [(-1, -1)] * steps
            continue
        assert set(way) <= moves
        assert all(room.end(*before) == after[0] for before, after in zip(way, way[1:], strict=False))


@given(family=families, steps=st.integers(1, 6), seed=seeds)
def test_a_walk_ends_where_it_is_told_to(true_room, family, steps, seed):
    rng = np.random.default_rng(seed)
    banks = spanning_banks(rng, generate_rooms(rng, 6, RoomConfig.random_wall(**family)))
    rooms = [true_room(banks.rooms, i) for i in range(6)]
    moves = [{(h, a) for h, a in room.observed_moves() if room.ahead(h, a) >= 0} for room in rooms]
    end = np.array([max((h for h, _ in some), default=-1) if i % 2 else -1 for i, some in enumerate(moves)])
    walked = add_walks(rng, banks, steps, banks.source.shape[1] + steps, end)
    for i, room in enumerate(rooms):
        way = list(zip(walked.source[i, -steps:].tolist(), walked.action[i, -steps:].tolist(), strict=True))
        if moves[i]:
            assert set(way) <= moves[i]
            assert all(room.end(*before) == after[0] for before, after in zip(way, way[1:], strict=False))
            assert end[i] < 0 or room.end(*way[-1]) == end[i]


def test_a_share_of_the_contexts_ends_where_two_locations_look_alike():
    rooms = RoomConfig.random_wall(2, duplicates=(1, 1))
    for doubtful, share in ((0.0, 2 / 16), (0.5, 0.56), (1.0, 1.0)):
        source = LatticeSource(rooms, context=4, doubtful=doubtful, components=(1, 2))
        banks = source.draw_banks(np.random.default_rng(0), 1000)
        room = np.arange(1000)
        ends = banks.rooms.targets()[room, banks.source[:, -1], banks.action[:, -1]]
        assert banks.rooms.duplicated()[room, ends].mean() == pytest.approx(share, abs=0.06)


def test_a_share_of_the_queries_starts_elsewhere_at_states_that_only_one_location_shows():
    source = LatticeSource(
        RoomConfig.random_wall(2, duplicates=(2, 3)), context=4, doubtful=1.0, elsewhere=0.75, components=(1, 2)
    )
    rng = np.random.default_rng(0)
    banks = source.draw_banks(rng, 50)
    queries, room = source.ask(rng, banks, 40), np.arange(50)
    ends = banks.rooms.targets()[room, banks.source[:, -1], banks.action[:, -1]]
    assert (queries.location[:, :10] == ends[:, None]).all()
    states, asked = banks.rooms.states, queries.transitions[:, 10:, 0]
    assert ((states[:, None] == asked[..., None]).sum(2) == 1).all()
    assert all(len(set(row)) > 5 for row in asked.tolist())
    assert queries.transitions.shape == (50, 40, 3) and set(queries.masked.ravel().tolist()) == {1, 2}


def test_queries_start_elsewhere_only_where_a_context_ends():
    with pytest.raises(ValueError, match="elsewhere is for banks with a context, got 0.5"):
        LatticeSource(RoomConfig.random_wall(2), elsewhere=0.5)


def test_walks_start_and_turn_anywhere():
    n, rooms = 6000, two_sevens()
    many = RoomBatch(rooms.lattice, *(np.repeat(x, n, 0) for x in (rooms.states, rooms.walls, rooms.observed)))
    none = np.full((n, 1), -1)
    walked = add_walks(np.random.default_rng(0), BankBatch(many, none, none), 2, 3)
    starts = np.bincount(walked.source[:, 1], minlength=7)
    assert starts[[4, 6]].sum() == 0
    assert (abs(starts[[0, 1, 2, 3, 5]] - n / 5) < 5 * (n * 4 / 25) ** 0.5).all()
    # From location 1 to 0 and 3, and against the wall.
    second = walked.action[walked.source[:, 2] == 1, 2]
    counts = np.bincount(second, minlength=6)
    assert counts[[0, 1, 2]].sum() == 0
    assert (abs(counts[3:] - len(second) / 3) < 5 * (len(second) * 2 / 9) ** 0.5).all()


# Queries


@given(family=families, seed=seeds)
def test_all_queries_start_where_they_are_told_to(family, seed):
    rng = np.random.default_rng(seed)
    banks = spanning_banks(rng, generate_rooms(rng, 4, RoomConfig.random_wall(**family)))
    kinds = move_kinds(banks)
    here = (kinds >= 0).any(2).argmax(1)
    among = np.broadcast_to((np.arange(kinds.shape[1]) == here[:, None])[..., None], kinds.shape)
    queries = draw_queries(rng, banks, 20, among=among)
    for i in np.flatnonzero((kinds >= 0).any((1, 2))):
        assert (queries.location[i] == here[i]).all()
        assert (queries.kind[i] == kinds[i, here[i], queries.action[i]]).all()
