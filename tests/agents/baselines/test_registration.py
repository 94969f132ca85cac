"""Where views lie to each other, told by a real room, and the map that they form."""

import numpy as np
import pytest
import torch

from eswm_gym.agents.baselines.registration import Registration, geometry, kinds_of, motion_of
from eswm_gym.rooms.grid import (
    HERE,
    GridBatch,
    GridConfig,
    cover_banks,
    generate_grids,
    pose_index,
    poses,
    rows_of,
    seen_cells,
    walk_banks,
)
from eswm_gym.world_model.overlap import BACK, STAY

AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LEFT, RIGHT, FORWARD = 0, 1, 2


def rooms_of(n: int, seed: int = 0, **kwargs):
    rng = np.random.default_rng(seed)
    return GridBatch.of(generate_grids(rng, n, GridConfig(**kwargs))), rng


def step(pose, motion):
    x, y, heading = pose
    dx, dy = AHEAD[heading]
    return {
        LEFT: (x, y, (heading + 3) % 4),
        RIGHT: (x, y, (heading + 1) % 4),
        FORWARD: (x + dx, y + dy, heading),
        BACK: (x - dx, y - dy, heading),
        STAY: pose,
    }[motion]


def seen_from(a, b):
    """Pose b as (steps ahead, steps to the right, turns to the right) from pose a."""
    (ax, ay), (rx, ry) = AHEAD[a[2]], AHEAD[(a[2] + 1) % 4]
    dx, dy = b[0] - a[0], b[1] - a[1]
    return dx * ax + dy * ay, dx * rx + dy * ry, (b[2] - a[2]) % 4


def map_pose(size, number):
    """(x, y, heading) on the map, from its middle: as many cells to either side as a room is wide inside, less one."""
    reach = size - 3
    cell, heading = divmod(int(number), 4)
    y, x = divmod(cell, 2 * reach + 1)
    return x - reach, y - reach, heading


def map_number(size, pose):
    x, y, heading = pose
    reach = size - 3
    return ((y + reach) * (2 * reach + 1) + x + reach) * 4 + heading


def draw_banks(name, n=40, seed=0, **kwargs):
    rooms, rng = rooms_of(n, seed, **kwargs)
    if name == "walk":
        return walk_banks(rng, rooms, rng.integers(1, 81, n))
    return cover_banks(rng, rooms, {"cover": 1.0, "half": 0.5}[name])


def memories_of(banks):
    return torch.from_numpy(banks.transitions())


# Tables


@pytest.mark.parametrize("size", [4, 9])
def test_moves_on_the_map(size):
    table = geometry(size)
    reach = size - 3
    assert table.n_poses == 4 * (2 * reach + 1) ** 2
    assert map_pose(size, table.origin) == (0, 0, 0)
    # At the origin, facing right.
    there = {LEFT: (0, 0, 3), RIGHT: (0, 0, 1), FORWARD: (1, 0, 0), BACK: (-1, 0, 0), STAY: (0, 0, 0)}
    assert {m: map_pose(size, table.moved[m, table.origin]) for m in there} == there
    for number in range(table.n_poses):
        for motion in range(5):
            x, y, heading = step(map_pose(size, number), motion)
            inside = abs(x) <= reach and abs(y) <= reach
            expected = map_number(size, (x, y, heading)) if inside else table.n_poses
            assert table.moved[motion, number] == expected


def test_cells_on_the_map():
    table = geometry(9)
    side = 21  # six cells to either side, and four more to see
    assert table.n_cells == side**2
    own = table.cells[:, HERE].tolist()
    assert own == [(y + 10) * side + x + 10 for x, y, _ in (map_pose(9, n) for n in range(table.n_poses))]
    # From the origin, facing right: the first row of a view is far ahead, the first column to the left, which is up.
    cells = table.cells[table.origin].reshape(5, 5)
    middle = 10 * side + 10
    assert cells[2].tolist() == [middle + ahead for ahead in (4, 3, 2, 1, 0)]
    assert cells[:, 4].tolist() == [middle + right * side for right in (-2, -1, 0, 1, 2)]
    assert table.cells.min() >= 0 and table.cells.max() < side**2
    assert (table.cells // side).max() == (table.cells % side).max() == side - 1


def test_what_two_views_share_is_the_same_in_both():
    rooms, _ = rooms_of(5)
    registration = Registration(9)
    shared = 0
    for i, grid in enumerate(rooms.grids):
        for pose in poses(9)[rooms.free[i]].tolist():
            view = torch.from_numpy(rooms.views[i, pose_index(9, *pose)].astype(np.int64))
            for motion in range(5):
                x, y, heading = step(pose, motion)
                if grid[y, x] == 1:
                    continue
                after = torch.from_numpy(rooms.views[i, pose_index(9, x, y, heading)].astype(np.int64))
                carried = registration.carry_over(view[None, None], torch.tensor([[motion]]))[0, 0]
                both = (carried > 0) & (after > 0)
                both[HERE] = False
                assert (carried[both] == after[both]).all()
                shared += int(both.sum())
    assert shared > 1000


def test_a_view_after_a_turn_by_hand():
    """Turning right, the agent sees to the left what it saw ahead."""
    view = torch.arange(25)  # not classes, but as easy to follow
    turned = Registration(9).carry_over(view[None, None], torch.tensor([[RIGHT]]))[0, 0].reshape(5, 5)
    # [i, j] is i - 2 steps to the right and 4 - j ahead. Two ahead becomes two to the left.
    assert turned[0, 4] == view.reshape(5, 5)[2, 2]
    assert turned[2, 2] == view.reshape(5, 5)[4, 4]  # two to the right becomes two ahead
    assert turned[4, 4] == 0  # two to the right is now what was behind
    assert turned[2, 4] == 0  # its own cell never shows
    onward = Registration(9).carry_over(view[None, None], torch.tensor([[FORWARD]]))[0, 0].reshape(5, 5)
    assert onward[1].tolist() == [0, *view.reshape(5, 5)[1, :4].tolist()]


def test_a_step_into_a_wall_is_no_motion():
    view = torch.full((2, 25), 2)
    view[1, HERE - 1] = 1
    for action in (LEFT, RIGHT):
        assert motion_of(view, torch.full((2,), action)).tolist() == [action, action]
    assert motion_of(view, torch.full((2,), FORWARD)).tolist() == [FORWARD, STAY]


def test_kinds():
    view = torch.full((25,), 2)
    view[:4] = torch.tensor([0, 1, 8, -1])
    kinds = kinds_of(view)
    assert kinds.shape == (25, 8)
    assert kinds.sum(1).tolist() == [0, 1, 1, 0, *[1] * 10, 0, *[1] * 10]  # [14] is the agent's own cell
    assert (kinds[1, 0], kinds[2, 7], kinds[4, 1]) == (1, 1, 1)


# Placing


@pytest.mark.parametrize("name", ["cover", "half", "walk"])
def test_memories_lie_to_each_other_as_they_do_in_the_room(name):
    banks = draw_banks(name)
    table = geometry(9)
    place = Registration(9).place(memories_of(banks)).numpy()
    held = banks.pose >= 0
    placed = place < table.n_poses
    assert (placed <= held).all()
    assert placed[held].mean() > 0.98
    where = [tuple(p) for p in poses(9).tolist()]
    for i in range(len(place)):
        rows = np.flatnonzero(placed[i])
        first = rows[0]
        for row in rows:
            true = seen_from(where[banks.pose[i, first]], where[banks.pose[i, row]])
            assert seen_from(map_pose(9, place[i, first]), map_pose(9, place[i, row])) == true
        assert (place[i] == table.origin).any() or not held[i].any()


def test_small_rooms():
    banks = draw_banks("cover", 20, size=7, walls=(0, 2), wall_length=(1, 3))
    place = Registration(7).place(memories_of(banks)).numpy()
    where = [tuple(p) for p in poses(7).tolist()]
    for i in range(20):
        rows = np.flatnonzero(place[i] < geometry(7).n_poses)
        relative = [seen_from(map_pose(7, place[i, rows[0]]), map_pose(7, place[i, row])) for row in rows]
        assert relative == [seen_from(where[banks.pose[i, rows[0]]], where[banks.pose[i, row]]) for row in rows]


def test_the_order_of_the_bank_does_not_matter():
    banks = draw_banks("walk", 20)
    memories = memories_of(banks)
    order = torch.from_numpy(np.random.default_rng(0).permutation(memories.shape[1]))
    registration = Registration(9)
    there, other = registration.place(memories)[:, order].numpy(), registration.place(memories[:, order]).numpy()
    off = geometry(9).n_poses
    np.testing.assert_array_equal(there == off, other == off)
    for i in range(20):  # two memories may show as much floor: then the map begins with either
        rows = np.flatnonzero(there[i] < off)
        for row in rows:
            one, two = (seen_from(map_pose(9, p[i, rows[0]]), map_pose(9, p[i, row])) for p in (there, other))
            assert one == two


def test_banks_of_a_batch_do_not_meet():
    memories = memories_of(draw_banks("cover", 6))
    registration = Registration(9)
    together = registration.place(memories)
    for i in range(6):
        assert torch.equal(registration.place(memories[i : i + 1])[0], together[i])


def test_views_that_share_nothing_are_not_placed():
    """A memory of another room has no place beside those of this one."""
    banks = draw_banks("cover", 2)
    one, other = memories_of(banks)
    mixed = torch.cat([one[banks.pose[0] >= 0], other[:1]])[None]
    place = Registration(9).place(mixed)[0]
    on_map = place < geometry(9).n_poses
    assert on_map[:-1].all() != on_map[-1]  # the map begins with whichever shows most floor


def test_an_empty_bank_is_an_empty_map():
    registration = Registration(9)
    padding = torch.full((2, 5, 51), -1)
    assert (registration.place(padding) == geometry(9).n_poses).all()
    views = registration.build_map(padding)
    assert views.shape == (2, geometry(9).n_poses, 200)
    assert not views.any()


@pytest.mark.parametrize("name", ["cover", "half", "walk"])
def test_the_map_shows_each_view_as_far_as_the_bank_does(name):
    banks = draw_banks(name, 10)
    registration = Registration(9)
    memories = memories_of(banks)
    place = registration.place(memories)
    views = registration.build_map(memories).unflatten(2, (25, 8))
    where = [tuple(p) for p in poses(9).tolist()]
    known = banks.known()
    for i, grid in enumerate(banks.rooms.grids):
        anchor = int(np.flatnonzero(place[i].numpy() < geometry(9).n_poses)[0])
        begin, at = where[banks.pose[i, anchor]], map_pose(9, place[i, anchor])
        turn = (at[2] - begin[2]) % 4
        for pose in poses(9)[banks.rooms.free[i]].tolist():
            ahead, right, turned = seen_from(begin, pose)
            (ax, ay), (rx, ry) = AHEAD[at[2]], AHEAD[(at[2] + 1) % 4]
            on_map = at[0] + ahead * ax + right * rx, at[1] + ahead * ay + right * ry, (pose[2] + turn) % 4
            if max(abs(on_map[0]), abs(on_map[1])) > 6:
                raise AssertionError("the map is too small")
            shown = views[i, map_number(9, on_map)]
            x, y, heading = pose
            (ax, ay), (rx, ry) = AHEAD[heading], AHEAD[(heading + 1) % 4]
            for cell in range(25):
                right, ahead = cell // 5 - 2, 4 - cell % 5
                cx, cy = x + right * rx + ahead * ax, y + right * ry + ahead * ay
                inside = 0 <= cx < 9 and 0 <= cy < 9
                expected = torch.zeros(8)
                if inside and known[i, cy * 9 + cx]:
                    expected[grid[cy, cx] - 1] = 1
                assert torch.equal(shown[cell], expected)


# Changes


def change(seed, to_wall):
    """A bank, a turn after a change to a cell that the agent then sees, and where (N, 2, 25) memories show the cell."""
    rooms, rng = rooms_of(1, seed)
    banks = cover_banks(rng, rooms)
    grid = rooms.grids[0].copy()
    inside = np.argwhere((grid[1:-1, 1:-1] != 1) == to_wall) + 1
    y, x = inside[rng.integers(len(inside))]
    grid[y, x] = 1 if to_wall else 2
    after = GridBatch.of(grid[None])
    sees = after.sight[0, :, y * 9 + x] & after.free[0]
    # Views with enough floor to be placed for sure.
    sees &= (after.sight[0] & after.floor[0]).sum(1) >= 10
    if not sees.any():
        return None
    before = after.targets[0, rng.choice(np.flatnonzero(sees)), RIGHT]
    seen = rows_of(after, np.array([[before]]), np.array([[LEFT]]))[0]
    memories = banks.transitions()[0]
    held = banks.pose[0] >= 0
    ends = np.stack([banks.pose[0], rooms.targets[0, banks.pose[0], banks.action[0]]], 1)
    views = np.stack([memories[:, :25], memories[:, 26:]], 1)
    shows = (seen_cells(9)[ends] == y * 9 + x) & (views > 0) & held[:, None, None]
    shows[..., HERE] = False
    return torch.from_numpy(memories)[None], torch.from_numpy(seen), shows


@pytest.mark.parametrize("to_wall", [True, False], ids=["wall", "floor"])
def test_where_memories_show_a_changed_cell_they_are_contradicted_and_nowhere_else(to_wall):
    registration = Registration(9)
    cases = [case for case in (change(seed, to_wall) for seed in range(40)) if case]
    assert len(cases) > 20
    found = [registration.contradicted(memories, seen)[0].numpy() for memories, seen, _ in cases]
    right = [np.array_equal(f, shows) for f, (*_, shows) in zip(found, cases, strict=True)]
    # Where the turn cannot be placed, nothing; a memory of the cell that itself cannot be placed tells nothing.
    assert all((f <= shows).all() for f, (*_, shows) in zip(found, cases, strict=True))
    assert np.mean(right) > 0.9
    assert sum(shows.any() for *_, shows in cases) > 20


def test_what_the_agent_saw_before_the_move_contradicts_nothing():
    """Only the end counts: a source may be from before the change."""
    memories, seen, shows = next(case for case in (change(seed, True) for seed in range(40)) if case and case[2].any())
    other = seen.clone()
    other[:, :25] = torch.where(seen[:, :25] > 2, 3 + seen[:, :25] % 6, seen[:, :25])
    source = kinds_of(other[:, :25])
    assert (source != kinds_of(seen[:, :25])).any()
    found = Registration(9).contradicted(memories, other)[0].numpy()
    assert (found <= shows).all()


def test_nothing_is_contradicted_where_nothing_changed():
    rooms, rng = rooms_of(30)
    banks = cover_banks(rng, rooms)
    pose = np.array([[rng.choice(np.flatnonzero(free))] for free in rooms.free])
    for action in range(3):
        seen = torch.from_numpy(rows_of(rooms, pose, np.full_like(pose, action)))[:, 0]
        assert not Registration(9).contradicted(memories_of(banks), seen).any()


def test_what_cannot_be_placed_contradicts_nothing():
    banks = draw_banks("cover", 2)
    memories = memories_of(banks)
    padding = torch.full((2, 3, 51), -1)
    assert not Registration(9).contradicted(padding, memories[:, 0]).any()
    assert Registration(9).contradicted(padding[:, :0], memories[:, 0]).shape == (2, 0, 2, 25)
    other = draw_banks("cover", 2, seed=9)
    assert not Registration(9).contradicted(memories, memories_of(other)[:, 0]).any()
    astray = memories_of(draw_banks("cover", 2, seed=5))[:, :1]
    assert not Registration(9).contradicted(torch.cat([memories, astray], 1), memories_of(other)[:, 0]).any()


def test_a_motion_moves_probabilities():
    registration = Registration(9)
    table = registration.geometry
    p = torch.zeros(1, 1, table.n_poses)
    p[0, 0, table.origin] = 0.75
    for motion in range(5):
        moved = registration.move(p, torch.tensor([[motion]]))[0, 0]
        assert moved[map_number(9, step((0, 0, 0), motion))] == 0.75
        assert moved.sum() == 0.75
    edge = torch.zeros(1, 1, table.n_poses)
    edge[0, 0, map_number(9, (6, 0, 0))] = 1
    assert not registration.move(edge, torch.tensor([[FORWARD]])).any()


def test_probabilities_of_poses():
    registration = Registration(9)
    p = registration.poses(torch.tensor([[[8.0, 8.0], [-50.0, -50.0]]]))
    torch.testing.assert_close(p, torch.tensor([[[1 / 3, 1 / 3], [0.0, 0.0]]]))
