"""Random MiniGrid layouts in batches, as arrays (paper: "MiniGrid environments")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# What a cell can be, a fixed set of nine: out of view, a wall, and seven kinds of floor; EMPTY is the plain one.
CLASSES = ("unseen", "wall", "empty", "red", "green", "blue", "purple", "yellow", "grey")
UNSEEN, WALL, EMPTY = 0, 1, 2
N_CLASSES = len(CLASSES)
# Each class in MiniGrid's encoding (object, colour, state); floors of a colour are its `Floor` objects.
ENCODING = np.array([(0, 0, 0), (2, 5, 0), (1, 0, 0)] + [(3, colour, 0) for colour in range(6)], np.uint8)

SIZE = 9  # cells along a side of a room, the walls around it included
MAX_DRAWS = 1000  # times that a room is drawn again because its walls cut it in two


@dataclass(frozen=True)
class GridConfig:
    """A family of layouts: a square with a wall all around, straight walls inside, each floor cell of a random kind.

    Attributes:
        size: width and height in cells, the walls around it included.
        walls: least and greatest number of straight walls inside.
        wall_length: least and greatest length of each; they may cross.
    """

    size: int = SIZE
    walls: tuple[int, int] = (2, 4)
    wall_length: tuple[int, int] = (2, 4)

    def __post_init__(self) -> None:
        if self.size < 4:
            raise ValueError(f"size must be at least 4, got {self.size}")
        for name, (low, high), most in (
            ("walls", self.walls, self.size),
            ("wall_length", self.wall_length, self.size - 3),
        ):
            if not 0 <= low <= high <= most:
                raise ValueError(f"{name} must be 0 <= least <= greatest <= {most}, got {(low, high)}")

    @property
    def inside(self) -> int:
        """Cells along a side without the walls around."""
        return self.size - 2


def generate_grids(rng: np.random.Generator, n: int, config: GridConfig) -> np.ndarray:
    """Draw n layouts in which every floor cell can be reached from every other one.

    Returns:
        (n, size, size) int8 classes, indexed [room, y, x].

    Raises:
        RuntimeError: if the walls of the family cut nearly every room in two.
    """
    grids = np.empty((n, config.size, config.size), np.int8)
    todo = np.arange(n)
    for _ in range(MAX_DRAWS):
        grids[todo] = _draw(rng, len(todo), config)
        todo = todo[~is_connected(grids[todo] != WALL)]
        if not len(todo):
            return grids
    raise RuntimeError(f"no connected room in {MAX_DRAWS} draws: {config} has too many walls")


def is_connected(free: np.ndarray) -> np.ndarray:
    """(n,) bool: whether every free cell of (n, height, width) bool can be reached from every other one."""
    first = free.reshape(len(free), free[:1].size).argmax(1) if len(free) else np.empty(0, int)
    reached = np.zeros(free.shape, bool)
    reached.reshape(len(free), free[:1].size)[np.arange(len(free)), first] = True
    reached &= free
    while True:
        padded = np.pad(reached, ((0, 0), (1, 1), (1, 1)))
        grown = reached | padded[:, 2:, 1:-1] | padded[:, :-2, 1:-1] | padded[:, 1:-1, 2:] | padded[:, 1:-1, :-2]
        grown &= free
        if (grown == reached).all():
            return (reached == free).all((1, 2))
        reached = grown


def classes_of(encoded: np.ndarray) -> np.ndarray:
    """(...) uint8, the classes of cells (..., 3) in MiniGrid's encoding; UNSEEN for all other objects."""
    return (encoded[..., None, :2] == ENCODING[:, :2]).all(-1).argmax(-1).astype(np.uint8)


def _draw(rng: np.random.Generator, n: int, config: GridConfig) -> np.ndarray:
    size, inside = config.size, config.inside
    grids = np.full((n, size, size), WALL, np.int8)
    grids[:, 1:-1, 1:-1] = rng.integers(EMPTY, N_CLASSES, (n, inside, inside))
    n_walls = rng.integers(config.walls[0], config.walls[1] + 1, n)
    low, high = config.wall_length
    for wall in range(config.walls[1]):
        length = rng.integers(low, high + 1, n)
        across = rng.integers(inside, size=n)
        begin = rng.integers(inside - length + 1)
        along = np.arange(high)[:, None]
        inner = np.arange(n)[None].repeat(high, 0)
        kept = (along < length) & (wall < n_walls)
        y, x = np.where(rng.random(n) < 0.5, [across + 0 * along, begin + along], [begin + along, across + 0 * along])
        grids[inner[kept], 1 + y[kept], 1 + x[kept]] = WALL
    return grids
