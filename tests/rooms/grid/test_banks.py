"""Memory banks of MiniGrid's rooms against what a plain walk through the room shows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eswm_gym.rooms.grid import (
    COVER_BANK_SIZE,
    GridBatch,
    GridConfig,
    cover_bank,
    cover_banks,
    generate_grids,
    pose_index,
    poses,
    views_of,
    walk_banks,
)

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2
seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=15, deadline=None)


def rooms_of(n: int = 3, seed: int = 0, **kwargs) -> tuple[GridBatch, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return GridBatch.of(generate_grids(rng, n, GridConfig(**kwargs))), rng


class Told:
    """One room, told by the rules alone, except for its views, which are MiniGrid's (see test_views)."""

    def __init__(self, grid: np.ndarray) -> None:
        self.grid, self.size = grid, len(grid)
        self.views = views_of(grid[None])[0]

    def end(self, pose, action):
        x, y, heading = pose
        if action != FORWARD:
            return x, y, (heading + (1 if action == RIGHT else -1)) % 4
        dx, dy = AHEAD[heading]
        return pose if self.grid[y + dy, x + dx] == 1 else (x + dx, y + dy, heading)

    def view(self, pose):
        return self.views[pose_index(self.size, *pose)].tolist()

    def sees(self, pose):
        """The cells (x, y) whose class it sees; its own is not among them."""
        x, y, heading = pose
        (ax, ay), (rx, ry) = AHEAD[heading], AHEAD[(heading + 1) % 4]
        cells = set()
        for i, kind in enumerate(self.view(pose)):
            right, ahead = i // 5 - 2, 4 - i % 5
            if kind and (right, ahead) != (0, 0):
                cells.add((x + right * rx + ahead * ax, y + right * ry + ahead * ay))
        return cells

    def shows(self, pose, action):
        return self.sees(pose) | self.sees(self.end(pose, action))

    def row(self, pose, action):
        return [*self.view(pose), action, *self.view(self.end(pose, action))]

    @property
    def free(self):
        return [tuple(p) for p in poses(self.size).tolist() if self.grid[p[1], p[0]] != 1]


def moves(banks, i):
    """The (pose, action) of each transition of bank i, without its padding."""
    where = poses(banks.rooms.grids.shape[1]).tolist()
    return [(tuple(where[p]), int(a)) for p, a in zip(banks.pose[i], banks.action[i], strict=True) if p >= 0]


def check_truth(banks):
    """Each row is what the move shows, rows of -1 are where there is no move, and `known` is what all rows show."""
    bank, known = banks.transitions(), banks.known()
    assert bank.dtype == np.int64 and bank.shape == (*banks.pose.shape, 51)
    for i, grid in enumerate(banks.rooms.grids):
        told = Told(grid)
        held = banks.pose[i] >= 0
        assert (bank[i][~held] == -1).all() and (banks.action[i][~held] == -1).all()
        found = moves(banks, i)
        assert len(set(found)) == len(found)
        assert {pose for pose, _ in found} <= set(told.free)
        assert bank[i][held].tolist() == [told.row(*move) for move in found]
        shown = set().union(*(told.shows(*move) for move in found))
        assert {(int(c) % told.size, int(c) // told.size) for c in np.flatnonzero(known[i])} == shown


def test_rooms():
    rooms, _ = rooms_of(4, walls=(5, 9))
    assert len(rooms) == 4
    for i, grid in enumerate(rooms.grids):
        told = Told(grid)
        visible = set().union(*map(told.sees, told.free))
        assert {(c % 9, c // 9) for c in np.flatnonzero(rooms.visible[i]).tolist()} == visible
        assert {(c % 9, c // 9) for c in np.flatnonzero(rooms.floor[i]).tolist()} == {p[:2] for p in told.free}
        for pose in told.free:
            ends = [pose_index(9, *told.end(pose, action)) for action in range(3)]
            assert rooms.targets[i, pose_index(9, *pose)].tolist() == ends


# Cover banks


@few
@given(seed=seeds, size=st.sampled_from([6, 9, 11]), share=st.sampled_from([0.3, 0.7, 1.0]))
def test_cover_banks_are_true_and_overlap(seed, size, share):
    rooms, rng = rooms_of(3, seed, size=size, walls=(0, 3), wall_length=(1, 3))
    banks = cover_banks(rng, rooms, share)
    check_truth(banks)
    assert banks.pose.shape == (3, COVER_BANK_SIZE)
    for i, grid in enumerate(rooms.grids):
        told = Told(grid)
        visible = set().union(*map(told.sees, told.free))
        floor = {pose[:2] for pose in told.free}
        found = moves(banks, i)
        assert (banks.pose[i][: len(found)] >= 0).all(), "padding comes last"
        seen, before = set(), set()
        for k, (pose, action) in enumerate(found):
            shows = told.shows(pose, action)
            assert told.end(pose, action) != pose, "a step into a wall shows nothing"
            assert shows - seen, "shows nothing new"
            assert len(shows & floor & (seen if k else shows)) >= (6 if k else 12)
            before, seen = seen, seen | shows
        assert len(before) < share * len(visible), "went on when it had shown enough"
        if len(seen) < share * len(visible) and len(found) < COVER_BANK_SIZE:  # stuck: no move fits any more
            for pose in told.free:
                for action in range(3):
                    shows = told.shows(pose, action)
                    bump = told.end(pose, action) == pose
                    assert bump or shows <= seen or len(shows & floor & (seen or shows)) < (6 if seen else 12)


def test_nearly_all_rooms_are_covered():
    rooms, rng = rooms_of(300)
    banks = cover_banks(rng, rooms)
    shown, visible = banks.known().sum(1), rooms.visible.sum(1)
    assert (shown == visible).mean() > 0.95
    assert (shown / visible).min() > 0.8
    assert 5 < (banks.pose >= 0).sum(1).mean() < 12


def test_a_share_for_each_room():
    rooms, rng = rooms_of(200)
    share = np.linspace(0.3, 1, 200)
    banks = cover_banks(rng, rooms, share)
    shown = banks.known().sum(1) / rooms.visible.sum(1)
    reached = shown >= share
    assert reached.mean() > 0.95
    assert 0 <= (shown - share)[reached].mean() < 0.2
    assert np.corrcoef(shown, share)[0, 1] > 0.8


def test_begins_anywhere_and_no_two_banks_are_alike():
    rooms, rng = rooms_of(1, walls=(0, 0))
    many = GridBatch.of(np.repeat(rooms.grids, 300, 0))
    banks = cover_banks(rng, many)
    assert len(np.unique(banks.pose[:, 0])) > 30
    assert len(np.unique(banks.pose, axis=0)) == 300


def test_a_room_with_too_little_to_see_has_an_empty_bank():
    corridor = np.ones((9, 9), np.int8)
    corridor[1, 1:3] = 2
    assert (cover_bank(corridor, np.random.default_rng(0)) == -1).all()


@given(seed=seeds)
@few
def test_same_seed_same_bank(seed):
    rooms, _ = rooms_of(2, seed)
    for draw in (cover_banks, lambda rng, rooms: walk_banks(rng, rooms, np.array([10, 30]))):
        one, other = (draw(np.random.default_rng(seed), rooms).transitions() for _ in range(2))
        np.testing.assert_array_equal(one, other)


def test_the_bank_of_one_layout():
    rooms, _ = rooms_of(2)
    bank = cover_bank(rooms.grids[1], np.random.default_rng(5))
    assert bank.shape == (24, 51) and bank.dtype == np.int64
    told = Told(rooms.grids[1])
    true = [told.row(pose, action) for pose in told.free for action in range(3)]
    held = bank[:, 0] >= 0
    assert held.any() and all(row in true for row in bank[held].tolist())
    assert (bank[~held] == -1).all() and not held[held.sum() :].any()


# Walks


@few
@given(seed=seeds, onward=st.sampled_from([0.0, 0.5, 1.0]))
def test_walks_are_true_and_no_longer_than_asked(seed, onward):
    rooms, rng = rooms_of(4, seed)
    steps = np.array([0, 1, 20, 60])
    banks = walk_banks(rng, rooms, steps, onward)
    check_truth(banks)
    assert banks.pose.shape == (4, 60)
    held = (banks.pose >= 0).sum(1)
    assert (held <= steps).all()
    assert held[:2].tolist() == [0, 1] and held[3] > 3
    assert (banks.pose[2, 20:] == -1).all()


@few
@given(seed=seeds)
def test_walks_hang_together(seed):
    rooms, rng = rooms_of(3, seed)
    banks = walk_banks(rng, rooms, np.full(3, 50))
    for i, grid in enumerate(rooms.grids):
        told, been = Told(grid), set()
        for k, (pose, action) in enumerate(moves(banks, i)):
            # What is left out was remembered before: each move starts where an earlier one, or the last, ended.
            assert k == 0 or pose in been
            been |= {pose, told.end(pose, action)}
            assert told.end(pose, action) != pose or action == FORWARD
        # Up to the first move that was left out, each one starts where the last one ended.
        first_gap = int(np.append(banks.pose[i] < 0, True).argmax())
        way = moves(banks, i)[:first_gap]
        assert first_gap >= 1
        assert all(told.end(*a) == b[0] for a, b in zip(way, way[1:], strict=False))


def test_walks_bump_now_and_then_and_only_at_walls():
    rooms, rng = rooms_of(100)
    banks = walk_banks(rng, rooms, np.full(100, 80))
    bumps = steps = 0
    for i, grid in enumerate(rooms.grids):
        told = Told(grid)
        for pose, action in moves(banks, i):
            if action == FORWARD:
                x, y, heading = pose
                wall = grid[y + AHEAD[heading][1], x + AHEAD[heading][0]] == 1
                assert (told.end(pose, action) == pose) == wall
                bumps, steps = bumps + wall, steps + 1
    assert 0.005 < bumps / steps < 0.1


@pytest.mark.parametrize("steps", [np.array([0, 0]), np.array([0, 5])])
def test_no_steps_no_memories(steps):
    rooms, rng = rooms_of(2)
    banks = walk_banks(rng, rooms, steps)
    assert banks.transitions().shape == (2, steps.max(), 51)
    assert (banks.transitions()[0] == -1).all()
    assert not banks.known()[0].any()
