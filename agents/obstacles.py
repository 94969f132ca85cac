"""What moves that were blocked tell of where things stand."""

from __future__ import annotations

import numpy as np

from eswm_gym.rooms.indoor.space import distance_to

SAMPLES = 8  # points along a way
WALKED = 0.1  # metres from where someone went, in which nothing can stand
BESIDE = 0.35  # metres from what blocked one way, in which it may block another


class Obstacles:
    """Each blocked way says that something stands somewhere along it: not where it began, and elsewhere only where
    nobody went."""

    def __init__(self) -> None:
        self.points, self.weights = np.zeros((0, 2)), np.zeros(0)

    def add(self, start: np.ndarray, end: np.ndarray, walked: np.ndarray) -> None:
        """Note a way that was blocked.

        Args:
            start, end: (2,) points.
            walked: (S, 2, 2) ends of ways that were free.
        """
        points = start + np.linspace(0, 1, SAMPLES + 1)[1:, None] * (end - start)
        there = np.asarray(distance_to(points, walked) > WALKED).all(-1)
        if not there.any():  # so it came after someone went there
            there = np.ones_like(there)
        self.points = np.concatenate([self.points, points])
        self.weights = np.concatenate([self.weights, there / there.sum()])

    def in_way(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(N,) float, how many of the blocked ways say that something is in the way from points (N, 2) to others."""
        near = distance_to(self.points, np.stack([start, end], 1)) < BESIDE
        return self.weights @ near
