"""Beginnings of episodes in MiniGrid's rooms, drawn many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eswm_gym.rooms.grid import (
    COVER_BANK_SIZE,
    N_CELLS,
    ROW,
    SIZE,
    GridBatch,
    GridConfig,
    cover_banks,
    generate_grids,
    poses,
    steps_to,
)
from eswm_gym.rooms.transitions import draw_weighted


class GridEpisodes(NamedTuple):
    """What B episodes begin with; P is the number of poses.

    Attributes:
        grids: (B, 81) int8 classes, row by row.
        views: (B, P, 25) uint8, what each pose shows.
        start: (B,) int64, poses.
        goal: (B,) int64, poses; in the task `explore` the same as the start.
        distances: (B, P) int16, actions from each free pose to the goal, -1 where there is no way.
        seeable: (B, 81) bool, the cells that can be seen from where the agent can go.
        bank: (B, 24, 51) int8, memory banks with rows of -1 at the end; (B, 0, 51) if none is handed out.
    """

    grids: np.ndarray
    views: np.ndarray
    start: np.ndarray
    goal: np.ndarray
    distances: np.ndarray
    seeable: np.ndarray
    bank: np.ndarray


def empty_grid_episodes(memory_bank: str, n: int) -> GridEpisodes:
    """Arrays for n episodes."""
    n_cells, n_poses = SIZE * SIZE, len(poses(SIZE))
    return GridEpisodes(
        grids=np.zeros((n, n_cells), np.int8),
        views=np.zeros((n, n_poses, N_CELLS), np.uint8),
        start=np.zeros(n, np.int64),
        goal=np.zeros(n, np.int64),
        distances=np.zeros((n, n_poses), np.int16),
        seeable=np.zeros((n, n_cells), bool),
        bank=_empty_banks(memory_bank, n),
    )


def _empty_banks(memory_bank: str, n: int) -> np.ndarray:
    return np.full((n, COVER_BANK_SIZE if memory_bank == "cover" else 0, ROW), -1, np.int8)


def draw_grid_episodes(rng: np.random.Generator, task: str, memory_bank: str, n: int) -> GridEpisodes:
    """Draw n episodes from the distribution that `MiniGridRoomEnv.reset()` draws from."""
    grids = generate_grids(rng, n, GridConfig())
    rooms = GridBatch.of(grids)
    while (again := np.flatnonzero(rooms.unique.sum(1) < 2)).size:  # a room that looks the same all over has no goal
        grids[again] = generate_grids(rng, len(again), GridConfig())
        rooms = GridBatch.of(grids)
    start = goal = draw_weighted(rng, rooms.free.astype(float), 1)[:, 0]
    if task == "navigate":
        goals = rooms.unique.astype(float)
        goals[np.arange(n), start] = 0
        goal = draw_weighted(rng, goals, 1)[:, 0]
    bank = _empty_banks(memory_bank, n)
    if memory_bank == "cover":
        bank[...] = cover_banks(rng, rooms).transitions()
    distances = steps_to(rooms.free, goal)
    return GridEpisodes(grids.reshape(n, -1), rooms.views.astype(np.uint8), start, goal, distances, rooms.visible, bank)
