"""Where memories lie to each other, told by how their views overlap, against where they were in the room."""

from functools import cache

import numpy as np
import pytest
import torch

from eswm_gym.agents.baselines.overlap_only import OverlapOnly
from eswm_gym.rooms.grid import (
    GridBatch,
    GridConfig,
    cover_banks,
    generate_grids,
    pose_index,
    poses,
    rows_of,
    seen_cells,
    walk_banks,
    with_errors,
)
from eswm_gym.world_model import available, load_pretrained
from eswm_gym.world_model.localization import Localization, Located
from eswm_gym.world_model.overlap import classes_shown, split

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2


@cache
def localization() -> Localization:
    """With constants in place of what training finds."""
    return OverlapOnly().localization


def draw_banks(name, n=8, seed=0):
    rng = np.random.default_rng(seed)
    rooms = GridBatch.of(generate_grids(rng, n, GridConfig()))
    if name == "walk":
        return walk_banks(rng, rooms, rng.integers(1, 30, n))
    return cover_banks(rng, rooms, {"cover": 1.0, "half": 0.5}[name])


def memories_of(banks):
    return torch.from_numpy(banks.transitions())


def find(memories):
    return localization()(*split(memories))


def seen_from(a, b):
    """Pose b as (steps ahead, steps to the right, turns to the right) from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    dx, dy = b[0] - a[0], b[1] - a[1]
    return dx * ax + dy * ay, dx * rx + dy * ry, (b[2] - a[2]) % 4


def found_poses(located, i):
    """{view: (x, y, heading)} of the views of bank i that have a pose in its frame."""
    shape = localization().frame
    placed = np.flatnonzero((located.pose[i] < shape.n_poses).numpy() & (located.trust[i] > 0.5).numpy())
    return {int(view): tuple(shape.pose[located.pose[i, view]].tolist()) for view in placed}


def true_poses(banks, i):
    """The pose (x, y, heading) of each view of bank i in its room: the sources first, then the ends."""
    end = banks.rooms.targets[i, banks.pose[i], banks.action[i]]
    return [tuple(pose) for pose in poses(9)[np.concatenate([banks.pose[i], end])].tolist()]


def n_alike(one, other):
    """The number of views in two accounts of poses that lie to each other the same way in both, at most."""
    both = one.keys() & other.keys()
    same = [sum(seen_from(one[a], one[b]) == seen_from(other[a], other[b]) for b in both) for a in both]
    return max(same, default=0)


@pytest.mark.parametrize("name", ["cover", "half", "walk"])
def test_views_lie_to_each_other_as_they_do_in_the_room(name):
    banks = draw_banks(name)
    located = find(memories_of(banks))
    held = np.tile(banks.pose >= 0, 2)
    assert located.pose.shape == located.trust.shape == held.shape
    n_found = n_right = 0
    for i in range(len(held)):
        found = found_poses(located, i)
        assert set(found) <= set(np.flatnonzero(held[i]))
        n_found += len(found)
        n_right += n_alike(found, dict(enumerate(true_poses(banks, i))))
    assert n_found / held.sum() > 0.95 and n_right / n_found > 0.97
    assert (located.trust[torch.from_numpy(~held)] == 0).all()


def test_with_some_wrong_cells_most_views_are_still_found():
    banks = draw_banks("cover")
    rows = with_errors(np.random.default_rng(0), banks.transitions(), 0.05)
    located = find(torch.from_numpy(rows))
    right = [n_alike(found_poses(located, i), dict(enumerate(true_poses(banks, i)))) for i in range(len(rows))]
    assert sum(right) / (2 * (banks.pose >= 0).sum()) > 0.85


def test_the_order_of_memories_does_not_matter():
    banks = draw_banks("walk", 6)
    memories = memories_of(banks)
    n = memories.shape[1]
    order = np.random.default_rng(0).permutation(n)
    one, other = find(memories), find(memories[:, torch.from_numpy(order)])
    back = np.concatenate([order, n + order])  # of each view in the new order, its number in the old one
    for i in range(6):
        before = found_poses(one, i)
        after = {int(back[view]): pose for view, pose in found_poses(other, i).items()}
        assert before.keys() == after.keys() and n_alike(before, after) == len(before)


def test_rows_of_padding_change_nothing():
    banks = draw_banks("cover", 6)
    memories = memories_of(banks)
    n = memories.shape[1]
    padded = find(torch.cat([torch.full((6, 3, 51), -1), memories, torch.full((6, 4, 51), -1)], 1))
    kept = torch.cat([torch.arange(3, 3 + n), torch.arange(n + 10, 2 * n + 10)])
    alone = find(memories)
    assert torch.equal(padded.pose[:, kept], alone.pose)
    torch.testing.assert_close(padded.trust[:, kept], alone.trust)
    for i in range(6):
        single = find(memories[i : i + 1, torch.from_numpy(banks.pose[i] >= 0)])
        assert list(found_poses(single, 0).values()) == list(found_poses(alone, i).values())


@pytest.mark.parametrize("n", [0, 1, 5])
def test_an_empty_bank_places_nothing(n):
    empty = find(torch.full((2, n, 51), -1))
    assert not empty.trust.any()
    view = classes_shown(memories_of(draw_banks("cover", 2))[:, :3, :25])
    row, p = localization().locate(empty, view)
    assert row.shape == p.shape == (2, 3, 3) and p.isfinite().all() and (p < 0.01).all()
    assert not localization().votes(empty, row, p).any()


def test_one_memory_is_the_frame():
    memories = memories_of(draw_banks("cover", 4))[:, :1]
    located, shape = find(memories), localization().frame
    assert (located.pose[:, 0] == shape.origin).all() and (located.trust == 1).all()
    there = {LEFT: (0, 0, 3), RIGHT: (0, 0, 1), FORWARD: (1, 0, 0)}
    for action, pose in zip(memories[:, 0, 25].tolist(), located.pose[:, 1].tolist(), strict=True):
        assert tuple(shape.pose[pose].tolist()) == there[action]


def test_a_step_into_a_wall_is_no_motion():
    grid = np.pad(np.random.default_rng(0).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
    room = GridBatch.of(grid[None])
    at_the_wall, before_it = (pose_index(9, 4, y, 3) for y in (1, 2))  # looking up
    bump, step = (
        torch.from_numpy(rows_of(room, np.array([[pose]]), np.array([[FORWARD]]))) for pose in (at_the_wall, before_it)
    )
    shape = localization().frame
    assert find(bump).pose.tolist() == [[shape.origin] * 2]
    assert find(step).pose.tolist() == [[shape.origin, int(shape.moved[FORWARD, shape.origin])]]
    both = torch.cat([bump, step])[:, 0]
    assert localization().is_blocked(both[:, :25], both[:, 26:]).tolist() == [True, False]
    hidden = step.clone()  # something that no view shows was in the way
    hidden[..., 26:] = hidden[..., :25]
    assert localization().is_blocked(hidden[:, 0, :25], hidden[:, 0, 26:]).tolist() == [True]


def test_what_memories_show_at_a_pose():
    """Where the pose of a view is known, the votes are what the memories show of its cells in the room."""
    banks = draw_banks("cover", 5)
    located, known, rooms = find(memories_of(banks)), banks.known(), banks.rooms
    right = asked = 0
    for i in range(5):
        overlap = (rooms.sight[i] & known[i] & rooms.floor[i]).sum(1)
        chosen = np.flatnonzero(rooms.unique[i] & (overlap >= 10))
        views = torch.from_numpy(rooms.views[i, chosen].astype(np.int64))
        bank = Located(*(part[i : i + 1] for part in located))
        row, p = localization().locate(bank, classes_shown(views)[None])
        assert (p[0, :, 0] > 0.9).float().mean() > 0.9
        votes = localization().votes(bank, row, p)[0, :, :, :8]  # but for own cells, whose kind is not seen
        assert votes.shape == (len(chosen), 25, 8)
        cells = seen_cells(9)[chosen]
        shown = np.append(known[i], False)[cells]
        classes = np.append(rooms.grids[i], 0)[cells]
        right += ((votes.sum(2) > 0.5) & (votes.argmax(2) + 1 == torch.from_numpy(classes)))[shown].sum()
        asked += shown.sum()
    assert asked > 3000 and right / asked > 0.97


def test_banks_of_a_batch_do_not_meet():
    memories = memories_of(draw_banks("cover", 5))
    together = find(memories)
    for i in range(5):
        alone = find(memories[i : i + 1])
        assert torch.equal(alone.pose[0], together.pose[i])
        torch.testing.assert_close(alone.trust[0], together.trust[i])


def test_as_born_it_knows_no_pose_but_that_of_the_frame():
    memories = memories_of(draw_banks("cover", 4))
    located = Localization(9)(*split(memories))
    assert ((located.trust > 0.5).sum(1) == 2).all()  # source and end of one memory


def walked(start, actions, seed=0):
    """A walk from a pose (x, y, heading) in a room of coloured floors without walls in it; and the poses, by hand."""
    grid = np.pad(np.random.default_rng(seed).integers(2, 9, (7, 7)), 1, constant_values=1).astype(np.int8)
    at = [start]
    for action in actions:
        x, y, heading = at[-1]
        if action == FORWARD:
            ahead = x + AHEAD[heading][0], y + AHEAD[heading][1]
            at.append((*ahead, heading) if all(1 <= z <= 7 for z in ahead) else at[-1])
        else:
            at.append((x, y, (heading + (1 if action == RIGHT else 3)) % 4))
    number = np.array([[pose_index(9, *pose) for pose in at[:-1]]])
    rows = rows_of(GridBatch.of(grid[None]), number, np.array([actions]))
    return torch.from_numpy(rows), at


@pytest.mark.parametrize(
    ("start", "actions"),
    [
        ((4, 4, 3), [FORWARD] * 5),  # the last two into the wall
        ((1, 1, 0), [FORWARD, FORWARD, RIGHT, FORWARD, LEFT, LEFT, LEFT, FORWARD, FORWARD, FORWARD, LEFT, FORWARD]),
        ((7, 3, 1), [LEFT, FORWARD, RIGHT, FORWARD, FORWARD, RIGHT, FORWARD, RIGHT, RIGHT, RIGHT, RIGHT, FORWARD]),
    ],
)
def test_poses_along_a_walk(start, actions):
    walk, at = walked(start, actions)
    located, shape = localization().follow(*split(walk)), localization().frame
    found = [tuple(pose) for pose in shape.pose[located.pose[0]].tolist()]
    assert found == [seen_from(start, pose) for pose in at[:-1]]
    assert (located.trust == 1).all() and torch.equal(located.shown, classes_shown(walk[..., :25]))
    assert len(set(at)) < len(at)  # some step was blocked, or it came back


def test_where_a_walk_leads_whose_end_is_not_known():
    """A last row without an end adds the pose where the row before it ended."""
    walk, at = walked((4, 4, 3), [FORWARD, LEFT])
    last = torch.cat([walk[:, -1, 26:], torch.full((1, 1), LEFT), torch.full((1, 25), -1)], 1)
    located = localization().follow(*split(torch.cat([walk, last[:, None]], 1)))
    found = [tuple(pose) for pose in localization().frame.pose[located.pose[0]].tolist()]
    assert found == [seen_from(at[0], pose) for pose in at] == [(0, 0, 0), (1, 0, 0), (1, 0, 3)]


@pytest.mark.parametrize(("name", "side"), [(None, 5), (None, 7), ("minigrid", 5), ("minigrid", 7), ("minigrid", 9)])
def test_a_walk_where_every_view_is_the_same(name, side):
    """Nothing but empty floor as far as one sees; then a wall, and a step into it."""
    if name and name not in available():
        pytest.skip("no such model yet")
    find = load_pretrained(name).localization if name else localization()
    blank = np.full((side, side), 2)
    wall = blank.copy()
    wall[:, -2:], wall[:, :-2], wall[side // 2, -1] = 1, 0, 2  # right in front, and at both sides
    moves = [(blank, FORWARD, blank)] * 3 + [(blank, LEFT, blank), (blank, FORWARD, blank), (blank, RIGHT, wall)]
    moves += [(wall, FORWARD, wall), (wall, RIGHT, blank)]
    rows = torch.tensor(np.array([[*one.ravel(), action, *other.ravel()] for one, action, other in moves]))[None]
    located = find.follow(*split(rows))
    expected = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (3, 0, 3), (3, -1, 3), (3, -1, 0), (3, -1, 0)]
    assert [tuple(pose) for pose in find.frame.pose[located.pose[0]].tolist()] == expected


def test_a_walk_may_leave_the_frame():
    """A room of 9 x 9 cells has steps of up to 6 cells; farther away nothing is known."""
    blank = [2] * 25
    rows = torch.tensor([[*blank, FORWARD, *blank]] * 9)[None]
    located = localization().follow(*split(rows))
    assert located.trust.tolist() == [[1.0] * 7 + [0.0] * 2]


def test_walks_of_a_batch_do_not_meet():
    one, other = (walked(start, [FORWARD, LEFT, FORWARD])[0] for start in ((1, 1, 0), (5, 5, 2)))
    together = localization().follow(*split(torch.cat([one, other])))
    for i, walk in enumerate((one, other)):
        assert torch.equal(together.pose[i], localization().follow(*split(walk)).pose[0])
