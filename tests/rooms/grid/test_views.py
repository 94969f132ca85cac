"""Views and moves, told by the minigrid package itself or by hand."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Floor, Wall
from minigrid.minigrid_env import MiniGridEnv

from eswm_gym.rooms.grid import (
    ENCODING,
    GridConfig,
    distances_to,
    free_poses,
    generate_grids,
    is_unique,
    moved,
    own_cell,
    pose_index,
    poses,
    seen_cells,
    sight,
    targets_of,
    views_of,
)
from eswm_gym.rooms.grid.views import offsets, view_positions

COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")


class Shown(MiniGridEnv):
    """A layout in MiniGrid."""

    def __init__(self, layout: np.ndarray) -> None:
        super().__init__(MissionSpace(lambda: ""), grid_size=len(layout), agent_view_size=5, max_steps=10**9)
        for y, row in enumerate(layout.tolist()):
            for x, kind in enumerate(row):
                self.grid.set(x, y, {1: Wall(), 2: None}[kind] if kind <= 2 else Floor(COLOURS[kind - 3]))
        self.step_count = 0

    def put(self, x: int, y: int, heading: int) -> None:
        self.agent_pos, self.agent_dir = (x, y), heading


def noise(size: int, walls: float, seed: int) -> np.ndarray:
    """Cells of any kind anywhere inside."""
    rng = np.random.default_rng(seed)
    layout = np.ones((size, size), np.int8)
    layout[1:-1, 1:-1] = np.where(rng.random((size - 2, size - 2)) < walls, 1, rng.integers(2, 9, (size - 2, size - 2)))
    layout[1, 1] = 2
    return layout


def drawn(size: int, seed: int, **kwargs) -> np.ndarray:
    return generate_grids(np.random.default_rng(seed), 1, GridConfig(size, **kwargs))[0]


LAYOUTS = [
    *(drawn(9, seed) for seed in range(20)),
    *(drawn(9, seed, walls=(7, 9), wall_length=(1, 5)) for seed in range(10)),
    *(noise(9, walls, seed) for seed, walls in enumerate((0.1, 0.3, 0.5, 0.7, 0.3, 0.5))),
    *(noise(size, 0.3, size) for size in (4, 5, 6, 7, 8, 11, 13)),
]


def free(layout: np.ndarray) -> list[tuple[int, int, int]]:
    return [(x, y, heading) for y, x in np.argwhere(layout != 1).tolist() for heading in range(4)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_are_minigrids(layout):
    env = Shown(layout)
    views = views_of(layout[None])
    assert views.dtype == np.int8
    for pose in free(layout):
        env.put(*pose)
        view = ENCODING[views[0, pose_index(len(layout), *pose)]]
        np.testing.assert_array_equal(view, env.gen_obs()["image"].reshape(25, 3), str(pose))


@pytest.mark.parametrize("layout", LAYOUTS[::3])
def test_moves_are_minigrids(layout):
    env = Shown(layout)
    size = len(layout)
    targets = targets_of(layout[None])[0]
    for pose in free(layout):
        for action in range(3):
            env.put(*pose)
            env.step(action)
            assert targets[pose_index(size, *pose), action] == pose_index(size, *env.agent_pos, env.agent_dir)


@pytest.mark.parametrize("size", [4, 9])
def test_poses(size):
    where = poses(size).tolist()
    assert sorted(where) == [
        [x, y, heading] for x in range(1, size - 1) for y in range(1, size - 1) for heading in range(4)
    ]
    assert [pose_index(size, *pose) for pose in where] == list(range(len(where)))


def test_free_poses():
    layouts = np.stack([noise(7, 0.5, seed) for seed in range(5)])
    for layout, found in zip(layouts, free_poses(layouts), strict=True):
        assert {tuple(pose) for pose in poses(7)[found].tolist()} == set(free(layout))


def test_moves_by_hand():
    """(x, y, heading); headings are right, down, left, up."""
    assert moved(np.array([3, 4, 0]), 0).tolist() == [3, 4, 3]
    assert moved(np.array([3, 4, 3]), 1).tolist() == [3, 4, 0]
    there = moved(np.array([[3, 4, 0], [3, 4, 1], [3, 4, 2], [3, 4, 3]]), 2)
    assert there.tolist() == [[4, 4, 0], [3, 5, 1], [2, 4, 2], [3, 3, 3]]
    assert moved(there, 2, steps=-1).tolist() == [[3, 4, heading] for heading in range(4)]


@pytest.mark.parametrize("seed", range(4))
def test_distances(seed):
    grid = noise(7, 0.4, seed)
    targets = targets_of(grid[None])[0]
    graph = nx.DiGraph([(pose, end) for pose, ends in enumerate(targets.tolist()) for end in ends])
    for end in (0, 17, len(targets) - 1):
        expected = nx.single_source_shortest_path_length(graph.reverse(), end)
        assert distances_to(targets, end).tolist() == [expected.get(pose, -1) for pose in range(len(targets))]


def test_views_of_some_poses():
    grids = np.stack([noise(9, 0.3, seed) for seed in range(5)])
    at = np.random.default_rng(0).integers(len(poses(9)), size=(5, 30))
    np.testing.assert_array_equal(views_of(grids, at), views_of(grids)[np.arange(5)[:, None], at])


def test_batches_are_their_rooms():
    grids = np.stack([noise(8, 0.3, seed) for seed in range(4)])
    views, free_ones = views_of(grids), free_poses(grids)
    for i, grid in enumerate(grids):
        one = views_of(grid[None])
        np.testing.assert_array_equal(views[i], one[0])
        np.testing.assert_array_equal(targets_of(grids)[i], targets_of(grid[None])[0])
        np.testing.assert_array_equal(sight(grids, views)[i], sight(grid[None], one)[0])
        np.testing.assert_array_equal(is_unique(views, free_ones)[i], is_unique(one, free_ones[i : i + 1])[0])


def test_unique_views():
    grids = np.stack([np.minimum(noise(9, 0.2, seed), 2 + seed % 3) for seed in range(12)])  # few kinds of floor
    views, free_ones = views_of(grids), free_poses(grids)
    unique = is_unique(views, free_ones)
    for view, is_free, found in zip(views, free_ones, unique, strict=True):
        times = Counter(view[i].tobytes() for i in np.flatnonzero(is_free))
        assert found.tolist() == [is_free[i] and times[view[i].tobytes()] == 1 for i in range(len(view))]
    assert 0.1 < unique[free_ones].mean() < 0.9


def test_nothing_is_unique_in_an_empty_room():
    room = np.pad(np.full((1, 7, 7), 2, np.int8), ((0, 0), (1, 1), (1, 1)), constant_values=1)
    views = views_of(room)
    assert not is_unique(views, free_poses(room)).any()


def test_the_cells_of_a_view():
    # In the corner, looking up at the wall: the view's columns x = -1 to 3, its rows y = -3 to 1, column by column.
    off = [-1] * 3
    assert seen_cells(9)[pose_index(9, 1, 1, 3)].tolist() == [
        *([-1] * 5),
        *(off + [0, 9]),
        *(off + [1, 10]),
        *(off + [2, 11]),
        *(off + [3, 12]),
    ]
    # In the middle, looking right: the view's first column is the row y = 2, from far to near.
    cells = seen_cells(9)[pose_index(9, 4, 4, 0)].reshape(5, 5)
    assert cells[0].tolist() == [26, 25, 24, 23, 22]
    assert cells[4].tolist() == [62, 61, 60, 59, 58]


def seen(layout: list[str], pose: tuple[int, int, int]) -> set[tuple[int, int]]:
    grid = np.array([[1 if cell == "#" else 2 for cell in row] for row in layout], np.int8)[None]
    found = sight(grid, views_of(grid))[0, pose_index(len(layout), *pose)]
    return {(int(cell) % len(layout), int(cell) // len(layout)) for cell in np.flatnonzero(found)}


def test_sight_in_a_tiny_room():
    room = ["####", "#..#", "#..#", "####"]
    assert seen(room, (1, 1, 0)) == {(x, y) for x in (1, 2, 3) for y in range(4)} - {(1, 1)}
    assert seen(room, (2, 2, 3)) == {(x, y) for x in range(4) for y in (0, 1, 2)} - {(2, 2)}


def test_sight_ends_at_walls():
    room = ["#####", "#.#.#", "#.#.#", "#.#.#", "#####"]
    assert seen(room, (1, 2, 0)) == {(x, y) for x in (1, 2) for y in range(5)} - {(1, 2)}
    # Round a single block light finds its way.
    room = ["#####", "#...#", "#.#.#", "#...#", "#####"]
    assert seen(room, (1, 2, 0)) == {(x, y) for x in (1, 2, 3, 4) for y in range(5)} - {(1, 2)}


@pytest.mark.parametrize("shared", [poses, seen_cells])
def test_tables_that_all_share_cannot_be_changed(shared):
    with pytest.raises(ValueError, match="read-only"):
        shared(9)[0] = 0


@pytest.mark.parametrize(("side", "own"), [(5, 14), (7, 27), (9, 44)])
def test_the_agent_stands_in_the_middle_of_the_nearest_row(side, own):
    assert own_cell(side * side) == own
    assert offsets(side).tolist()[own] == [0, 0] and offsets(side).tolist()[own - 1] == [0, 1]
    assert offsets(side).tolist()[0] == [-(side // 2), side - 1]  # the first cell is the one at the far left
    assert offsets(side).tolist()[-1] == [side // 2, 0]


@pytest.mark.parametrize("side", [5, 7])
def test_where_the_cells_of_views_lie_is_where_minigrid_looks(side):
    """In a room of floors of all colours, so wide that no wall is in sight."""
    layout = noise(17, 0.0, 0)
    env = Shown(layout)
    env.agent_view_size = side
    where = np.array([(8, 7, heading) for heading in range(4)] + [(9, 8, 1), (7, 8, 2)])
    for pose, cells in zip(where.tolist(), view_positions(where, side), strict=True):
        env.put(*pose)
        image = env.gen_obs()["image"].reshape(side * side, 3)
        others = [i for i in range(side * side) if i != own_cell(side * side)]
        x, y = np.moveaxis(cells[others], -1, 0)
        np.testing.assert_array_equal(image[others], ENCODING[layout[y, x]])
