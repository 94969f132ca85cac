"""Agents that follow a shortest path in a graph of their memories: without a model, or knowing the lattice."""

from __future__ import annotations

import networkx as nx
import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions, end_of
from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.agents.states import state_of
from eswm_gym.rooms import DISPLACEMENTS, N_ACTIONS, reverse_action

Cell = tuple[int, int, int]  # a connected part and axial coordinates in it


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
    """Knows the lattice: integrates its memories into coordinates, so that it finds every shortcut. The ceiling.

    A state keeps its coordinates when the room changes. A blocked move tells that the cell ahead is a wall, until a
    move gets there.

    Attributes:
        cells: for each state its connected part, named after a state in it, and its axial coordinates (q, r) there.
    """

    cells: dict[int, Cell]

    def reset(self, obs: Observation, info: Info) -> None:
        super().reset(obs, info)
        self.cells = {}
        for transition in self.memory:
            self._integrate(*transition)

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        super().observe(obs, action, next_obs, info)
        state, end = state_of(obs["state"]), state_of(end_of(next_obs, info))
        self._integrate(state, action, end)
        for source, bumped, stayed in self.memory if end != state else ():
            if source == stayed and _ahead(self.cells[source], bumped) == self.cells[end]:  # that wall is gone
                self.memory.forget(source, bumped)
                self._graph = None

    def build_graph(self) -> nx.DiGraph:
        """States, with an edge between any two neighbours; none leads on from a wall, or where a move was blocked."""
        state_at = {cell: state for state, cell in self.cells.items()}
        walls = {_ahead(self.cells[state], action) for state, action, end in self.memory if state == end}
        graph: nx.DiGraph = nx.DiGraph()
        for state, cell in self.cells.items():
            for action in range(N_ACTIONS) if cell not in walls else ():
                neighbor = state_at.get(_ahead(cell, action))
                if neighbor is not None and self.memory.end_of(state, action) != state:
                    graph.add_edge(state, neighbor, action=action)
        return graph

    def _integrate(self, source: int, action: int, end: int) -> None:
        """Give both states of a transition their cells; if it connects two parts, the end's joins the source's."""
        cell = self.cells.setdefault(source, (source, 0, 0))
        if end == source:
            return
        there = part, q, r = _ahead(cell, action)
        old_part, old_q, old_r = self.cells.get(end, there)
        if old_part != part:
            for state, (its_part, its_q, its_r) in self.cells.items():
                if its_part == old_part:
                    self.cells[state] = part, its_q + q - old_q, its_r + r - old_r
        self.cells[end] = there


def _ahead(cell: Cell, action: int) -> Cell:
    """The cell to which an action leads from a cell."""
    part, q, r = cell
    dq, dr = DISPLACEMENTS[action].tolist()
    return part, q + dq, r + dr
