"""Queries against the rules that say which moves may be asked about."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import (
    PAPER_MIX,
    TRAINING_MIX,
    BankBatch,
    Kind,
    RoomBatch,
    RoomConfig,
    add_transitions,
    draw_queries,
    generate_rooms,
    hex_lattice,
    move_kinds,
    spanning_banks,
    walk_banks,
)

seeds = st.integers(0, 2**32 - 1)
ROOMS = 3


@st.composite
def bank_batches(draw) -> BankBatch:
    """Minimal, dense and walked banks in which something at least is observed."""
    rng = np.random.default_rng(draw(seeds))
    radius = draw(st.integers(1, 4))
    length = draw(st.sampled_from([None, (0, 0), (radius, 3 * radius)]))
    hidden = draw(st.sampled_from([0.0, 0.2, 0.4]))
    rooms = generate_rooms(rng, ROOMS, RoomConfig.random_wall(radius, wall_length=length, hidden=hidden))
    kind = draw(st.sampled_from(["spanning", "extra", "walk"]))
    if kind == "walk":
        return walk_banks(rng, rooms, rng.integers(1, 40, ROOMS))
    banks = spanning_banks(rng, rooms)
    return add_transitions(rng, banks, rng.integers(0, 40, ROOMS)) if kind == "extra" else banks


def true_kind(room, bank: set, here: int, action: int) -> int:
    """The kind of the query about one move, -1 if it is not asked about."""
    there = room.ahead(here, action)
    if here in room.walls:
        return -1
    if (here, action) in bank:
        return Kind.SEEN
    if there < 0:
        return Kind.OFF_LATTICE if here in room.observed else -1
    if here in room.observed and there in room.observed:
        return Kind.UNSEEN
    one_end = (here in room.observed) != (there in room.observed)
    return Kind.UNSOLVABLE if one_end and there not in room.walls else -1


def permuted(banks: BankBatch, rng: np.random.Generator) -> BankBatch:
    """The same banks, each in another order (padding included)."""
    order = rng.random(banks.source.shape).argsort(1)
    source, action = (np.take_along_axis(moves, order, 1) for moves in (banks.source, banks.action))
    return BankBatch(banks.rooms, source, action)


def paper_banks(n: int, radius: int = 3, seed: int = 0, **options) -> tuple[BankBatch, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return spanning_banks(rng, generate_rooms(rng, n, RoomConfig.random_wall(radius, **options))), rng


# Kinds


@given(banks=bank_batches())
def test_kind_of_every_move(true_room, banks):
    kinds = move_kinds(banks)
    for i, bank in enumerate(banks.transitions()):
        room = true_room(banks.rooms, i)
        held = set(room.moves(bank))
        expected = [[true_kind(room, held, here, action) for action in range(6)] for here in room.locations]
        np.testing.assert_array_equal(kinds[i], expected)


def test_kinds_by_hand():
    """Rows 0 1 / 2 3 4 / 5 6, a wall at 2 and 6 hidden; the bank holds 0 to 1 and the bump of 0 into 2."""
    walls, observed = np.zeros((1, 7), bool), np.ones((1, 7), bool)
    walls[0, 2], observed[0, 6] = True, False
    rooms = RoomBatch(hex_lattice(1), np.arange(7)[None], walls, observed)
    unseen, seen, unsolvable, off = Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE, Kind.OFF_LATTICE
    expected = [
        # E, NE, NW, W, SW, SE
        [seen, off, off, off, seen, unseen],
        [off, off, off, unseen, unseen, unseen],
        [-1] * 6,
        [unseen, unseen, unseen, unseen, unseen, unsolvable],
        [off, off, unseen, unseen, unsolvable, off],
        [unsolvable, unseen, unseen, off, off, off],
        [-1, unsolvable, unsolvable, unsolvable, -1, -1],
    ]
    banks = BankBatch(rooms, np.array([[0, 0, -1]]), np.array([[0, 4, -1]]))
    np.testing.assert_array_equal(move_kinds(banks), [expected])


def test_a_hidden_wall_is_not_asked_about():
    walls, observed = np.zeros((1, 7), bool), np.ones((1, 7), bool)
    walls[0, 3], observed[0, 3] = True, False
    rooms = RoomBatch(hex_lattice(1), np.arange(7)[None], walls, observed)
    kinds = move_kinds(BankBatch(rooms, np.array([[-1]]), np.array([[-1]])))[0]
    for here, action in [(0, 5), (1, 4), (2, 0), (4, 3), (5, 1), (6, 2)]:
        assert kinds[here, action] == -1
    assert not (kinds == Kind.UNSOLVABLE).any()


# Drawn queries


@given(
    banks=bank_batches(),
    n=st.integers(0, 30),
    mix=st.sampled_from([PAPER_MIX, TRAINING_MIX, (0.25,) * 4]),
    seed=seeds,
)
def test_queries_are_true_and_of_their_kind(true_room, banks, n, mix, seed):
    queries = draw_queries(np.random.default_rng(seed), banks, n, mix)
    assert queries.transitions.shape == (ROOMS, n, 3)
    np.testing.assert_array_equal(queries.shown, queries.transitions)  # an agent sees symbols as they are
    for field in (queries.masked, queries.kind, queries.location, queries.action):
        assert field.shape == (ROOMS, n)
    assert np.isin(queries.masked, [0, 1, 2]).all()
    for i, bank in enumerate(banks.transitions()):
        room = true_room(banks.rooms, i)
        held = set(room.moves(bank))
        for j in range(n):
            here, action = int(queries.location[i, j]), int(queries.action[i, j])
            assert room.happens(queries.transitions[i, j])
            assert tuple(queries.transitions[i, j, :2]) == (room.state_of[here], action)
            assert queries.kind[i, j] == true_kind(room, held, here, action) >= 0
            assert mix[queries.kind[i, j]] > 0


@pytest.mark.parametrize("mix", [PAPER_MIX, TRAINING_MIX, (0.1, 0.2, 0.3, 0.4), (0, 0, 1, 0)])
def test_mix_where_a_room_has_every_kind(mix):
    banks, rng = paper_banks(600)
    kinds = move_kinds(banks).reshape(600, -1)
    complete = np.all([(kinds == kind).any(1) for kind in Kind], axis=0)
    assert complete.sum() > 300
    drawn = draw_queries(rng, banks, 100, mix).kind[complete]
    for kind, share in zip(Kind, mix, strict=True):
        assert abs((drawn == kind).mean() - share) < 5 * (share * (1 - share) / drawn.size) ** 0.5 + 1e-9


def test_shares_need_not_add_up_to_one():
    banks, _ = paper_banks(20)
    first = draw_queries(np.random.default_rng(1), banks, 20, PAPER_MIX)
    second = draw_queries(np.random.default_rng(1), banks, 20, [100 * share for share in PAPER_MIX])
    assert (first.location == second.location).mean() > 0.99


def test_a_missing_kind_leaves_its_share_to_the_others():
    """Nothing is hidden in an open arena, so nothing is unsolvable: .68 to .15 remain."""
    rng = np.random.default_rng(0)
    banks = spanning_banks(rng, generate_rooms(rng, 200, RoomConfig.open_arena()))
    drawn = draw_queries(rng, banks, 200).kind
    assert np.isin(drawn, [Kind.UNSEEN, Kind.SEEN]).all()
    share = 0.68 / 0.83
    assert abs((drawn == Kind.UNSEEN).mean() - share) < 5 * (share * (1 - share) / drawn.size) ** 0.5


def test_other_kinds_step_in_where_no_wanted_kind_exists():
    rng = np.random.default_rng(0)
    banks = spanning_banks(rng, generate_rooms(rng, 20, RoomConfig.open_arena()))
    drawn = draw_queries(rng, banks, 100, mix=(0, 0, 1, 0)).kind
    assert set(np.unique(drawn)) == {Kind.UNSEEN, Kind.SEEN, Kind.OFF_LATTICE}


def test_moves_of_one_kind_are_equally_likely():
    """One room, many queries."""
    banks, rng = paper_banks(1, hidden=0.4, seed=3)
    kinds = move_kinds(banks)[0].ravel()
    n = 100_000
    queries = draw_queries(rng, banks, n, (0.25,) * 4)
    counts = np.bincount((queries.location * 6 + queries.action)[0], minlength=len(kinds))
    assert counts[kinds < 0].sum() == 0
    for kind in Kind:
        of_kind = counts[kinds == kind]
        assert len(of_kind) > 0, "the seed must give a room with every kind"
        p = 0.25 / len(of_kind)
        assert (abs(of_kind - n * p) < 5 * (n * p * (1 - p)) ** 0.5).all()


def test_masked_component_is_uniform_whatever_the_kind():
    banks, rng = paper_banks(300)
    queries = draw_queries(rng, banks, 300)
    for kind in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE):
        masked = queries.masked[queries.kind == kind]
        counts = np.bincount(masked, minlength=3)
        assert (abs(counts - len(masked) / 3) < 5 * (len(masked) * 2 / 9) ** 0.5).all()


def test_a_room_does_not_influence_the_next():
    """Queries of a big batch belong to their own rooms, at its very end as well."""
    banks, rng = paper_banks(5000, radius=1)
    queries = draw_queries(rng, banks, 20)
    assert banks.rooms.is_true(queries.transitions).all()
    rows = np.arange(5000)[:, None]
    np.testing.assert_array_equal(queries.kind, move_kinds(banks)[rows, queries.location, queries.action])
    assert (queries.kind >= 0).all()


# Determinism and order


@given(banks=bank_batches(), seed=seeds)
def test_permuting_a_bank_changes_nothing(banks, seed):
    other = permuted(banks, np.random.default_rng(seed))
    np.testing.assert_array_equal(move_kinds(banks), move_kinds(other))
    first = draw_queries(np.random.default_rng(seed), banks, 20)
    second = draw_queries(np.random.default_rng(seed), other, 20)
    for field in dataclasses.fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(second, field.name))


@given(banks=bank_batches(), seed=seeds)
def test_same_seed_same_queries(banks, seed):
    first = draw_queries(np.random.default_rng(seed), banks, 20)
    second = draw_queries(np.random.default_rng(seed), banks, 20)
    for field in dataclasses.fields(first):
        np.testing.assert_array_equal(getattr(first, field.name), getattr(second, field.name))


def test_different_seeds_different_queries():
    banks, _ = paper_banks(4)
    draws = [draw_queries(np.random.default_rng(seed), banks, 20).location for seed in (0, 1)]
    assert (draws[0] != draws[1]).any()


@pytest.mark.parametrize("mix", [(), (1.0,), (0.5, 0.2, 0.3), (0.2,) * 5])
def test_mix_errors(mix):
    banks, rng = paper_banks(1)
    with pytest.raises(ValueError, match=f"mix needs 4 shares, got {len(mix)}"):
        draw_queries(rng, banks, 5, mix)


def test_mixes_are_shares():
    assert PAPER_MIX == (0.68, 0.15, 0.17, 0.0)  # paper, "Query Selection"
    assert sum(PAPER_MIX) == pytest.approx(1)
    assert sum(TRAINING_MIX) == pytest.approx(1)
