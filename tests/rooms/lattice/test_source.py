"""Problems about rooms on a lattice, against a second account of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import PAPER_MIX, TRAINING_MIX, Kind, LatticeSource, Room, RoomConfig, draw_queries
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
    for options, why in (({"bank": "spare"}, "bank must be one of .* got 'spare'"), ({"context": -1}, "got -1")):
        with pytest.raises(ValueError, match=why):
            LatticeSource(RoomConfig(), **options)
