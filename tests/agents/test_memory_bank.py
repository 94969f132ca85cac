"""The memory bank against a plain list of transitions."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.agents import MemoryBank

transitions = st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 6))


@given(added=st.lists(transitions, max_size=60), capacity=st.none() | st.integers(1, 10))
def test_bank_keeps_the_newest_end_of_each_move_and_forgets_the_oldest(added, capacity):
    bank, kept = MemoryBank(capacity=capacity), []
    for t in added:
        assert bank.add(*t) == (t not in kept)
        if t not in kept:
            kept = [k for k in kept if k[:2] != t[:2]]
            kept = [*kept, t] if capacity is None or len(kept) < capacity else [*kept[1:], t]
    assert list(bank) == kept
    assert len(bank) == len(kept)
    assert bank.states == sorted({s for k in kept for s in (k[0], k[2])})
    assert all(bank.end_of(s, a) == e and (s, a, e) in bank for s, a, e in kept)
    array = bank.to_numpy()
    assert array.dtype == np.int64 and array.shape == (len(kept), 3)
    assert MemoryBank(array) == MemoryBank(array[::-1]) == bank
    for twin in (copy.deepcopy(bank), pickle.loads(pickle.dumps(bank)), bank.copy()):
        assert list(twin) == kept and twin.capacity == capacity


@given(added=st.lists(transitions, max_size=40), state=st.integers(0, 6))
def test_forgetting_a_state_deletes_just_what_touches_it(added, state):
    bank = MemoryBank(added)
    before = list(bank)
    forgotten = bank.forget_state(state)
    assert forgotten == [t for t in before if state in (t[0], t[2])]
    assert list(bank) == [t for t in before if t not in forgotten]


def test_padding_is_dropped():
    assert list(MemoryBank(np.array([[1, 2, 3], [-1, -1, -1]]))) == [(1, 2, 3)]
    assert MemoryBank(np.full((4, 3), -1)).to_numpy().shape == (0, 3)


@pytest.mark.parametrize("bad", [[1, 2, 3], [(1, 2)], np.zeros((2, 4), int), [(1.5, 0, 2)], [("a", 0, 2)], [None]])
def test_rows_of_another_form_are_refused_by_name(bad):
    with pytest.raises(ValueError, match="three integers") as error:
        MemoryBank(bad)
    assert repr(bad[0]) in str(error.value)


def test_numpy_integers_go_in_and_plain_ones_come_out():
    bank = MemoryBank([np.array([1, 2, 3], np.int16)])
    bank.add(np.int64(3), np.array(5), np.int8(1))
    assert all(type(part) is int for transition in bank for part in transition)
    assert bank.end_of(np.int64(1), np.int64(2)) == 3 and (3, 5, 1) in bank


def test_equality():
    bank = MemoryBank([(1, 0, 2)])
    assert bank != MemoryBank([(1, 0, 3)]) and bank != [(1, 0, 2)]
    assert bank == MemoryBank([(1, 0, 2)], capacity=5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(bank)


@pytest.mark.parametrize("bad", [(-1, 0, 3), (1, 0, -2), (1, 6, 2)])
def test_what_is_no_transition_is_refused(bad):
    bank = MemoryBank(n_actions=6)
    with pytest.raises(ValueError, match=str(bad[0])):
        bank.add(*bad)
    assert len(bank) == 0


def test_too_many_transitions_are_refused():
    with pytest.raises(ValueError, match="capacity of 2"):
        MemoryBank([(0, 0, 1), (1, 0, 2), (2, 0, 3)], capacity=2)
    with pytest.raises(ValueError, match="capacity"):
        MemoryBank(capacity=0)


MANY = [(0, 0, 1), (1, 3, 0), (1, 0, 2), (2, 2, 2), (3, 0, 4), (2, 3, 1), (4, 0, 4)]
JOINS = [(0, 0, 1), (1, 0, 2), (3, 0, 4)]


@pytest.mark.parametrize(
    ("capacity", "kept"),
    [
        (None, MANY),
        (7, MANY),
        (5, [(2, 3, 1), (4, 0, 4), *JOINS]),  # the newest of the reverses and bumps come first, and go first
        (3, JOINS),
        (2, JOINS[1:]),
    ],
)
def test_of_too_many_transitions_those_are_held_that_join_states(capacity, kept):
    bank = MemoryBank.holding(MANY, capacity, 6)
    assert (list(bank), bank.capacity, bank.n_actions) == (kept, capacity, 6)


def test_what_is_no_transition_is_refused_also_where_it_would_not_be_held():
    with pytest.raises(ValueError, match="action from 0 to 3, got .0, 4, 0."):
        MemoryBank.holding([*MANY, (0, 4, 0)], 2, 4)
