"""The tables of how views lie to each other, against positions counted by hand."""

import numpy as np
import pytest
import torch

from eswm_gym.rooms.grid import HERE, GridBatch, GridConfig, generate_grids, poses
from eswm_gym.world_model.overlap import (
    BACK,
    INVERSE,
    N_KINDS,
    N_MOTIONS,
    OWN,
    STAY,
    classes_shown,
    frame,
    kinds,
    moved_by,
    relative_poses,
    shifted,
    split,
)

CPU = torch.device("cpu")
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2
STEPS = {LEFT: (0, 3), RIGHT: (0, 1), FORWARD: (1, 0), BACK: (-1, 0), STAY: (0, 0)}  # steps ahead, turns to the right


def step(pose, motion):
    (x, y, heading), (ahead, turns) = pose, STEPS[motion]
    return x + ahead * AHEAD[heading][0], y + ahead * AHEAD[heading][1], (heading + turns) % 4


def cells_of(pose, side=5):
    """Where each of the cells lies that one looks at from a pose: columns from left to right, the farthest first."""
    x, y, heading = pose
    (ax, ay), (rx, ry) = AHEAD[heading], AHEAD[(heading + 1) % 4]
    at = [(i // side - side // 2, side - 1 - i % side) for i in range(side * side)]
    return [(x + right * rx + ahead * ax, y + right * ry + ahead * ay) for right, ahead in at]


def seen_from(a, b):
    """Pose b as (steps ahead, steps to the right, turns to the right) from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    dx, dy = b[0] - a[0], b[1] - a[1]
    return dx * ax + dy * ay, dx * rx + dy * ry, (b[2] - a[2]) % 4


def placed_at(a, relative):
    """The pose that is seen so from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    ahead, right, turns = relative
    return a[0] + ahead * ax + right * rx, a[1] + ahead * ay + right * ry, (a[2] + turns) % 4


def random_poses(n, reach, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.integers(-reach, reach + 1, (n, 2)), rng.integers(4, size=(n, 1))], 1)


def test_motions():
    for pose in random_poses(50, 9).tolist():
        for motion in range(N_MOTIONS):
            there = moved_by(tuple(pose), motion)
            assert there == step(tuple(pose), motion)
            assert moved_by(there, int(INVERSE[motion])) == tuple(pose)


@pytest.mark.parametrize("side", [5, 7])
def test_the_poses_at_which_views_share_cells_and_which_cells(side):
    n_cells, reach = side * side, 2 * side - 1
    table, here = relative_poses(CPU, n_cells), {cell: i for i, cell in enumerate(cells_of((0, 0, 0), side))}
    shared = {}
    for x in range(-reach, reach + 1):
        for y in range(-reach, reach + 1):
            for heading in range(4):
                shift = [here.get(cell, n_cells) for cell in cells_of((x, y, heading), side)]
                if min(shift) < n_cells:
                    shared[x, y, heading] = shift
    listed = [tuple(pose) for pose in table.pose.tolist()]
    assert len(set(listed)) == len(listed) and set(listed) == set(shared)
    assert table.shift.tolist() == [shared[pose] for pose in listed] + [[n_cells] * n_cells]
    enough = [sum(i < n_cells for i in shared[pose]) >= 4 for pose in listed]
    assert enough == [True] * table.n_compared + [False] * (len(listed) - table.n_compared)
    assert [listed[row] for row in table.motion.tolist()] == [step((0, 0, 0), motion) for motion in range(N_MOTIONS)]
    assert table.near.tolist() == [here[cell] for cell in cells_of((0, 0, 0))]


def test_views_of_seven_by_seven_cells_by_hand():
    """Numbered from 0 at the far left, column by column; the agent looks from cell 27, and 26 lies in front."""
    table = relative_poses(CPU, 49)
    near = [[9, 10, 11, 12, 13], [16, 17, 18, 19, 20], [23, 24, 25, 26, 27], [30, 31, 32, 33, 34], [37, 38, 39, 40, 41]]
    assert table.near.reshape(5, 5).tolist() == near
    ahead, left, stay = (table.shift[table.motion[motion]].tolist() for motion in (FORWARD, LEFT, STAY))
    assert stay == list(range(49))
    assert ahead == [49 if i % 7 == 0 else i - 1 for i in range(49)]  # the farthest row is new
    assert [left[cell] for cell in (27, 26, 25, 24)] == [27, 20, 13, 6]  # what lies ahead now lay to the left
    assert [left[cell] for cell in (27, 34, 41, 48)] == [27, 26, 25, 24]  # to the right now, ahead before
    assert left[:21] == [49] * 21 and left[21:24] == [49] * 3  # behind it, or too far to the left
    assert left[45] == 3  # the farthest in the column to the left


def test_how_one_pose_is_seen_from_another():
    table = relative_poses(CPU, 25)
    one, other = random_poses(300, 7), random_poses(300, 7, seed=1)
    row = table.between(torch.from_numpy(one), torch.from_numpy(other))
    listed = {tuple(pose): i for i, pose in enumerate(table.pose.tolist())}
    expected = [listed.get(seen_from(a, b), len(listed)) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    assert row.tolist() == expected
    assert 20 < sum(i < len(listed) for i in expected) < 280
    wide = table.between(torch.from_numpy(one)[:, None], torch.from_numpy(other[:9]))
    assert wide.shape == (300, 9) and wide.diagonal().tolist() == expected[:9]


@pytest.mark.parametrize("size", [4, 6, 9])
def test_a_frame_holds_a_room_wherever_in_it_the_frame_begins(size):
    shape, reach = frame(size, CPU), size - 3
    listed = [tuple(pose) for pose in shape.pose[:-1].tolist()]
    every = {(x, y, h) for x in range(-reach, reach + 1) for y in range(-reach, reach + 1) for h in range(4)}
    assert len(listed) == shape.n_poses == len(every) and set(listed) == every
    assert listed[shape.origin] == (0, 0, 0)
    assert shape.row(shape.pose).tolist() == [*range(shape.n_poses), shape.n_poses]
    number = {pose: i for i, pose in enumerate(listed)}
    for motion in range(N_MOTIONS):
        there = [number.get(step(pose, motion), shape.n_poses) for pose in listed]
        assert shape.moved[motion].tolist() == [*there, shape.n_poses]


def test_poses_in_a_frame_one_after_the_other():
    shape, table = frame(9, CPU), relative_poses(CPU, 25)
    row = torch.tensor([[shape.origin, 0, 17], [300, shape.n_poses - 1, shape.n_poses]])
    found = shape.compose(row, table.pose)
    number = {tuple(pose): i for i, pose in enumerate(shape.pose[:-1].tolist())}
    for at, rows in zip(row.flatten().tolist(), found.flatten(0, 1).tolist(), strict=True):
        for relative, composed in zip(table.pose.tolist(), rows, strict=True):
            pose = placed_at(shape.pose[at].tolist(), relative)
            assert composed == (number.get(pose, shape.n_poses) if at < shape.n_poses else shape.n_poses)


def test_views_of_a_room_agree_where_they_overlap():
    rooms = GridBatch.of(generate_grids(np.random.default_rng(0), 1, GridConfig()))
    free = np.flatnonzero(rooms.free[0])
    where, views = torch.from_numpy(poses(9)[free]), torch.from_numpy(rooms.views[0, free].astype(np.int64))
    shown, table = classes_shown(views), relative_poses(CPU, 25)
    row = table.between(where[:, None], where)  # of each pose, as seen from each
    compared = 0
    for i in range(len(free)):
        there = shifted(shown[i], row[i])
        both = (there > 0) & (shown > 0) & (there != OWN) & (shown != OWN)
        assert (there[both] == shown[both]).all()
        compared += int(both.sum())
    assert compared > 10_000


def test_what_a_view_shows():
    view = torch.arange(25)[None].repeat(3, 1) % 9
    view[1] = -1
    shown = classes_shown(view)
    assert shown[0].tolist() == [OWN if i == HERE else i % 9 for i in range(25)]
    assert shown[1].tolist() == [0] * 25
    assert (view[1] == -1).all() and view[0, HERE] == HERE % 9  # as they were
    kind = kinds(shown)
    assert kind.shape == (3, 25, N_KINDS) and kind.dtype == torch.float
    assert kind.sum(2)[0].tolist() == [float(i == HERE or i % 9 > 0) for i in range(25)]
    assert not kind[1].any()
    assert kind[0, HERE].argmax() == OWN - 1 and kind[0, 8].argmax() == 7


def test_the_parts_of_transitions():
    rows = torch.arange(2 * 51).view(1, 2, 51)
    source, action, end = split(rows)
    assert source[0, 1].tolist() == list(range(51, 76)) and action.tolist() == [[25, 76]]
    assert end[0, 0].tolist() == list(range(26, 51))
