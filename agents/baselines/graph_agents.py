"""Agents that follow a shortest path in a graph of their memories: without a model, or knowing the lattice."""

from __future__ import annotations

import networkx as nx
import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, end_of
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.states import state_of
from eswm_gym.rooms import DISPLACEMENTS, N_ACTIONS, reverse_action


class MemoryGraphAgent(Agent):
    """Dijkstra over the bank's own transitions and their reverses: what one would write first."""

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.memory = MemoryBank()
        self._graph: nx.DiGraph | None = None

    n_actions = N_ACTIONS

    @staticmethod
    def reverse(action: int) -> int | None:
        """The action that leads back, None if there is none."""
        return int(reverse_action(action))

    def spawn(self, seed: int | None = None) -> MemoryGraphAgent:
        return type(self)(seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self.memory = MemoryBank(info.get("memory_bank", ()), n_actions=self.n_actions)
        self._graph = None

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        if self.memory.add(state_of(obs["state"]), action, state_of(end_of(next_obs, info))):
            self._graph = None

    def act(self, obs: Observation, info: Info) -> int:
        """Take the first step of a shortest path, a random one if none is known."""
        if self._graph is None:
            self._graph = self.build_graph()
        try:
            path = nx.shortest_path(self._graph, state_of(obs["state"]), state_of(obs["goal"])) if "goal" in obs else []
        except (nx.NetworkXNoPath, nx.NodeNotFound):
            path = []
        if len(path) < 2:
            return int(self.rng.choice(allowed_actions(info, self.n_actions)))
        return self._graph.edges[path[0], path[1]]["action"]

    def build_graph(self) -> nx.DiGraph:
        """States, with an edge for each remembered move and its reverse."""
        graph: nx.DiGraph = nx.DiGraph()
        for source, action, end in self.memory:
            back = self.reverse(action)
            if back is None or source == end:
                continue
            if self.memory.end_of(end, back) in (None, source):  # facts overrule reverses
                graph.add_edge(end, source, action=back)
        for source, action, end in self.memory:
            if source != end:
                graph.add_edge(source, end, action=action)
        return graph


class PathIntegrationAgent(MemoryGraphAgent):
    """Knows the lattice: integrates its memories into coordinates, so that it finds every shortcut. The ceiling."""

    def build_graph(self) -> nx.DiGraph:
        """States at their coordinates within each connected part, with an edge between any two neighbours."""
        remembered = super().build_graph()
        graph: nx.DiGraph = nx.DiGraph()
        graph.add_nodes_from(remembered)
        for part in nx.weakly_connected_components(remembered):
            origin = next(iter(part))
            where = {origin: (0, 0)}
            for source, end in nx.bfs_edges(remembered, origin):
                q, r = DISPLACEMENTS[remembered.edges[source, end]["action"]]
                where[end] = (where[source][0] + int(q), where[source][1] + int(r))
            at = {coordinates: state for state, coordinates in where.items()}
            for state, (q, r) in where.items():
                for action in range(N_ACTIONS):
                    dq, dr = DISPLACEMENTS[action]
                    neighbor = at.get((q + int(dq), r + int(dr)))
                    if neighbor is not None and self.memory.end_of(state, action) in (None, neighbor):
                        graph.add_edge(state, neighbor, action=action)
        return graph
