"""Problems of MiniGrid's rooms: what the model is shown and what it should say."""

import numpy as np
import pytest

from eswm_gym.rooms import Kind
from eswm_gym.rooms.grid import (
    UNDECIDED,
    GridBankBatch,
    GridBatch,
    GridConfig,
    GridQueryBatch,
    GridSource,
    generate_grids,
)
from eswm_gym.rooms.transitions import ACTION, END, SOURCE, to_problems


def test_problems_by_hand():
    rooms = GridBatch.of(generate_grids(np.random.default_rng(0), 1, GridConfig()))
    pose = int(np.flatnonzero(rooms.free[0])[0])
    banks = GridBankBatch(rooms, np.array([[pose, -1]]), np.array([[1, -1]]))
    source, end = np.arange(25) % 9, np.arange(25) % 7 + 1
    row = np.concatenate([source, [2], end])
    seen_source, seen_end = source[::-1].copy(), np.where(end == 3, 5, end)  # of the same moves, with errors
    seen = np.concatenate([seen_source, [2], seen_end])
    queries = GridQueryBatch(
        np.tile(row, (1, 5, 1)),
        np.array([[SOURCE, ACTION, END, END, ACTION]]),
        np.array([[Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE, UNDECIDED, UNDECIDED]]),
        np.tile(seen, (1, 5, 1)),
    )
    memories, query, truth, masked, unknown = problems = to_problems(banks, queries, 4)
    assert all(part.dtype == np.int64 for part in problems)
    assert memories.shape == (1, 4, 51)
    assert memories[0, 0].tolist() == [*rooms.views[0, pose], 1, *rooms.views[0, rooms.targets[0, pose, 1]]]
    assert (memories[0, 1:] == -1).all()
    hidden = [-1] * 25
    before, after = [*hidden, 2, *seen_end], [*seen_source, 2, *hidden]
    between = [*seen_source, -1, *seen_end]
    assert query[0].tolist() == [before, between, after, after, between]
    assert truth.tolist() == [[row.tolist()] * 5]
    assert unknown.tolist() == [[0, 0, 1, -1, -1]]
    assert masked.tolist() == queries.masked.tolist()
    assert (queries.transitions == row).all() and (queries.shown == seen).all()  # as they were


@pytest.mark.parametrize("bank", ["cover", "walk"])
def test_batches(bank):
    source = GridSource(GridConfig(), bank, hidden=0.6)
    assert source.capacity == {"cover": 24, "walk": 80}[bank]
    assert (source.cells, source.n_actions) == (25, 3)
    memories, query, truth, masked, unknown = source.draw(np.random.default_rng(0), 12, 20)
    assert memories.shape == (12, source.capacity, 51) and query.shape == truth.shape == (12, 20, 51)
    assert masked.shape == unknown.shape == (12, 20) and set(unknown.ravel()) <= {-1, 0, 1}
    held = memories[..., 0] >= 0
    assert (memories[~held] == -1).all() and (memories[held] >= 0).all()
    for i in range(12):
        for one, true, m in zip(query[i].tolist(), truth[i].tolist(), masked[i].tolist(), strict=True):
            parts, of_truth = ([row[:25], row[25:26], row[26:]] for row in (one, true))
            assert parts.pop(m) == [-1] * (1 if m == ACTION else 25)
            assert min(true) >= 0 and max(true) <= 8 and true[25] <= 2
            of_truth.pop(m)
            assert parts == of_truth


def test_half_of_the_rooms_hide_a_region():
    source = GridSource(GridConfig(), "cover", hidden=0.6)
    banks = source.draw_banks(np.random.default_rng(0), 400)
    shown = banks.known().sum(1) / banks.rooms.visible.sum(1)
    assert 0.45 < (shown == 1).mean() < 0.75  # the last memory shows more than asked at times
    assert 0.4 <= shown.min() < 0.55
    whole = GridSource(GridConfig(), "cover").draw_banks(np.random.default_rng(0), 100)
    assert ((whole.known().sum(1) / whole.rooms.visible.sum(1)) == 1).mean() > 0.95


def test_walks_of_all_lengths():
    banks = GridSource(GridConfig(), "walk").draw_banks(np.random.default_rng(0), 300)
    held = (banks.pose >= 0).sum(1)
    assert held.min() == 0 and 40 < held.max() <= 80


def test_all_moves_of_rooms_of_different_size():
    """Every move from every free pose, once; what fills up a smaller room is a row that a model can read."""
    rooms = GridBatch.of(generate_grids(np.random.default_rng(0), 4, GridConfig()))
    nowhere = np.full((4, 1), -1)
    moves = GridBankBatch(rooms, nowhere, nowhere).moves()
    assert len(set((moves.start >= 0).sum(1).tolist())) > 1 and moves.n_places == rooms.free.shape[1]
    assert moves.transitions.min() >= 0
    for i in range(4):
        real = moves.start[i] >= 0
        rows = moves.transitions[i, real]
        cells = list(zip(moves.start[i, real].tolist(), rows[:, 25].tolist(), strict=True))
        assert cells == [(pose, action) for pose in np.flatnonzero(rooms.free[i]).tolist() for action in range(3)]
        for (pose, action), row, end in zip(cells, rows, moves.end[i, real], strict=True):
            assert end == rooms.targets[i, pose, action]
            assert row.tolist() == [*rooms.views[i, pose], action, *rooms.views[i, end]]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"bank": "dense"}, "bank must be one of .* got 'dense'"),
        ({"hidden": 1.5}, "hidden must lie between 0 and 1, got 1.5"),
        ({"hidden": float("nan")}, "got nan"),
    ],
)
def test_errors(options, why):
    with pytest.raises(ValueError, match=why):
        GridSource(GridConfig(), **options)
