"""The promise that a batch of training is its (seed, rank, step)."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from eswm_gym.rooms import LatticeSource, RoomConfig
from eswm_gym.rooms.transitions import Problems
from eswm_gym.world_model.stream import ProblemStream

SMALL, LARGE = RoomConfig.random_wall(1, wall_length=(0, 1)), RoomConfig.random_wall(2)


def stream(seed=0, rank=0, first=0) -> ProblemStream:
    """Batches of 4 rooms of radius 1 (6 rows) or, three times as often, of radius 2 (18 rows)."""
    mixture = (LatticeSource(SMALL, share=1.0), LatticeSource(LARGE, share=3.0))
    return ProblemStream(mixture, rooms=4, queries=5, seed=seed, rank=rank, first=first)


def same(one: Problems, other: Problems) -> bool:
    return all(map(torch.equal, one, other))


def test_shapes():
    memories, query, truth, masked, unknown = batch = stream().batch(0)
    assert all(part.dtype == torch.int64 for part in batch)
    assert memories.shape in {(4, 6, 3), (4, 18, 3)}
    assert query.shape == truth.shape == (4, 5, 3) and unknown.shape == masked.shape == (4, 5)


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


def test_lessons_come_first_one_after_the_other():
    """Two batches of one source, three of another, then the mixture as it would be without lessons."""
    one, other = LatticeSource(SMALL), LatticeSource(RoomConfig.random_wall(1, observed=3, wall_length=(0, 1)))
    taught = ProblemStream((LatticeSource(LARGE),), 4, 5, seed=0, lessons=((2, one), (3, other)))
    assert [taught.batch(step).memories.shape[1] for step in range(8)] == [6, 6, 2, 2, 2, 18, 18, 18]
    plain = ProblemStream((LatticeSource(LARGE),), 4, 5, seed=0)
    assert same(taught.batch(6), plain.batch(6))
    again = ProblemStream((LatticeSource(LARGE),), 4, 5, seed=0, first=1, lessons=((2, one), (3, other)))
    assert same(next(iter(again)), taught.batch(1))
