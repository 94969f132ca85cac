"""A second, independent account of the worlds: plain Python over Cartesian coordinates and networkx."""

from __future__ import annotations

import math
from functools import cache

import networkx as nx
import numpy as np
import pytest


@cache
def centres(radius: int) -> list[tuple[float, float]]:
    """(x, y) of locations within `radius` steps of the origin, from the north-west row by row; y: south."""
    found = {(0.0, 0.0)}
    for _ in range(radius):
        found |= {step(place, action) for place in found for action in range(6)}
    return sorted(found, key=lambda place: (place[1], place[0]))


def step(place: tuple[float, float], action: int) -> tuple[float, float]:
    """Walk one unit: action 0 is east, each further one turns 60 degrees counter-clockwise."""
    angle = math.radians(60 * action)
    # Adding 0.0 turns -0.0 into 0.0; rounding makes equal places equal keys.
    return round(place[0] + math.cos(angle), 4) + 0.0, round(place[1] - math.sin(angle), 4) + 0.0


@cache
def neighbors(radius: int) -> list[list[int]]:
    """For each location and action the location next to it, -1 off the lattice."""

    def find(place: tuple[float, float]) -> int:
        return next((i for i, other in enumerate(centres(radius)) if math.dist(place, other) < 0.01), -1)

    return [[find(step(place, action)) for action in range(6)] for place in centres(radius)]


class TrueRoom:
    """One room of a batch, told by the rules alone."""

    def __init__(self, rooms, i: int):
        self.neighbors = neighbors(rooms.lattice.radius)
        self.state_of = rooms.states[i].tolist()
        self.location_of = {state: location for location, state in enumerate(self.state_of)}
        self.walls = set(np.flatnonzero(rooms.walls[i]).tolist())
        self.observed = set(np.flatnonzero(rooms.observed[i]).tolist())
        self.locations = range(len(self.state_of))
        self.free = self.observed - self.walls

    def ahead(self, location: int, action: int) -> int:
        """What lies there, wall or not; -1 off the lattice."""
        return self.neighbors[location][action]

    def end(self, location: int, action: int) -> int:
        """Where the agent is after the action."""
        ahead = self.ahead(location, action)
        return location if ahead < 0 or ahead in self.walls else ahead

    def happens(self, transition) -> bool:
        """Whether an agent in this room can live through (s_s, a, s_e)."""
        source, action, end = (int(x) for x in transition)
        start = self.location_of.get(source, -1)
        if start < 0 or start in self.walls or not 0 <= action < 6:
            return False
        return self.state_of[self.end(start, action)] == end

    def graph(self, locations) -> nx.Graph:
        """The adjacent pairs among these locations, all of which become nodes."""
        graph = nx.Graph()
        graph.add_nodes_from(locations)
        for here in locations:
            graph.add_edges_from((here, there) for there in self.neighbors[here] if there in graph)
        return graph

    def observed_moves(self) -> set[tuple[int, int]]:
        """(location, action) from an observed free location to an observed one or off the lattice."""
        return {
            (here, action)
            for here in self.free
            for action in range(6)
            if self.ahead(here, action) < 0 or self.ahead(here, action) in self.observed
        }

    def moves(self, bank) -> list[tuple[int, int]]:
        """The (location, action) of each transition of a bank, without its padding."""
        return [(self.location_of[int(s)], int(a)) for s, a, _ in bank if s >= 0]


@pytest.fixture(scope="session")
def true_room():
    """`true_room(rooms, i)` is room i of a batch as a TrueRoom."""
    return TrueRoom


@pytest.fixture(scope="session")
def true_neighbors():
    """`true_neighbors(radius)[location][action]` is the adjacent location, -1 off the lattice."""
    return neighbors


@pytest.fixture(scope="session")
def true_centres():
    """`true_centres(radius)` is the (x, y) of each location."""
    return centres
