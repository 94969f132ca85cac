"""Problems about rooms on a lattice, against a second account of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import (
    CODES,
    N_NAMES,
    PAPER_MIX,
    TRAINING_MIX,
    Kind,
    LatticeSource,
    RegionConfig,
    Room,
    RoomConfig,
    draw_queries,
    hex_lattice,
    move_numbers,
)
from eswm_gym.rooms.transitions import to_problems

N_STATES = 30
seeds = st.integers(0, 2**32 - 1)


@st.composite
def sources(draw) -> LatticeSource:
    radius = draw(st.sampled_from([1, 2]))
    rooms = RoomConfig.random_wall(
        radius,
        states=tuple(range(N_STATES)),
        wall_length=draw(st.sampled_from([None, (0, 2)])),
        hidden=draw(st.sampled_from([0.0, 0.4, 1.0])),
    )
    return LatticeSource(rooms, draw(st.sampled_from(["minimal", "dense", "walk"])))


@given(source=sources(), seed=seeds, mix=st.sampled_from([PAPER_MIX, TRAINING_MIX]))
def test_to_problems(source, seed, mix):
    """Rows, masks, truth and what is unknown, one query at a time."""
    rng = np.random.default_rng(seed)
    banks = source.draw_banks(rng, 4)
    queries = draw_queries(rng, banks, 12, mix)
    problems = to_problems(banks, queries, source.capacity)
    assert all(part.dtype == np.int64 for part in problems)
    memories, query, truth, masked, unknown = (part.tolist() for part in problems)
    for i in range(4):
        room = Room.from_batch(banks.rooms, i)
        held = [
            [room.states[here], action, room.next_state(room.states[here], action)]
            for here, action in zip(banks.source[i].tolist(), banks.action[i].tolist(), strict=True)
            if here >= 0
        ]
        assert memories[i] == held + [[-1] * 3] * (source.capacity - len(held))
        for j in range(12):
            hidden = masked[i][j]
            assert [k for k in range(3) if query[i][j][k] == -1] == [hidden]
            assert truth[i][j] == queries.transitions[i, j].tolist()
            assert all(query[i][j][k] == truth[i][j][k] for k in range(3) if k != hidden)
            # -1: the room offers nothing to ask
            assert unknown[i][j] == (queries.kind[i, j] in (Kind.UNSOLVABLE, -1))
            if not unknown[i][j]:
                assert room.next_state(*truth[i][j][:2]) == truth[i][j][2]
                assert source.is_true(banks, queries.transitions)[i, j]


@given(source=sources(), seed=seeds)
def test_no_bank_exceeds_the_capacity_of_its_source(source, seed):
    n = {1: 7, 2: 19}[source.rooms.radius]
    assert source.capacity == (n - 1 if source.bank == "minimal" else 2 * n)
    banks = source.draw_banks(np.random.default_rng(seed), 16)
    assert len(banks.source) == 16
    assert (banks.source >= 0).sum(1).max() <= source.capacity


def test_dense_and_walked_banks_vary_in_size():
    rooms = RoomConfig.random_wall(2, hidden=0.0)
    for bank, least in (("dense", 18), ("walk", 0)):
        drawn = LatticeSource(rooms, bank).draw_banks(np.random.default_rng(0), 500)
        sizes = (drawn.source >= 0).sum(1)
        # A wall may split a room, which then has fewer than 18 transitions to begin with.
        assert least - 2 <= sizes.min() <= least + 1 and sizes.max() >= 30 and sizes.std() > 4


def test_a_source_says_what_its_states_and_actions_are():
    source = LatticeSource(RoomConfig.random_wall(1))
    assert (source.cells, source.n_actions, source.share) == (1, 6, 1.0)


def test_only_the_components_that_a_source_asks_for_are_masked():
    rooms = RoomConfig.random_wall(2)
    asked = {}
    for components in ((0, 1, 2), (1, 2), (2,)):
        rng = np.random.default_rng(4)
        source = LatticeSource(rooms, components=components)
        asked[components] = source.ask(rng, source.draw_banks(rng, 20), 30)
        assert set(asked[components].masked.ravel()) == set(components)
    first = asked[0, 1, 2].transitions
    assert all((queries.transitions == first).all() for queries in asked.values())  # the moves stay the same


def test_errors():
    for options, why in (
        ({"bank": "spare"}, "bank must be one of .* got 'spare'"),
        ({"actions": "named"}, "actions must be one of .* got 'named'"),
        ({"context": -1}, "got -1"),
        ({"context": 8, "rows": 8}, "rows must be more than the 8 of the context, got 8"),
        ({"rows": 0}, "rows must be more than the 0 of the context, got 0"),
        ({"held": (0.5, 1.5)}, r"held must be two shares, the least first, got \(0.5, 1.5\)"),
        ({"held": (0.5, 0.2)}, r"held must be two shares, the least first, got \(0.5, 0.2\)"),
    ):
        with pytest.raises(ValueError, match=why):
            LatticeSource(RoomConfig(), **options)


SHAPES = {"hexagon": (3,), "square": (6, 5), "diagonal": (6, 5), "torus": (5, 5), "pose": (4, 4)}
every_shape = pytest.mark.parametrize("shape", SHAPES)


def regions(shape, bank="minimal", **options) -> LatticeSource:
    return LatticeSource(RegionConfig(shape, SHAPES[shape], 6, 16, 8), bank, rows=96, **options)


def lived_through(rooms, i) -> set[tuple[int, int, int]]:
    """What can happen in a room, worked out move by move, with the lattice's own actions."""
    lattice, happens = rooms.lattice, set()
    for here in range(lattice.n_locations):
        if rooms.walls[i, here] or rooms.terminal[i, here]:
            continue
        for action in range(lattice.n_actions):
            there = int(lattice.neighbors[here, action])
            there = here if there < 0 or rooms.walls[i, there] else there
            happens.add((int(rooms.states[i, here]), action, int(rooms.states[i, there])))
    return happens


@every_shape
@pytest.mark.parametrize("actions", ["known", "permuted"])
@pytest.mark.parametrize("bank", ["minimal", "dense", "walk"])
def test_numbers_of_actions_stand_for_the_moves_of_the_lattice(shape, actions, bank):
    """Read back by the room's own table, banks and queries tell what happens in it."""
    rng = np.random.default_rng(0)
    source = regions(shape, bank, actions=actions)
    banks = source.draw_banks(rng, 12)
    queries, rooms = source.ask(rng, banks, 20), banks.rooms
    assert source.n_actions == N_NAMES
    true = source.is_true(banks, queries.transitions)
    for i in range(12):
        numbers, happens = rooms.numbers[i].tolist(), lived_through(rooms, i)
        if actions == "known":
            assert numbers == move_numbers(rooms.lattice.actions).tolist()
        assert len(set(numbers)) == rooms.lattice.n_actions
        back = {number: action for action, number in enumerate(numbers)}
        for s, a, e in banks.transitions()[i].tolist():
            assert s < 0 or (s, back[a], e) in happens
        for (s, a, e), said, kind, action in zip(
            queries.transitions[i].tolist(), true[i], queries.kind[i], queries.action[i], strict=True
        ):
            assert back[a] == action
            assert (s, back[a], e) in happens
            assert said or kind < 0
    moves = banks.moves()
    assert source.is_true(banks, moves.transitions)[moves.start >= 0].all()


@every_shape
def test_what_does_not_happen_is_not_true(shape):
    """All triples of a few states and all numbers, against the moves worked out one by one."""
    rng = np.random.default_rng(1)
    source = regions(shape, actions="permuted")
    banks = source.draw_banks(rng, 4)
    states = [-1, *range(0, 96, 4)]
    triples = np.array([(s, a, e) for s in states for a in (-1, *CODES, 0) for e in states])
    said = source.is_true(banks, np.broadcast_to(triples, (4, *triples.shape)))
    assert said.any()
    for i in range(4):
        back = {number: action for action, number in enumerate(banks.rooms.numbers[i].tolist())}
        happens = lived_through(banks.rooms, i)
        expected = [(s, back.get(a, -1), e) in happens for s, a, e in triples.tolist()]
        assert said[i].tolist() == expected


@every_shape
def test_rooms_have_codes_of_their_own(shape):
    rooms = regions(shape, actions="permuted").draw_banks(np.random.default_rng(2), 200).rooms
    assert rooms.numbers.shape == (200, rooms.lattice.n_actions)
    assert len({tuple(codes) for codes in rooms.numbers.tolist()}) > 100
    assert set(np.unique(rooms.numbers)) == set(CODES)
    for action in range(rooms.lattice.n_actions):  # each code as often as any other
        assert np.bincount(rooms.numbers[:, action] - CODES[0], minlength=8).min() > 8


def test_known_numbers_of_hexagons_are_the_lattices_own():
    """So that a model which was trained on hexagons alone knows them."""
    problems = {
        actions: regions("hexagon", actions=actions).draw(np.random.default_rng(3), 10, 8)
        for actions in ("numbered", "known")
    }
    for numbered, known in zip(*problems.values(), strict=True):
        assert (numbered == known).all()
    assert move_numbers(hex_lattice(1).actions).tolist() == list(range(6))


@every_shape
@pytest.mark.parametrize("held", [(0.8, 0.8), (0.6, 1.0), (0.0, 0.1)])
def test_a_dense_bank_holds_the_share_that_was_asked(shape, held):
    """Of the moves on the lattice between what is observed; never fewer than a spanning bank."""
    banks = regions(shape, "dense", held=held).draw_banks(np.random.default_rng(4), 60)
    rooms, lattice = banks.rooms, banks.rooms.lattice
    shares = []
    for i in range(60):
        seen, walls, terminal = (set(np.flatnonzero(x[i])) for x in (rooms.observed, rooms.walls, rooms.terminal))
        there = [
            (here, action)
            for here in seen - walls - terminal
            for action in range(lattice.n_actions)
            if lattice.neighbors[here, action] in seen
        ]
        bank = [(s, a) for s, a in zip(banks.source[i], banks.action[i], strict=True) if s >= 0]
        assert len(set(bank)) == len(bank) and set(bank) <= set(there)
        least = len(seen) - 1  # of a spanning bank
        assert max(least, held[0] * len(there) - 0.51) <= len(bank) <= max(least, held[1] * len(there) + 0.51)
        shares.append(len(bank) / len(there))
    if held == (0.6, 1.0):
        assert min(shares) < 0.75 < 0.9 < max(shares)


def test_a_context_lies_behind_a_whole_bank():
    """Whatever the number of rows, the walk replaces none of the bank."""
    rng = np.random.default_rng(5)
    source = LatticeSource(RoomConfig.random_wall(2, hidden=0.0), "dense", context=6, rows=25)
    banks = source.draw_banks(rng, 200)
    assert banks.source.shape == (200, 25)
    assert ((banks.source[:, :19] >= 0).sum(1) <= 19).all() and (banks.source[:, 19:] >= 0).all()
    minimal = (banks.source[:, :19] >= 0).sum(1)
    assert minimal.min() >= 16  # 18, or fewer where a wall splits the room
