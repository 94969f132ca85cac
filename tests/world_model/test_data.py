"""Training data against a second account of it, and the promise that a batch is its (seed, rank, step)."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from eswm_gym.rooms import PAPER_MIX, TRAINING_MIX, Kind, Room, RoomConfig, draw_queries
from eswm_gym.world_model.data import Problems, ProblemStream, Source, to_problems

N_STATES = 30
seeds = st.integers(0, 2**32 - 1)


@st.composite
def sources(draw) -> Source:
    radius = draw(st.sampled_from([1, 2]))
    rooms = RoomConfig.random_wall(
        radius,
        states=tuple(range(N_STATES)),
        wall_length=draw(st.sampled_from([None, (0, 2)])),
        hidden=draw(st.sampled_from([0.0, 0.4, 1.0])),
    )
    return Source(rooms, draw(st.sampled_from(["minimal", "dense", "walk"])))


@given(source=sources(), seed=seeds, mix=st.sampled_from([PAPER_MIX, TRAINING_MIX]))
def test_to_problems(source, seed, mix):
    """Rows, masks and targets, one query at a time."""
    rng = np.random.default_rng(seed)
    banks = source.draw_banks(rng, 4)
    queries = draw_queries(rng, banks, 12, mix)
    problems = to_problems(banks, queries, source.capacity, N_STATES)
    assert all(tensor.dtype == torch.int64 for tensor in problems)
    memories, query, target, masked = (tensor.tolist() for tensor in problems)
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
            if queries.kind[i, j] in (Kind.UNSOLVABLE, -1):  # -1: the room offers nothing to ask
                assert target[i][j] == (6 if hidden == 1 else N_STATES)
                continue
            completed = [target[i][j] if k == hidden else query[i][j][k] for k in range(3)]
            assert completed == queries.transitions[i, j].tolist()
            assert room.next_state(completed[0], completed[1]) == completed[2]


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
        drawn = Source(rooms, bank).draw_banks(np.random.default_rng(0), 500)
        sizes = (drawn.source >= 0).sum(1)
        # A wall may split a room, which then has fewer than 18 transitions to begin with.
        assert least - 2 <= sizes.min() <= least + 1 and sizes.max() >= 30 and sizes.std() > 4


SMALL, LARGE = RoomConfig.random_wall(1, wall_length=(0, 1)), RoomConfig.random_wall(2)


def stream(seed=0, rank=0, first=0) -> ProblemStream:
    """Batches of 4 rooms of radius 1 (6 rows) or, three times as often, of radius 2 (18 rows)."""
    mixture = (Source(SMALL, share=1.0), Source(LARGE, share=3.0))
    return ProblemStream(mixture, 19, rooms=4, queries=5, seed=seed, rank=rank, first=first)


def same(one: Problems, other: Problems) -> bool:
    return all(map(torch.equal, one, other))


def test_shapes():
    memories, query, target, masked = stream().batch(0)
    assert memories.shape in {(4, 6, 3), (4, 18, 3)}
    assert query.shape == (4, 5, 3) and target.shape == masked.shape == (4, 5)


@given(seed=st.integers(0, 2**31), step=st.integers(0, 10**6), rank=st.integers(0, 7))
def test_a_batch_is_its_seed_rank_and_step(seed, step, rank):
    batch = stream(seed, rank).batch(step)
    assert same(batch, stream(seed, rank).batch(step))
    assert not same(batch, stream(seed, rank).batch(step + 1))
    assert not same(batch, stream(seed + 1, rank).batch(step))
    other = stream(seed, rank + 1).batch(step)
    assert not same(batch, other)
    assert batch.memories.shape == other.memories.shape  # every process works as long as the others


def test_sources_are_drawn_by_their_shares():
    large = sum(stream().batch(step).memories.shape[1] == 18 for step in range(400))
    assert large / 400 == pytest.approx(0.75, abs=0.07)  # more than three standard deviations


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("first", [0, 5])
def test_a_loader_gives_the_batches_in_order_from_the_first_on(workers, first):
    """However many worker processes make them, so that a resumed run sees what it would have seen."""
    loader = DataLoader(stream(first=first), batch_size=None, num_workers=workers)
    for step, batch in enumerate(itertools.islice(loader, 7), start=first):
        assert same(batch, stream().batch(step))
