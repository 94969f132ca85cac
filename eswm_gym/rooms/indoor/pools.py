"""A house's pool: the poses that its transitions, banks and queries are made of, and what is true of them.

Views are rendered and encoded once for each pose, and thousands of transitions between them cost nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eswm_gym.rooms.indoor.house import House
from eswm_gym.rooms.indoor.poses import REACH, action_between, moved, within_reach
from eswm_gym.rooms.indoor.space import OVERLAP, RAYS, Space

POSES = 64  # in a house
WAYS = 64  # from each pose


@dataclass(frozen=True)
class Pool:
    """P poses of a house.

    Attributes:
        poses: (P, 3) float32, (x, y, heading).
        moves: (P, P) bool, whether one action leads from pose i to pose j: it is short enough, and nothing in the way.
        sees: (P, P) uint32, a bit for each of 32 points of the walls that pose j sees: whether pose i sees it too.
    """

    poses: np.ndarray
    moves: np.ndarray
    sees: np.ndarray

    @property
    def actions(self) -> np.ndarray:
        """(P, P, 3) float, the actions that lead from pose i to pose j."""
        return action_between(self.poses[:, None], self.poses[None])

    @property
    def shared(self) -> np.ndarray:
        """(P, P) float, the share of what pose j sees that pose i sees."""
        return np.bitwise_count(self.sees) / RAYS

    @property
    def overlap(self) -> np.ndarray:
        """(P, P) bool, whether two views show some of the same walls."""
        return np.maximum(self.shared, self.shared.T) >= OVERLAP

    def covered(self, by: np.ndarray) -> np.ndarray:
        """(P,) float, the share of what each pose sees that the poses `by` see together."""
        return np.bitwise_count(np.bitwise_or.reduce(self.sees[by], axis=0)) / RAYS


def draw_pool(house: House, rng: np.random.Generator, n: int = POSES) -> Pool:
    """Poses drawn evenly from where the agent can stand, with headings drawn evenly, the first of them in open doors.

    So one gets from room to room in moves between them.
    """
    space = Space(house)
    places = space.draw_points(rng, n)
    doors = np.array([door.middle for door in house.doors if not door.closed]).reshape(-1, 2)
    doors = doors[space.free(doors)][:n]
    places[: len(doors)] = doors
    poses = np.c_[places, rng.uniform(-np.pi, np.pi, n)].astype(np.float32)
    moves = within_reach(action_between(poses[:, None], poses[None])) & ~np.eye(n, dtype=bool)
    start, end = np.nonzero(moves | moves.T)
    passable = np.zeros((n, n), bool)
    passable[start, end] = space.passable(poses[start, :2], poses[end, :2])
    return Pool(poses, moves & passable, space.sees(poses))


def draw_ways(
    space: Space, poses: np.ndarray, rng: np.random.Generator, n: int = WAYS
) -> tuple[np.ndarray, np.ndarray]:
    """Points that one action may lead to, free or not, wherever walls and furniture stand.

    Returns:
        (P, n, 2) float32, metres to the right and ahead of poses (P, 3), and (P, n) bool, whether one cannot go
        straight there.
    """
    to = rng.uniform(-REACH, REACH, (len(poses), n, 2))
    ends = moved(poses[:, None], np.concatenate([to, np.zeros((len(poses), n, 1))], -1))[..., :2]
    return to.astype(np.float32), ~space.passable(np.broadcast_to(poses[:, None, :2], ends.shape), ends)
