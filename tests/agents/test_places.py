"""Named places and what the model reads of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.agents import MemoryBank, Place, PlaceMap


def test_names_begin_where_the_vocabulary_ends_and_are_never_used_twice():
    places = PlaceMap(n_states=10)
    names = [places.add(Place.FRONTIER, 3, action) for action in range(3)]
    assert names == [10, 11, 12]
    assert list(places.moves) == [(3, 0, 10), (3, 1, 11), (3, 2, 12)]
    places.rename(12, 4)
    assert places.add(Place.WALL) == 13
    assert places.kind == {10: Place.FRONTIER, 11: Place.FRONTIER, 13: Place.WALL}


def test_a_state_takes_the_place_of_a_name_in_all_moves():
    places = PlaceMap(10)
    place = places.add(Place.FRONTIER, 3, 0)
    places.moves.add(place, 1, 5)
    places.moves.add(6, 2, 7)
    assert sorted(places.rename(place, 4)) == [(3, 0, place), (place, 1, 5)]
    assert sorted(places.moves) == [(3, 0, 4), (4, 1, 5), (6, 2, 7)]
    assert place not in places.kind


def test_the_bank_that_the_model_reads():
    """States keep their numbers, places get those that nobody uses, and of a move known twice the place counts."""
    places = PlaceMap(6)
    wall, frontier = places.add(Place.WALL, 0, 0), places.add(Place.FRONTIER, 1, 1)
    bank, meaning = places.encode(MemoryBank([(0, 0, 0), (0, 3, 1)]), 10, here=5)
    assert bank == MemoryBank([(0, 3, 1), (0, 0, 2), (1, 1, 3)])
    assert meaning == [0, 1, wall, frontier, 4, 5]


@pytest.mark.parametrize("longest, vocabulary", [(3, 20), (20, 5)])
def test_places_outside_are_left_out_first_where_bank_or_vocabulary_are_small(longest, vocabulary):
    places = PlaceMap(vocabulary)
    frontier = places.add(Place.FRONTIER, 1, 0)
    outside = [places.add(Place.OUTSIDE, 1, action) for action in (1, 2)]
    bank, meaning = places.encode(MemoryBank([(0, 0, 1), (1, 3, 0)]), longest, here=2)
    assert len(bank) <= longest
    assert frontier in meaning and outside[0] not in meaning
    assert (outside[1] in meaning) == (longest == 20)


def test_memories_are_never_left_out():
    memory = MemoryBank([(s, 0, s + 1) for s in range(6)])
    places = PlaceMap(7)
    places.add(Place.FRONTIER, 0, 1)
    bank, meaning = places.encode(memory, 6, here=0)
    assert bank == memory and meaning == list(range(7))


@given(seed=st.integers(0, 10**6))
def test_numbers_stand_for_different_places_and_give_back_every_move(seed):
    rng = np.random.default_rng(seed)
    places, memory = PlaceMap(30), MemoryBank()
    for _ in range(12):
        memory.add(*rng.integers([8, 6, 8]))
        places.add(rng.choice(list(Place)[1:]), *rng.integers([8, 6]))
    bank, meaning = places.encode(memory, 74, here=0)
    assert len(set(meaning)) == len(meaning) == 30
    moves = {(s, a): e for s, a, e in places.moves}
    expected = {(s, a): e for s, a, e in memory} | moves
    assert {(meaning[s], a): meaning[e] for s, a, e in bank} == expected


def test_frontiers_are_forgotten_and_walls_are_not():
    places = PlaceMap(8)
    frontier, wall = places.add(Place.FRONTIER, 0, 1), places.add(Place.WALL, 0, 2)
    places.moves.add(frontier, 3, wall)
    places.forget_frontiers()
    assert places.kind == {wall: Place.WALL} and list(places.moves) == [(0, 2, wall)]
