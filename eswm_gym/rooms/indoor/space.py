"""Where one can stand, walk and look in a house."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from eswm_gym.rooms.indoor.house import House
from eswm_gym.rooms.indoor.poses import FIELD_OF_VIEW, wrap

RADIUS = 0.2  # metres, of the agent
STEP = 0.05  # metres between the points of a way that are checked
GRID = 0.15  # metres between the points of the map that distances are measured on
RAYS = 32  # in a field of view
TRIES = 1000  # draws until a house counts as full
OVERLAP = 0.1  # views overlap where one shows so much of the walls that the other shows


class Space:
    """A house seen from above; see the module.

    Attributes:
        house: what stands where.
        walls: (S, 2, 2) float, ends of the walls and of the leaves of closed doors, in metres.
    """

    def __init__(self, house: House) -> None:
        self.house = house
        self.walls = _walls(house)
        self._furniture = np.array([(f.x, f.y, f.size[0] / 2, f.size[1] / 2) for f in house.furniture]).reshape(-1, 4)

    def free(self, points: np.ndarray) -> np.ndarray:
        """(...) bool, whether the agent can stand at points (..., 2)."""
        points = np.asarray(points, float)
        inside = np.zeros(points.shape[:-1], bool)
        for room in self.house.rooms:
            inside |= room.contains(points)
        far = (distance_to(points, self.walls) >= RADIUS).all(-1)
        gap = (np.abs(points[..., None, :] - self._furniture[:, :2]) - self._furniture[:, 2:]).clip(0)
        return inside & far & (np.hypot(gap[..., 0], gap[..., 1]) >= RADIUS).all(-1)

    def passable(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(...) bool, whether the agent can go straight from points (..., 2) to others."""
        start, end = np.asarray(start, float), np.asarray(end, float)
        length = np.linalg.norm(end - start, axis=-1).max(initial=STEP)
        share = np.linspace(0, 1, math.ceil(length / STEP) + 1)[:, None]
        way = start[..., None, :] + share * (end - start)[..., None, :]
        return np.all(self.free(way), -1)

    def draw_points(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """(n, 2) float, points drawn evenly from where the agent can stand.

        Raises:
            ValueError: if it can stand next to nowhere.
        """
        low, high = self._corners
        found = np.zeros((0, 2))
        for _ in range(TRIES):
            points = rng.uniform(low, high, (4 * n, 2))
            found = np.concatenate([found, points[self.free(points)]])
            if len(found) >= n:
                return found[:n]
        raise ValueError(
            f"found {len(found)} places of {n} where the agent can stand: the house is too full or too small"
        )

    def seen(self, poses: np.ndarray) -> np.ndarray:
        """(P, 32, 2) float, the points of the walls that poses (P, 3) see, from left to right."""
        poses = np.asarray(poses, float)
        angle = poses[:, 2:] + (np.arange(RAYS) + 0.5) / RAYS * FIELD_OF_VIEW - FIELD_OF_VIEW / 2
        ahead = np.stack([np.sin(angle), np.cos(angle)], -1)
        far = _first_hit(poses[:, None, :2], ahead, self.walls)
        return poses[:, None, :2] + far[..., None] * ahead

    def shows(self, poses: np.ndarray, points: np.ndarray) -> np.ndarray:
        """(P, ...) bool, which points (..., 2) of the walls poses (P, 3) see."""
        flat = points.reshape(-1, 2)
        way = flat - poses[:, None, :2]
        far = np.hypot(way[..., 0], way[..., 1])
        ahead = np.abs(wrap(np.arctan2(way[..., 0], way[..., 1]) - poses[:, None, 2])) <= FIELD_OF_VIEW / 2
        hit = _first_hit(poses[:, None, :2], way / far.clip(1e-9)[..., None], self.walls)
        return (ahead & (hit > far - 0.05)).reshape(len(poses), *points.shape[:-1])

    def sees(self, poses: np.ndarray) -> np.ndarray:
        """(P, P) uint32, a bit for each of the points that pose j sees: whether pose i sees it too."""
        shows = self.shows(poses, self.seen(poses))
        return np.packbits(shows, axis=-1).view(np.uint32)[..., 0]

    def distance(self, start: np.ndarray, end: np.ndarray) -> float:
        """Metres of the shortest way between two points, on a map of 15 cm squares; inf where there is none."""
        if self.passable(start, end):
            return float(np.linalg.norm(np.asarray(start) - end))
        return float(self.distances(start, np.asarray(end)[None])[0])

    def distances(self, start: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """(N,) float, metres of the shortest ways from a point to points (N, 2) on that map."""
        points, graph = self._map
        near = [int(np.argmin(np.linalg.norm(points - point, axis=1))) for point in (start, *ends)]
        return csgraph.dijkstra(graph, indices=near[0])[near[1:]]

    @cached_property
    def _corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the rectangle around all rooms."""
        x, y = zip(*((room.x, room.y) for room in self.house.rooms), strict=True)
        return np.array([np.min(x), np.min(y)]), np.array([np.max(x), np.max(y)])

    @cached_property
    def _map(self) -> tuple[np.ndarray, sparse.csr_matrix]:
        """Free points on a grid (N, 2), and the metres between those beside each other."""
        low, high = self._corners
        xs, ys = (np.arange(lo + GRID / 2, hi, GRID) for lo, hi in zip(low, high, strict=True))
        grid = np.stack(np.meshgrid(xs, ys, indexing="ij"), -1)
        free = self.free(grid)
        number = np.where(free, np.cumsum(free).reshape(free.shape) - 1, -1)
        rows, columns, far = [], [], []
        for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1)):
            here = number[: len(xs) - dx, max(0, -dy) : len(ys) - max(0, dy)]
            there = number[dx:, max(0, dy) : len(ys) + min(0, dy)]
            both = (here >= 0) & (there >= 0)
            rows.append(here[both])
            columns.append(there[both])
            far.append(np.full(both.sum(), GRID * math.hypot(dx, dy)))
        one_way = sparse.coo_matrix(
            (np.concatenate(far), (np.concatenate(rows), np.concatenate(columns))), shape=(free.sum(), free.sum())
        )
        return grid[free], (one_way + one_way.T).tocsr()


def distance_to(points: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """(..., S) float, distances of points (..., 2) from segments (S, 2, 2)."""
    start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
    away = points[..., None, :] - start
    length = np.maximum((along**2).sum(-1), np.finfo(float).tiny)  # a segment may be a point
    share = ((away * along).sum(-1) / length).clip(0, 1)
    return np.linalg.norm(away - share[..., None] * along, axis=-1)


def _first_hit(start: np.ndarray, ahead: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """(...) float, how far rays (..., 2) go from points (..., 2) until they hit one of segments (S, 2, 2)."""
    along = segments[:, 1] - segments[:, 0]
    to = segments[:, 0] - start[..., None, :]
    d = ahead[..., None, :]
    cross = d[..., 0] * along[:, 1] - d[..., 1] * along[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (to[..., 0] * along[:, 1] - to[..., 1] * along[:, 0]) / cross
        share = (to[..., 0] * d[..., 1] - to[..., 1] * d[..., 0]) / cross
        hit = (far > 1e-6) & (share > -1e-9) & (share < 1 + 1e-9)
    return np.where(hit, far, np.inf).min(-1)


def _walls(house: House) -> np.ndarray:
    """(S, 2, 2) the walls of all rooms less the doors in them, and the leaves of closed doors."""
    segments = []
    for number, room in enumerate(house.rooms):
        for across in (0, 1):
            for at in (room.x, room.y)[across]:
                low, high = (room.x, room.y)[1 - across]
                gaps = [d.span for d in house.doors if number in d.rooms and d.across == across and d.at == at]
                edges = [low, *(edge for gap in sorted(gaps) for edge in gap), high]
                for start, end in zip(edges[::2], edges[1::2], strict=True):
                    if end > start:
                        segments.append(_segment(across, at, start, end))
    segments += [_segment(door.across, door.at, *door.span) for door in house.doors if door.closed]
    return np.array(segments)


def _segment(across: int, at: float, start: float, end: float) -> list[list[float]]:
    """Ends of a piece of wall that one would cross along an axis."""
    return [[at, start], [at, end]] if across == 0 else [[start, at], [end, at]]
