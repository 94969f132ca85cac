"""Memories that contradict each other, in banks made by hand and in those that models are trained on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eswm_gym.rooms import LatticeSource, RegionConfig, RoomConfig
from eswm_gym.rooms.lattice.noise import strange_states

#  0 -E-> 1 -E-> 2, 2 bumps into a wall to the east; 3 -NE-> 4 elsewhere.
BANK = np.array([[[0, 0, 1], [1, 0, 2], [2, 0, 2], [3, 1, 4], [-1, -1, -1]]])
STATES = np.arange(7)[None]
ROOMS = RoomConfig.random_wall(2, states=tuple(range(30)))


def test_strange_states_by_hand():
    """Two memories name 1 and two name 2: one of them stays, the other observes what no location shows."""
    noisy = strange_states(np.random.default_rng(0), np.repeat(BANK, 400, 0), np.repeat(STATES, 400, 0), range(10))
    changed = [tuple(np.flatnonzero((bank != BANK[0]).any(1))) for bank in noisy]
    assert set(changed) == {(0,), (1,), (2,)}
    # Of 2, the bump or the way there changes; of 1, the way there or the way on.
    cells = {
        (0,): {(0, 0, s) for s in (7, 8, 9)},
        (1,): {(1, 0, s) for s in (7, 8, 9)} | {(s, 0, 2) for s in (7, 8, 9)},
        (2,): {(s, 0, s) for s in (7, 8, 9)},
    }
    for rows, expected in cells.items():
        assert {tuple(bank[rows[0]]) for bank, c in zip(noisy, changed, strict=True) if c == rows} == expected
    lonely = np.array([[[0, 0, 1], [2, 1, 3]]])
    assert (strange_states(np.random.default_rng(0), lonely, STATES, range(10)) == lonely).all()


@given(seed=st.integers(0, 10**6))
def test_training_banks_contradict_themselves_and_what_is_asked_stays_true(seed):
    """Of every bank that has two memories of some location, or one memory, something changes: a row more that starts as
    another one does and ends elsewhere, or one state named differently."""
    clean, noisy = (LatticeSource(ROOMS, noise=noise, rows=19) for noise in (0.0, 1.0))
    plain, problems = (source.draw(np.random.default_rng(seed), 40, 5) for source in (clean, noisy))
    for name in ("query", "truth", "masked", "unknown"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(problems, name))
    kinds = set()
    for before, after in zip(plain.memories.tolist(), problems.memories.tolist(), strict=True):
        before, after = ([tuple(row) for row in bank if row[0] >= 0] for bank in (before, after))
        named = [state for source, _, end in before for state in {source, end}]
        if len(after) > len(before):
            kinds.add("transition")
            assert after[:-1] == before and after[-1] not in before
            assert after[-1][:2] in [row[:2] for row in before]
            continue
        changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
        if not changed:
            assert max(named.count(state) for state in named) == 1  # nothing that could stay true
            continue
        kinds.add("states")
        names = [{one[i] for i in (0, 2) if one[i] != other[i]} for one, other in changed]
        assert all(one[1] == other[1] for one, other in changed)
        assert len(set.union(*names)) == 1
    assert kinds == {"transition", "states"}


def test_a_share_of_the_banks_contradicts_itself_and_evaluation_never_does():
    source = LatticeSource(ROOMS, noise=0.5, rows=19)
    plain = LatticeSource(ROOMS, rows=19)
    a, b = (s.draw(np.random.default_rng(0), 1000, 1).memories for s in (source, plain))
    assert (a != b).any((1, 2)).mean() == pytest.approx(0.5, abs=0.05)
    a, b = (s.draw_banks(np.random.default_rng(0), 20).transitions() for s in (source, plain))
    np.testing.assert_array_equal(a, b)


def test_noise_in_empty_and_in_full_banks():
    walks = LatticeSource(RoomConfig.random_wall(1, states=tuple(range(9))), "walk", noise=1.0)
    memories = walks.draw(np.random.default_rng(0), 300, 1).memories
    assert memories.shape == (300, 15, 3) and (memories[:, 0, 0] < 0).any()
    full = LatticeSource(RoomConfig.random_wall(2, states=tuple(range(30)), hidden=0.0), noise=1.0)
    memories = full.draw(np.random.default_rng(0), 300, 1).memories
    assert memories.shape == (300, 19, 3)  # one more than there may be transitions
    assert (memories[:, -1, 0] >= 0).mean() == pytest.approx(1 / 3, abs=0.1)


def test_errors():
    for options, why in (
        ({"noise": 1.5}, "noise must lie between 0 and 1, got 1.5"),
        ({"doubtful": -1.0}, "doubtful must lie between 0 and 1, got -1"),
        ({"rooms": RoomConfig(), "noise": 0.1}, "noise needs states that rooms lack"),
        ({"rooms": RegionConfig("square", (4, 4), 2, 9), "noise": 0.1}, "noise needs states that rooms lack"),
        ({"rooms": RegionConfig("square", (4, 4), 2, 9), "bank": "clusters"}, "clusters are drawn in .* RoomConfig"),
        ({"bank": "clusters", "context": 3}, "clusters are drawn in .* without context"),
        ({"bank": "clusters", "actions": "known"}, "clusters are drawn in .* with numbered actions"),
        ({"rooms": RoomConfig.random_wall(2, observed=9), "bank": "clusters"}, "in whole rooms"),
        ({"rooms": RoomConfig.random_wall(1), "bank": "clusters"}, "19 locations at least"),
        ({"noise": 0.5, "context": 2}, "banks with noise have no context, got 2"),
    ):
        with pytest.raises(ValueError, match=why):
            LatticeSource(**{"rooms": ROOMS, **options})
