"""Explorers that are told what an agent does not know: the lattice, or the whole room."""

from __future__ import annotations

import networkx as nx
import numpy as np
from networkx.algorithms.approximation import traveling_salesman_problem

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.agents.exploration import OPENNESS
from eswm_gym.agents.places import Place
from eswm_gym.rooms import N_ACTIONS, Room, hex_lattice


class LatticeFrontierAgent(Agent):
    """Greedy frontier exploration (Yamauchi, 1997) by an agent that knows the lattice and where it is on it.

    It goes to the nearest location that it has neither visited nor bumped into. Its position is `info["location"]`.

    Args:
        radius: of the lattice.
        seed: breaks ties.
        ordered: of several equally near, go to the least open one (by `OPENNESS`), as `ESWMAgent` does.
    """

    def __init__(self, radius: int, seed: int | None = None, ordered: bool = False) -> None:
        self.radius, self.ordered, self.rng = radius, ordered, np.random.default_rng(seed)

    def spawn(self, seed: int | None = None) -> LatticeFrontierAgent:
        return LatticeFrontierAgent(self.radius, seed, self.ordered)

    def reset(self, obs: Observation, info: Info) -> None:
        lattice = hex_lattice(self.radius)
        self.graph: nx.Graph = nx.from_edgelist(lattice.edges.tolist())
        self.neighbors = lattice.neighbors
        self.location = info["location"]
        self.visited = {self.location}

    def act(self, obs: Observation, info: Info) -> int:
        lengths = nx.single_source_shortest_path_length(self.graph, self.location)
        nearest = min((n for location, n in lengths.items() if location not in self.visited), default=None)
        if nearest is None:
            return int(self.rng.choice(allowed_actions(info, N_ACTIONS)))
        goals = [location for location, n in lengths.items() if n == nearest and location not in self.visited]
        if self.ordered:
            openness = [self.openness(location) for location in goals]
            goals = [location for location, x in zip(goals, openness, strict=True) if x == min(openness)]
        path = nx.shortest_path(self.graph, self.location, int(self.rng.choice(goals)))
        return self.neighbors[self.location].tolist().index(path[1])

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        if info["location"] == self.location:
            wall = int(self.neighbors[self.location, action])
            if wall in self.graph:
                self.graph.remove_node(wall)
        self.location = info["location"]
        self.visited.add(self.location)

    def openness(self, location: int) -> float:
        """How much the neighbours of a location speak for leaving it for later."""
        return sum(OPENNESS[self.kind(neighbor)] for neighbor in self.neighbors[location].tolist())

    def kind(self, location: int) -> Place:
        """What a location is as far as the agent knows; -1 is off the lattice."""
        if location < 0:
            return Place.OUTSIDE
        if location in self.visited:
            return Place.VISITED
        return Place.FRONTIER if location in self.graph else Place.WALL


class OracleExplorer(Agent):
    """Knows the walls: walks the round trip that networkx's travelling salesman finds over the free space.

    Of the two directions it takes the one that finds more in the first `steps`. It walks in `info["layout"]`, a `Room`.
    The trip is an approximation (Christofides), planned for the whole room rather than for these steps.

    Args:
        steps: how long it has.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def spawn(self, seed: int | None = None) -> OracleExplorer:
        return OracleExplorer(self.steps)

    def reset(self, obs: Observation, info: Info) -> None:
        room: Room = info["layout"]
        start = info["location"]
        moves = {
            (here, int(room.targets[here, action])): action
            for here in np.flatnonzero(~room.walls).tolist()
            for action in range(N_ACTIONS)
            if room.targets[here, action] != here
        }
        graph = nx.Graph(list(moves))
        graph.add_node(start)
        graph = graph.subgraph(nx.node_connected_component(graph, start))
        # A fresh copy in order of location: the approximation depends on the order of the nodes.
        ordered: nx.Graph = nx.Graph()
        ordered.add_nodes_from(sorted(graph))
        ordered.add_edges_from(sorted(graph.edges))
        tour = traveling_salesman_problem(ordered) if len(ordered) > 1 else [start, start]
        at = tour.index(start)
        tour = [*tour[at:-1], *tour[:at], start]
        best = max((tour, tour[::-1]), key=lambda trip: len(set(trip[: self.steps + 1])))
        self.actions = [moves[step] for step in zip(best, best[1:], strict=False) if step in moves]

    def act(self, obs: Observation, info: Info) -> int:
        return self.actions.pop(0) if self.actions else int(allowed_actions(info, N_ACTIONS)[0])
