"""Which queries a bank determines, by the rules told slowly, and how they are drawn."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from eswm_gym.rooms import Kind
from eswm_gym.rooms.grid import (
    PARTLY,
    UNDECIDED,
    GridBankBatch,
    GridBatch,
    GridConfig,
    cover_banks,
    draw_queries,
    generate_grids,
    move_kinds,
    pose_index,
    poses,
    views_of,
    walk_banks,
)
from eswm_gym.rooms.transitions import ACTION, END, SOURCE

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2


def rooms_of(n: int, seed: int = 0, kinds: int = 7, **kwargs) -> tuple[GridBatch, np.random.Generator]:
    """Random rooms with so many kinds of floor."""
    rng = np.random.default_rng(seed)
    return GridBatch.of(np.minimum(generate_grids(rng, n, GridConfig(**kwargs)), 1 + kinds).astype(np.int8)), rng


def empty_banks(rooms: GridBatch, n: int = 3) -> GridBankBatch:
    nothing = np.full((len(rooms), n), -1)
    return GridBankBatch(rooms, nothing, nothing)


def kinds_by_the_rules(grid: np.ndarray, memories: list) -> dict:
    """The kind of each query ((x, y, heading), action, masked component) in a room with (pose, action) remembered."""
    size = len(grid)
    views = views_of(grid[None])[0]
    free = [tuple(p) for p in poses(size).tolist() if grid[p[1], p[0]] != 1]
    view = {pose: tuple(views[pose_index(size, *pose)].tolist()) for pose in free}
    floor = {pose[:2] for pose in free}

    def move(pose, action):
        x, y, heading = pose
        dx, dy = AHEAD[heading]
        if action == FORWARD:
            return (x + dx, y + dy, heading) if (x + dx, y + dy) in floor else pose
        return x, y, (heading + (1 if action == RIGHT else 3)) % 4

    def sees(pose):
        x, y, heading = pose
        (ax, ay), (rx, ry) = AHEAD[heading], AHEAD[(heading + 1) % 4]
        at = {(i // 5 - 2, 4 - i % 5): kind for i, kind in enumerate(view[pose])}
        return {(x + r * rx + a * ax, y + r * ry + a * ay) for (r, a), kind in at.items() if kind and (r, a) != (0, 0)}

    sight = {pose: sees(pose) for pose in free}
    known = set().union(*(sight[pose] | sight[move(pose, action)] for pose, action in memories))
    times = Counter(view.values())
    placed = {pose: times[view[pose]] == 1 and len(sight[pose] & known & floor) >= 6 for pose in free}
    found = {}
    for pose in free:
        for action in range(3):
            end = move(pose, action)
            for masked in range(3):
                given = {SOURCE: [end], ACTION: [pose, end], END: [pose]}[masked]
                solved = all(placed[p] for p in given)
                hidden = set()
                if masked == ACTION:
                    solved &= sum(view[move(pose, other)] == view[end] for other in range(3)) == 1
                else:
                    asked = pose if masked == SOURCE else end
                    hidden = sight[asked] - known - sight[given[0]]
                    solved &= not hidden
                if masked == SOURCE:
                    solved &= sum(move(other, action) == end for other in free) == 1
                kind = UNDECIDED
                if len(hidden & floor) >= 3:
                    kind = Kind.UNSOLVABLE
                elif hidden:
                    kind = PARTLY
                elif solved:
                    kind = Kind.SEEN if (pose, action) in memories else Kind.UNSEEN
                found[pose, action, masked] = kind
    return found


def draw_some_banks(name: str) -> GridBankBatch:
    if name == "cover":
        rooms, rng = rooms_of(3)
        return cover_banks(rng, rooms)
    if name == "half":
        rooms, rng = rooms_of(3, 1, walls=(5, 9))
        return cover_banks(rng, rooms, 0.5)
    if name == "walk":
        rooms, rng = rooms_of(3, 2)
        return walk_banks(rng, rooms, np.array([0, 6, 40]))
    if name == "alike":  # two kinds of floor in small rooms: many poses look the same
        rooms, rng = rooms_of(4, 3, kinds=2, size=6, walls=(0, 2), wall_length=(1, 2))
        return walk_banks(rng, rooms, np.full(4, 40))
    return empty_banks(rooms_of(2)[0])


@pytest.mark.parametrize("name", ["cover", "half", "walk", "alike", "empty"])
def test_kinds_are_those_of_the_rules(name):
    banks = draw_some_banks(name)
    size = banks.rooms.grids.shape[1]
    found = move_kinds(banks)
    assert found.shape == (len(banks.rooms), 4 * (size - 2) ** 2, 3, 3)
    where = [tuple(p) for p in poses(size).tolist()]
    for i, grid in enumerate(banks.rooms.grids):
        held = banks.pose[i] >= 0
        memories = [(where[p], int(a)) for p, a in zip(banks.pose[i][held], banks.action[i][held], strict=True)]
        rules = kinds_by_the_rules(grid, memories)
        for (pose, action, masked), kind in rules.items():
            assert found[i, pose_index(size, *pose), action, masked] == kind, (i, pose, action, masked)
        walls = [n for n, (x, y, _) in enumerate(where) if grid[y, x] == 1]
        assert (found[i, walls] == UNDECIDED).all()


def test_banks_above_have_all_kinds_of_query():
    """Or the test of the rules would say little."""
    counts = Counter()
    for name in ("cover", "half", "walk", "alike"):
        banks = draw_some_banks(name)
        counts += Counter(move_kinds(banks)[banks.rooms.free].ravel().tolist())
    assert all(counts[kind] > 50 for kind in (PARTLY, UNDECIDED, Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE)), counts


# Drawing


def test_queries_are_true_and_of_their_kind():
    rooms, rng = rooms_of(20)
    banks = cover_banks(rng, rooms, np.linspace(0.3, 1, 20))
    queries = draw_queries(rng, banks, 40)
    assert queries.transitions.shape == (20, 40, 51)
    assert queries.masked.shape == queries.kind.shape == (20, 40)
    kinds = move_kinds(banks)
    for i in range(20):
        # Each whole transition, as bytes, and the kinds of the moves that look like this.
        true = {}
        for pose in np.flatnonzero(rooms.free[i]):
            for action in range(3):
                row = [*rooms.views[i, pose], action, *rooms.views[i, rooms.targets[i, pose, action]]]
                true.setdefault(tuple(map(int, row)), []).append(kinds[i, pose, action])
        for row, masked, kind in zip(queries.transitions[i], queries.masked[i], queries.kind[i], strict=True):
            assert any(k[masked] == kind for k in true[tuple(row.tolist())])


def test_shares_of_the_mix():
    rooms, rng = rooms_of(200)
    banks = cover_banks(rng, rooms, 0.6)
    kind = draw_queries(rng, banks, 200, mix=(0.5, 0.2, 0.1, 0.2)).kind
    share = [np.isin(kind, k).mean() for k in (Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE, (PARTLY, UNDECIDED))]
    np.testing.assert_allclose(share, [0.5, 0.2, 0.1, 0.2], atol=0.02)
    only = draw_queries(rng, banks, 20, mix=(1, 0, 0, 0)).kind
    assert (only == Kind.UNSEEN).all()


def test_within_a_share_each_query_is_equally_likely():
    """Each masked component too."""
    rooms, rng = rooms_of(1, 4)
    banks = cover_banks(rng, rooms)
    n = 60_000
    queries = draw_queries(rng, banks, n, mix=(1, 0, 0, 0))
    kinds = move_kinds(banks)[0]
    for masked in range(3):
        expected = (kinds[..., masked] == Kind.UNSEEN).sum() / (kinds == Kind.UNSEEN).sum()
        assert (queries.masked == masked).mean() == pytest.approx(expected, abs=0.01)
    drawn = Counter((row.tobytes(), int(m)) for row, m in zip(queries.transitions[0], queries.masked[0], strict=True))
    assert len(drawn) == (kinds == Kind.UNSEEN).sum()  # of views that are unique
    assert chisquare(list(drawn.values())).pvalue > 1e-4


def test_what_a_room_lacks_leaves_its_share_to_others():
    rooms, rng = rooms_of(5)
    queries = draw_queries(rng, empty_banks(rooms), 50)
    assert set(np.unique(queries.kind)) <= {PARTLY, UNDECIDED, Kind.UNSOLVABLE}
    assert (queries.kind == Kind.UNSOLVABLE).any()
    assert set(np.unique(queries.masked)) == {0, 1, 2}


def test_a_bank_without_rows():
    rooms, rng = rooms_of(2)
    assert (move_kinds(empty_banks(rooms, 0)) == move_kinds(empty_banks(rooms))).all()
    assert draw_queries(rng, empty_banks(rooms, 0), 3).transitions.shape == (2, 3, 51)


def test_the_last_room_and_the_first_draw_from_their_own():
    """One search draws for all rooms at once."""
    rooms, rng = rooms_of(65)
    queries = draw_queries(rng, cover_banks(rng, rooms), 30)
    for i in (0, 31, 64):
        views = {view.tobytes() for view in rooms.views[i][rooms.free[i]].astype(np.int64)}
        assert {row[:25].tobytes() for row in queries.transitions[i]} <= views


def test_same_seed_same_queries():
    rooms, rng = rooms_of(3)
    banks = cover_banks(rng, rooms)
    one, other = (draw_queries(np.random.default_rng(7), banks, 20) for _ in range(2))
    for name in ("transitions", "masked", "kind"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
