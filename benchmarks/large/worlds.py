"""Worlds of thousands of locations: a lattice with short straight walls all over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
from worlds.rivals import Fact

from eswm_gym.rooms import RoomBatch, lattice_of, spanning_banks

WALLS, RUN = 0.1, (3, 5)  # share of locations that are walls; least and greatest number in a row


@dataclass(frozen=True)
class World:
    """A world and a minimal memory bank of it.

    Attributes:
        lattice: its name and size, as for `lattice_of`.
        moves: where each move ends that leads from one free state to another, by (state, action).
        bank: a spanning tree of the free states, one way each, and a bump into each wall beside them; perhaps more.
    """

    lattice: tuple[str, tuple[int, ...]]
    moves: dict[tuple[int, int], int]
    bank: list[Fact]

    @cached_property
    def graph(self) -> nx.DiGraph:
        return nx.DiGraph((source, end) for (source, _), end in self.moves.items())

    def without(self, states: Iterable[int]) -> World:
        """The same world where some states have turned into walls after the bank was made."""
        gone = set(states)
        moves = {key: end for key, end in self.moves.items() if key[0] not in gone and end not in gone}
        return World(self.lattice, moves, self.bank)

    def new_wall(self, start: int, goal: int, size: int, rng: np.random.Generator) -> tuple[World, int] | None:
        """A wall of neighbouring states, one of them half-way on a shortest path.

        Returns:
            The world with the wall, and the length of its shortest path; None if there is no path then.
        """
        path = nx.shortest_path(self.graph, start, goal)
        wall = [path[len(path) // 2]]
        while len(wall) < size:
            around = set(self.graph.successors(wall[-1])) - {start, goal, *wall}
            if not around:
                break
            wall.append(int(rng.choice(sorted(around))))
        world = self.without(wall)
        if (
            {start, goal} & set(wall)
            or not {start, goal} <= set(world.graph)
            or not nx.has_path(world.graph, start, goal)
        ):
            return None
        return world, nx.shortest_path_length(world.graph, start, goal)

    def pairs(self, n: int, seed: int) -> list[tuple[int, int, int]]:
        """Draw n starts and goals, with the length of the shortest path."""
        rng, states = np.random.default_rng(seed), sorted(self.graph)
        drawn = [rng.choice(states, 2, replace=False).tolist() for _ in range(n)]
        return [(start, goal, nx.shortest_path_length(self.graph, start, goal)) for start, goal in drawn]


def draw_world(shape: str, size: tuple[int, ...], seed: int, held: float = 0.0) -> World:
    """Draw a world: runs of walls until there are enough; what they cut off from the largest part is wall too.

    Args:
        shape, size: of the lattice.
        seed: of walls, states and bank.
        held: the least share of the moves between states that the bank holds.
    """
    rng, lattice = np.random.default_rng(seed), lattice_of(shape, size)
    walls = np.zeros(lattice.n_locations, bool)
    while walls.sum() < WALLS * lattice.n_locations:
        tip, way = rng.integers(lattice.n_locations), rng.integers(lattice.n_actions)
        for _ in range(rng.integers(RUN[0], RUN[1] + 1)):
            if tip >= 0:
                walls[tip], tip = True, lattice.neighbors[tip, way]
    left = nx.Graph(lattice.edges[~walls[lattice.edges].any(1)].tolist())
    walls[:] = True
    walls[list(max(nx.connected_components(left), key=len))] = False
    states = rng.permutation(lattice.n_locations)
    room = RoomBatch(lattice, states[None], walls[None], np.ones((1, len(walls)), bool))
    bank = spanning_banks(rng, room).transitions()[0].tolist()
    ends = room.targets()[0]
    start, action = np.nonzero((ends != np.arange(len(walls))[:, None]) & ~walls[:, None])
    moves = zip(states[start].tolist(), action.tolist(), states[ends[start, action]].tolist(), strict=True)
    ends_of = {(s, a): e for s, a, e in moves}
    facts = [(s, a, e) for s, a, e in bank if a >= 0]
    others = sorted({(s, a, e) for (s, a), e in ends_of.items()}.difference(facts))
    more = max(0, round(held * len(ends_of)) - sum(s != e for s, _, e in facts))
    facts += [others[i] for i in rng.permutation(len(others))[:more]]
    return World((shape, size), ends_of, facts)
