"""Views with errors: what is wrong in them, what is not, and what counts as true all the same."""

from dataclasses import replace

import numpy as np
import pytest

from eswm_gym.rooms.grid import (
    HERE,
    LOOK,
    N_CLASSES,
    UNSEEN,
    GridBatch,
    GridConfig,
    GridSource,
    cover_banks,
    draw_queries,
    generate_grids,
    with_errors,
)
from eswm_gym.rooms.transitions import END, to_problems

VIEWS = np.random.default_rng(0).integers(1, N_CLASSES, (2, 2000, 25))
ROWS = np.concatenate([VIEWS, np.full((2, 2000, 1), 2), VIEWS[:, ::-1]], 2)
OTHERS = np.arange(25) != HERE
STATES = np.concatenate([OTHERS, [False], OTHERS])  # the same cells of a transition


def seen(rows, share, seed=0):
    return with_errors(np.random.default_rng(seed), rows, share)


def test_without_errors_rows_are_as_they_were():
    for rows in (ROWS, VIEWS):
        np.testing.assert_array_equal(seen(rows, 0.0), rows)
        np.testing.assert_array_equal(seen(rows, np.zeros(2)), rows)


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_half_of_the_errors_are_other_classes_and_half_are_unseen(share):
    shown = seen(VIEWS, share)
    unseen, wrong = (shown == UNSEEN)[..., OTHERS], ((shown != UNSEEN) & (shown != VIEWS))[..., OTHERS]
    assert unseen.mean() == pytest.approx(share / 2, abs=0.01)
    assert wrong.mean() == pytest.approx(share / 2, abs=0.01)
    np.testing.assert_array_equal(shown[..., HERE], VIEWS[..., HERE])
    assert shown.min() >= 0 and shown.max() < N_CLASSES
    if share == 1:  # every class is as likely as any other to be taken for this one
        counts = np.array([np.bincount(shown[wrong_of(k, shown)], minlength=N_CLASSES) for k in range(1, N_CLASSES)])
        assert not counts[:, 0].any() and not np.diag(counts[:, 1:]).any()
        expected = wrong.sum() / 8 / 7
        off_diagonal = counts[:, 1:][~np.eye(8, dtype=bool)]
        assert abs(off_diagonal - expected).max() < 6 * expected**0.5


def wrong_of(kind, shown):
    """Where something else is shown of a cell of this class."""
    at = (kind == VIEWS) & (shown != kind) & (shown != UNSEEN)
    at[..., HERE] = False
    return at


def test_what_is_unseen_may_be_taken_for_something():
    nothing = np.full((1, 4000, 25), UNSEEN)
    shown = seen(nothing, 0.2)
    assert (shown[..., OTHERS] != UNSEEN).mean() == pytest.approx(0.1, abs=0.01)
    assert set(np.unique(shown)) == set(range(N_CLASSES))


def test_both_views_of_transitions_have_errors_of_their_own_and_actions_have_none():
    shown = seen(ROWS, 0.2)
    assert (shown[..., 25] == 2).all()
    before, after = (shown != ROWS)[..., :25], (shown != ROWS)[..., 26:]
    for view in (before, after):
        assert view[..., OTHERS].mean() == pytest.approx(0.2, abs=0.01)
        assert not view[..., HERE].any()
    assert (before & after)[..., OTHERS].mean() == pytest.approx(0.04, abs=0.01)


def test_padding_stays_padding_and_nothing_else_is_changed_in_place():
    rows = ROWS.copy()
    rows[:, ::2] = -1
    before = rows.copy()
    shown = seen(rows, 0.5)
    assert (shown[:, ::2] == -1).all() and (shown[:, 1::2] >= 0).all()
    np.testing.assert_array_equal(rows, before)


def test_a_share_for_each_room():
    shown = seen(VIEWS, np.array([0.0, 0.4]))
    wrong = (shown != VIEWS)[..., OTHERS].mean((1, 2))
    assert wrong[0] == 0 and wrong[1] == pytest.approx(0.4, abs=0.02)


def test_the_same_seed_gives_the_same_errors():
    np.testing.assert_array_equal(seen(ROWS, 0.3), seen(ROWS, 0.3))
    assert (seen(ROWS, 0.3) != seen(ROWS, 0.3, seed=1)).any()


# Banks, queries and problems


def share_of(wrong, true):
    """The share of wrong ones among the cells that rows truly show, without the agent's own."""
    return wrong[..., STATES][true[..., STATES] != UNSEEN].mean()


def noisy_banks(share, n=20, seed=3):
    rng = np.random.default_rng(0)
    banks = cover_banks(rng, GridBatch.of(generate_grids(rng, n, GridConfig())))
    return replace(banks, wrong_cells=share, seed=seed)


def test_a_bank_shows_the_same_errors_whenever_it_is_read():
    banks = noisy_banks(0.2)
    true, shown = replace(banks, wrong_cells=0.0).transitions(), banks.transitions()
    np.testing.assert_array_equal(shown, banks.transitions())
    held = banks.pose >= 0
    wrong = (shown != true)[held]
    assert share_of(wrong, true[held]) == pytest.approx(0.2, abs=0.02)
    assert not wrong[:, [HERE, 25, 26 + HERE]].any() and (shown[~held] == -1).all()
    assert (replace(banks, seed=4).transitions() != shown).any()
    np.testing.assert_array_equal(banks.moves().transitions, noisy_banks(0.0).moves().transitions)  # which are true
    np.testing.assert_array_equal(banks.known(), noisy_banks(0.0).known())


def test_queries_are_shown_with_errors_and_the_truth_has_none():
    banks = noisy_banks(0.2)
    queries = draw_queries(np.random.default_rng(1), banks, 30)
    rooms, wrong = banks.rooms, queries.shown != queries.transitions
    assert share_of(wrong, queries.transitions) == pytest.approx(0.2, abs=0.01)
    assert not wrong[..., [HERE, 25, 26 + HERE]].any()
    for i in range(20):  # every true transition is one that the room has
        every = {
            (*rooms.views[i, pose].tolist(), action, *rooms.views[i, rooms.targets[i, pose, action]].tolist())
            for pose in np.flatnonzero(rooms.free[i])
            for action in range(3)
        }
        assert {tuple(row) for row in queries.transitions[i].tolist()} <= every
    clean = draw_queries(np.random.default_rng(1), noisy_banks(0.0), 30)
    np.testing.assert_array_equal(clean.shown, clean.transitions)
    problems = to_problems(banks, queries, 24)
    given = problems.query >= 0
    np.testing.assert_array_equal(problems.query[given], queries.shown[given])
    np.testing.assert_array_equal(problems.truth, queries.transitions)


def test_a_look_asks_for_the_view_itself():
    banks = noisy_banks(0.2)
    queries = draw_queries(np.random.default_rng(1), banks, 60, looks=0.3)
    look = queries.transitions[..., 25] == LOOK
    assert look.mean() == pytest.approx(0.3, abs=0.05)
    asked, shown = queries.transitions[look], queries.shown[look]
    np.testing.assert_array_equal(asked[:, :25], asked[:, 26:])
    assert share_of(asked != shown, asked) == pytest.approx(0.2, abs=0.02)
    assert (queries.masked[look] == END).all()
    assert (queries.unknown[look] == 0).all()  # it is known: "I don't know" is wrong
    assert (queries.transitions[~look][:, 25] < 3).all()
    plain = draw_queries(np.random.default_rng(1), banks, 60)
    assert (plain.transitions[..., 25] < 3).all()
    every = draw_queries(np.random.default_rng(1), banks, 9, looks=1.0)
    assert (every.transitions[..., 25] == LOOK).all()


def test_a_source_draws_shares_and_looks():
    source = GridSource(GridConfig(), "walk", wrong_cells=(0.1, 0.3), looks=0.2, steps=12)
    assert source.capacity == 12
    banks = source.draw_banks(np.random.default_rng(0), 200)
    assert banks.pose.shape[1] <= 12 and (banks.pose >= 0).sum(1).max() > 6
    shares = np.asarray(banks.wrong_cells)
    assert shares.shape == (200,) and 0.1 <= shares.min() < 0.12 and 0.28 < shares.max() <= 0.3
    queries = source.ask(np.random.default_rng(0), banks, 20)
    wrong = (queries.shown != queries.transitions).mean((1, 2)) * 51 / 48
    assert np.corrcoef(wrong, shares)[0, 1] > 0.8
    assert (queries.transitions[..., 25] == LOOK).mean() == pytest.approx(0.2, abs=0.03)
    one, other = (source.draw(np.random.default_rng(5), 4, 6) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
