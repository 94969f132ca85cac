"""Beginnings of episodes in hexagonal rooms, drawn many at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eswm_gym.rooms import RoomBatch, generate_rooms, spanning_banks
from eswm_gym.rooms.transitions import draw_weighted

if TYPE_CHECKING:
    from eswm_gym.envs.hex_room import HexRoomEnv


class Episodes(NamedTuple):
    """What B episodes begin with.

    Attributes:
        states: (B, L) int32, the state at each location.
        walls: (B, L) bool.
        observed: (B, L) bool, what the memory banks cover.
        start: (B,) int64, locations.
        goal: (B,) int64, locations; in the task `explore` the same as the start.
        distances: (B, L) int32, steps from each location to the goal, -1 for walls and where there is no way.
        bank: (B, L - 1, 3) int32, memory banks with rows of -1 at the end; (B, 0, 3) if none is handed out.
    """

    states: np.ndarray
    walls: np.ndarray
    observed: np.ndarray
    start: np.ndarray
    goal: np.ndarray
    distances: np.ndarray
    bank: np.ndarray


def empty_episodes(env: HexRoomEnv, n: int) -> Episodes:
    """Arrays for n episodes of such an environment."""
    n_locations = env.config.n_locations
    return Episodes(
        states=np.zeros((n, n_locations), np.int32),
        walls=np.zeros((n, n_locations), bool),
        observed=np.ones((n, n_locations), bool),
        start=np.zeros(n, np.int64),
        goal=np.zeros(n, np.int64),
        distances=np.zeros((n, n_locations), np.int32),
        bank=np.full((n, n_locations - 1 if env.memory_bank == "spanning" else 0, 3), -1, np.int32),
    )


def draw_episodes(rng: np.random.Generator, env: HexRoomEnv, n: int) -> Episodes:
    """Draw n episodes from the distribution that `env.reset()` draws from."""
    rooms = generate_rooms(rng, n, env.config)
    starts = _starts(rooms)
    while (again := np.flatnonzero(~starts.any(1))).size:  # a very long wall may leave nowhere to go
        new = generate_rooms(rng, len(again), env.config)
        for old, drawn in ((rooms.states, new.states), (rooms.walls, new.walls), (rooms.observed, new.observed)):
            old[again] = drawn
        starts[again] = _starts(new)
    start = goal = draw_weighted(rng, starts.astype(float), 1)[:, 0]
    distances = rooms.distances_from(start)
    if env.task == "navigate":
        goal = draw_weighted(rng, (distances > 0).astype(float), 1)[:, 0]
        distances = rooms.distances_to(goal)
    episodes = empty_episodes(env, n)
    drawn_parts = (rooms.states, rooms.walls, rooms.observed, start, goal, distances)
    for part, drawn in zip(episodes, drawn_parts, strict=False):
        part[...] = drawn
    if env.memory_bank == "spanning":
        bank = spanning_banks(rng, rooms).transitions()
        episodes.bank[:, : bank.shape[1]] = bank
    return episodes


def _starts(rooms: RoomBatch) -> np.ndarray:
    """(B, L) bool, free locations that have a free neighbour."""
    free = ~rooms.walls
    beside = (rooms.lattice.distances == 1).astype(np.float32)
    return free & (free.astype(np.float32) @ beside > 0)
