"""Random MiniGrid layouts: what a family promises."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from minigrid.core.world_object import Floor, Wall
from scipy.ndimage import label

from eswm_gym.rooms.grid import CLASSES, EMPTY, ENCODING, N_CLASSES, UNSEEN, WALL, GridConfig, generate_grids
from eswm_gym.rooms.grid.layouts import is_connected

seeds = st.integers(0, 2**32 - 1)


@st.composite
def configs(draw) -> GridConfig:
    size = draw(st.integers(4, 13))
    low = draw(st.integers(0, min(size, 4)))
    shortest = draw(st.integers(1, size - 3))
    return GridConfig(
        size,
        (low, draw(st.integers(low, min(size, 5)))),
        (shortest, draw(st.integers(shortest, size - 3))),
    )


def grids_of(config: GridConfig = GridConfig(), n: int = 2000, seed: int = 0) -> np.ndarray:  # noqa: B008
    return generate_grids(np.random.default_rng(seed), n, config)


def inside_walls(grids: np.ndarray) -> np.ndarray:
    return grids[:, 1:-1, 1:-1] == WALL


@given(config=configs(), n=st.integers(1, 6), seed=seeds)
def test_every_layout_keeps_the_promises_of_its_family(config, n, seed):
    try:
        grids = grids_of(config, n, seed)
    except RuntimeError:
        reject()
    size = config.size
    assert grids.shape == (n, size, size)
    assert grids.dtype == np.int8
    for grid in grids:
        border = np.ones((size, size), bool)
        border[1:-1, 1:-1] = False
        assert (grid[border] == 1).all()
        assert ((grid >= 1) & (grid <= 8)).all()
        assert label(grid != 1)[1] <= 1
        n_walls = (grid[1:-1, 1:-1] == 1).sum()
        least = config.wall_length[0] if config.walls[0] else 0  # walls may lie on top of each other
        assert least <= n_walls <= config.walls[1] * config.wall_length[1]


def test_the_default_family():
    config = GridConfig()
    assert (config.size, config.inside, config.walls, config.wall_length) == (9, 7, (2, 4), (2, 4))
    counts = inside_walls(grids_of(config)).sum((1, 2))
    assert counts.min() >= 2 and counts.max() <= 16
    assert len(np.unique(counts)) >= 10


@given(config=configs(), seed=seeds)
def test_same_seed_same_layouts(config, seed):
    try:
        first, second = grids_of(config, 3, seed), grids_of(config, 3, seed)
    except RuntimeError:
        reject()
    np.testing.assert_array_equal(first, second)


def test_different_seeds_and_layouts_of_a_batch_differ():
    assert len({grid.tobytes() for seed in range(3) for grid in grids_of(n=100, seed=seed)}) == 300


def test_one_wall():
    """Straight, of the promised lengths, either way and everywhere."""
    walls = inside_walls(grids_of(GridConfig(walls=(1, 1), wall_length=(2, 3))))
    ways = set()
    for wall in walls:
        y, x = np.nonzero(wall)
        length = len(y)
        assert (np.ptp(y), np.ptp(x)) in ((0, length - 1), (length - 1, 0))
        ways.add((length, bool(np.ptp(y))))
    assert ways == {(2, False), (2, True), (3, False), (3, True)}
    assert walls.any(0).all()


def test_no_walls():
    assert not inside_walls(grids_of(GridConfig(walls=(0, 0)), n=50)).any()


def test_floors_are_all_equally_likely():
    grids = grids_of(GridConfig(walls=(0, 0)))[:, 1:-1, 1:-1]
    counts = np.bincount(grids.ravel(), minlength=9)
    assert counts[:2].tolist() == [0, 0]
    np.testing.assert_allclose(counts[2:] / counts.sum(), 1 / 7, rtol=0.03)


def test_families_that_are_always_cut_in_two():
    with pytest.raises(RuntimeError, match="too many walls"):
        grids_of(GridConfig(13, walls=(13, 13), wall_length=(10, 10)), n=30)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 3}, "size must be at least 4, got 3"),
        ({"walls": (-1, 2)}, r"walls .* got \(-1, 2\)"),
        ({"walls": (3, 2)}, r"walls .* got \(3, 2\)"),
        ({"walls": (0, 10)}, r"walls .* <= 9, got \(0, 10\)"),
        ({"wall_length": (2, 7)}, r"wall_length .* <= 6, got \(2, 7\)"),
        ({"wall_length": (4, 2)}, r"wall_length .* got \(4, 2\)"),
    ],
)
def test_config_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        GridConfig(**arguments)


@given(free=arrays(bool, st.tuples(st.integers(1, 4), st.integers(2, 7), st.integers(2, 7))))
def test_is_connected(free):
    assert is_connected(free).tolist() == [label(one)[1] <= 1 for one in free]


def test_classes_are_minigrids():
    assert (N_CLASSES, UNSEEN, WALL, EMPTY) == (9, 0, 1, 2)
    assert ENCODING[:3].tolist() == [[0, 0, 0], list(Wall().encode()), [1, 0, 0]]
    assert ENCODING[3:].tolist() == [list(Floor(colour).encode()) for colour in CLASSES[3:]]
