"""Agents to compare with in MiniGrid: a graph of remembered views, and two that are told the layout."""

from __future__ import annotations

import networkx as nx
import numpy as np

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.agents.baselines.graph_agents import MemoryGraphAgent
from eswm_gym.agents.states import ViewAlbum
from eswm_gym.rooms.grid import LEFT, N_ACTIONS, RIGHT, GridBatch, pose_index


class ViewGraphAgent(MemoryGraphAgent):
    """Dijkstra over the bank's own transitions between views and the reverses of its turns."""

    n_actions = N_ACTIONS

    def reset(self, obs: Observation, info: Info) -> None:
        bank = ViewAlbum().transitions(np.asarray(info.get("memory_bank", ())))
        super().reset(obs, {**info, "memory_bank": bank})

    @staticmethod
    def reverse(action: int) -> int | None:
        return {LEFT: RIGHT, RIGHT: LEFT}.get(action)


class GridOracle(Agent):
    """Knows the layout and its pose: walks a shortest path to the goal. The ceiling of navigation.

    Its layout is `info["layout"]`, a (size, size) array of classes, its goal `info["goal_pose"]`, at the reset.
    """

    def spawn(self, seed: int | None = None) -> GridOracle:
        return type(self)()

    def reset(self, obs: Observation, info: Info) -> None:
        self.graph = pose_graph(info["layout"])
        self.size = len(info["layout"])
        self.goal = pose_index(self.size, *info["goal_pose"])

    def act(self, obs: Observation, info: Info) -> int:
        path = nx.shortest_path(self.graph, pose_index(self.size, *info["pose"]), self.goal)
        return self.graph.edges[path[0], path[1]]["action"]


class GridOracleExplorer(Agent):
    """Knows the layout: goes each time where it sees most that is new for each move that it takes to get there.

    Its layout is `info["layout"]`, a (size, size) array of classes, at the reset.
    """

    def spawn(self, seed: int | None = None) -> GridOracleExplorer:
        return type(self)()

    def reset(self, obs: Observation, info: Info) -> None:
        self.graph = pose_graph(info["layout"])
        self.size = len(info["layout"])
        self.sight = GridBatch.of(np.asarray(info["layout"], np.int8)[None]).sight[0]
        self.seen = self.sight[pose_index(self.size, *info["pose"])].copy()
        self.path: list[int] = []

    def act(self, obs: Observation, info: Info) -> int:
        here = pose_index(self.size, *info["pose"])
        if len(self.path) < 2:
            ways = nx.single_source_shortest_path(self.graph, here)
            gain = {
                end: float((self.sight[way].any(0) & ~self.seen).sum()) / (len(way) - 1)
                for end, way in ways.items()
                if len(way) > 1
            }
            best = max(gain, key=lambda end: (gain[end], -len(ways[end])), default=here)
            if not gain or not gain[best]:
                return int(allowed_actions(info, N_ACTIONS)[0])
            self.path = ways[best]
        return self.graph.edges[self.path[0], self.path[1]]["action"]

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        self.seen |= self.sight[pose_index(self.size, *info["pose"])]
        self.path = self.path[1:]


def pose_graph(grid: np.ndarray) -> nx.DiGraph:
    """The free poses of a (size, size) layout, with an edge for each move that leads from one to another."""
    room = GridBatch.of(np.asarray(grid, np.int8)[None])
    graph: nx.DiGraph = nx.DiGraph()
    for pose in np.flatnonzero(room.free[0]).tolist():
        for action, end in enumerate(room.targets[0, pose].tolist()):
            if end != pose:
                graph.add_edge(pose, end, action=action)
    return graph
