"""Rooms and banks to look at: the paper's kinds of rooms, several banks of a room, and clusters of memories that no
memory connects (paper: figures of latent maps, "Disjoint Memory Cluster" in "Additional Analyses")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import numpy as np

from eswm_gym.checks import require_choices
from eswm_gym.rooms import BankBatch, HexLattice, RoomBatch, hex_lattice, random_regions, spanning_banks

KINDS = ("no-wall", "straight-wall", "two-walls", "clump", "partly-observed")
CUES = ("none", "wall", "one-obstacle-each", "shape")
Cue = Literal["none", "wall", "one-obstacle-each", "shape"]


def several_banks(rng: np.random.Generator, rooms: RoomBatch, n: int) -> BankBatch:
    """n minimal spanning banks of each of B rooms: (n B) banks, those of a room side by side."""
    return spanning_banks(rng, take(rooms, np.repeat(np.arange(len(rooms)), n)))


def take(rooms: RoomBatch, which: np.ndarray) -> RoomBatch:
    """Some of the rooms, by index."""
    return replace(rooms, states=rooms.states[which], walls=rooms.walls[which], observed=rooms.observed[which])


def path_lengths(rooms: RoomBatch, room: int) -> np.ndarray:
    """(L, L) int, steps between the locations of one room; -1 for walls and what cannot be reached."""
    n_locations = rooms.lattice.n_locations
    distance = take(rooms, np.full(n_locations, room)).distances_from(np.arange(n_locations))
    distance[rooms.walls[room]] = -1
    return distance


def room_of_kind(rng: np.random.Generator, kind: str, radius: int = 3) -> RoomBatch:
    """One room as in the paper's figures, with states in random order.

    Args:
        rng: orders the states, and draws the region of a room that is partly observed.
        kind: one of `KINDS`. Two walls and a clump of obstacles are outside what models are trained on.
        radius: 2 or 3.

    Raises:
        ValueError: if there is no such kind.
    """
    require_choices(kind=(kind, KINDS))
    lattice = hex_lattice(radius)
    n = radius - 1
    cells: list[tuple[int, int]] = []
    if kind in ("straight-wall", "partly-observed"):
        cells = [(q, 0) for q in range(-n, n + 1)][: 2 * radius - 2]
    elif kind == "two-walls":
        cells = [(q, -n) for q in range(-1, radius)] + [(q, n) for q in range(-radius, 1)]
    elif kind == "clump":
        cells = [(0, 0), (1, 0), (0, 1), (1, -1)]
    walls = _mask(lattice, cells)
    observed = np.ones_like(walls)
    if kind == "partly-observed":
        observed = ~random_regions(rng, np.array([lattice.n_locations // 4]), lattice)[0]
    return RoomBatch(lattice, rng.permutation(lattice.n_locations)[None], walls[None], observed[None])


def clusters(rng: np.random.Generator, n: int, cue: Cue) -> tuple[RoomBatch, np.ndarray, np.ndarray]:
    """Two clusters of observed locations that lie side by side, while no memory leads from one to the other.

    Args:
        rng: orders the states and turns and mirrors each room.
        n: how many rooms of radius 3.
        cue: what tells how they lie. "shape": they are the northern three and the southern four rows of the room, so
            that only one alignment gives a hexagon. Else they lie on one side of a straight wall of four, each round
            one of its ends: "none", neither observes it; "wall", one observes three obstacles and the other one, so
            that only one alignment gives a wall (`placement_belief`); "one-obstacle-each", of these the middle two.

    Returns:
        The rooms, (n, L) int clusters: 0, 1, -1 for what neither observes, and (n, L) bool which are obstacles.

    Raises:
        ValueError: if there is no such cue.
    """
    require_choices(cue=(cue, CUES))
    lattice = hex_lattice(3)
    cluster = np.full(lattice.n_locations, -1)
    walls = np.zeros(lattice.n_locations, bool)
    if cue == "shape":
        cluster[:] = lattice.axial[:, 1] >= 0
    else:
        walls = _mask(lattice, [(-1, r) for r in range(-1, 3)])
        seen = {"none": ((), ()), "wall": ((-1, 0, 1), (2,)), "one-obstacle-each": ((1,), (2,))}[cue]
        free = (
            [(-1, -2), (0, -3), (0, -2), (0, -1), (0, 0), (1, -3), (1, -2), (1, -1), (1, 0)],
            [(-1, 3), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2)],
        )
        for i, (cells, rows) in enumerate(zip(free, seen, strict=True)):
            cluster[_mask(lattice, cells + [(-1, r) for r in rows])] = i
    moved = _symmetries(lattice)[rng.integers(12, size=n)]
    states = rng.permuted(np.tile(np.arange(lattice.n_locations), (n, 1)), axis=1)
    return RoomBatch(lattice, states, walls[moved], cluster[moved] >= 0), cluster[moved], walls[moved]


def _mask(lattice: HexLattice, cells: Iterable[tuple[int, int]]) -> np.ndarray:
    """(L,) bool of axial coordinates."""
    wanted = set(cells)
    return np.array([tuple(cell) in wanted for cell in lattice.axial.tolist()])


def _symmetries(lattice: HexLattice) -> np.ndarray:
    """(12, L) int, the location that takes the place of each one under six turns, mirrored or not."""
    index = {tuple(cell): i for i, cell in enumerate(lattice.axial.tolist())}
    found = []
    for mirrored in (False, True):
        cells = lattice.axial[:, ::-1] if mirrored else lattice.axial
        for _ in range(6):
            cells = np.stack([-cells[:, 1], cells.sum(1)], 1)  # by 60 degrees
            found.append([index[tuple(cell)] for cell in cells.tolist()])
    return np.array(found)
