"""Environments that other people wrote, as tables of their moves, and memory banks of them."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  registers its environments
import networkx as nx
import numpy as np
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from eswm_gym.wrappers import AbsoluteMoves, DiscreteStates, Poses

Move = tuple[int, int]  # a state and an action


def _frozen_lake(seed: int, known: bool, **options: Any) -> DiscreteStates:
    return DiscreteStates(gym.make("FrozenLake-v1", is_slippery=False, **options), lattice="square" if known else None)


def _random_lake(seed: int, known: bool) -> DiscreteStates:
    return _frozen_lake(seed, known, desc=generate_random_map(size=8, p=0.8, seed=seed))


def _cliff(seed: int, known: bool) -> DiscreteStates:
    told = {"lattice": "square", "actions": ("up", "right", "down", "left")} if known else {}
    return DiscreteStates(gym.make("CliffWalking-v1"), goal=47, **told)


def _cells(seed: int, known: bool, name: str) -> DiscreteStates:
    return DiscreteStates(AbsoluteMoves(gym.make(name)), lattice="square" if known else None)


def _poses(seed: int, known: bool, name: str) -> DiscreteStates:
    return DiscreteStates(Poses(gym.make(name)), lattice="pose" if known else None)


def _labyrinth(seed: int, known: bool) -> DiscreteStates:
    from popgym.envs.labyrinth_escape import LabyrinthEscapeEasy  # of the extra `foreign`

    told: dict[str, Any] = {"lattice": "square", "actions": ("left", "right", "up", "down")} if known else {}
    return DiscreteStates(LabyrinthEscapeEasy(), key=lambda observation, world: tuple(world.position), **told)


# Functions of the seed of the layout, and of whether the lattice and the names of the actions are known. MiniGrid's
# layouts come from the seed of `reset`, which is the same one.
WORLDS: dict[str, Callable[[int, bool], DiscreteStates]] = {
    "frozen-lake-4x4": partial(_frozen_lake, map_name="4x4"),
    "frozen-lake-8x8": partial(_frozen_lake, map_name="8x8"),
    "frozen-lake-random": _random_lake,
    "cliff-walking": _cliff,
    "minigrid-empty-8x8": partial(_cells, name="MiniGrid-Empty-8x8-v0"),
    "minigrid-simple-crossing-s9n1": partial(_cells, name="MiniGrid-SimpleCrossingS9N1-v0"),
    "minigrid-simple-crossing-s9n3": partial(_cells, name="MiniGrid-SimpleCrossingS9N3-v0"),
    "minigrid-multi-room-n2": partial(_cells, name="MiniGrid-MultiRoom-N2-S4-v0"),
    "popgym-labyrinth": _labyrinth,
    "minigrid-four-rooms-poses": partial(_poses, name="MiniGrid-FourRooms-v0"),
}


@dataclass(frozen=True)
class Table:
    """All moves of a deterministic environment.

    Attributes:
        n_actions: number of actions.
        actions: (A,) int64, the world model's numbers of them.
        start: the state where episodes begin.
        goals: the states that count as success.
        end: where each move ends.
        last: the moves that end an episode.
    """

    n_actions: int
    actions: np.ndarray
    start: int
    goals: frozenset[int]
    end: dict[Move, int]
    last: frozenset[Move]

    @property
    def dead_ends(self) -> list[int]:
        """States in which an episode ends without success."""
        return sorted({self.end[move] for move in self.last} - self.goals)

    def graph(self) -> nx.DiGraph:
        """States, with an edge for each pair of them that a move joins; `actions` has the moves."""
        graph: nx.DiGraph = nx.DiGraph()
        for (state, action), end in self.end.items():
            if state != end:
                graph.add_edge(state, end)
                graph.edges[state, end].setdefault("actions", []).append(action)
        return graph


def table_of(env: DiscreteStates, seed: int) -> Table:
    """Try every action in every state that can be reached; the environment itself does not change but for its reset."""
    obs, _ = env.reset(seed=seed)
    start, n_actions = int(obs["state"]), len(env.actions)
    worlds, end, last, paid = {start: env.env}, dict[Move, int](), set[Move](), set[int]()
    queue = deque([start])
    while queue:
        state = queue.popleft()
        for action in range(n_actions):
            world = copy.deepcopy(worlds[state])
            shown, reward, terminated, _, _ = world.step(action)
            there = env.number(env.key(shown, world.unwrapped))
            end[state, action] = there
            if reward > 0:
                paid.add(there)
            if terminated:
                last.add((state, action))
            elif there not in worlds:
                worlds[there] = world
                queue.append(there)
    goals = paid if env.given_goal is None else {env.given_goal}
    return Table(n_actions, env.actions, start, frozenset(goals), end, frozenset(last))


def spanning_bank(
    table: Table, rng: np.random.Generator, states: Collection[int] | None = None, bumps: float = 0.3
) -> np.ndarray:
    """A tree over the states, one move into each state where an episode ends, and some of the bumps.

    Args:
        table: of the environment.
        rng: source of randomness.
        states: those to span. None: all.
        bumps: share of the blocked moves that the bank holds.

    Returns:
        (N, 3) int64, in random order.
    """
    graph = table.graph()
    graph = graph if states is None else graph.subgraph(states)
    leaves = [state for state in graph if (state, 0) not in table.end]
    rows = []
    joined = graph.subgraph(set(graph) - set(leaves)).to_undirected()
    for here, there in joined.edges:
        joined.edges[here, there]["weight"] = rng.random()
    for edge in nx.minimum_spanning_edges(joined, data=False):
        ways = [(s, a, e) for s, e in (edge, edge[::-1]) if graph.has_edge(s, e) for a in graph.edges[s, e]["actions"]]
        rows.append(ways[rng.integers(len(ways))])
    for leaf in leaves:
        ways = [(s, a, leaf) for s in graph.predecessors(leaf) for a in graph.edges[s, leaf]["actions"]]
        rows.append(ways[rng.integers(len(ways))])
    rows += [(s, a, s) for (s, a), e in table.end.items() if s == e and s in graph and rng.random() < bumps]
    return rng.permutation(np.array(rows, np.int64).reshape(-1, 3))


class TableEnv(gym.Env):
    """Episodes in a table, from any start to any goal; `reset` hands out a memory bank and the dead ends."""

    def __init__(self, table: Table, bank: np.ndarray, start: int, goal: int) -> None:
        self.table, self.bank, self.start, self.goal = table, bank, start, goal
        self.action_space = gym.spaces.Discrete(table.n_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        super().reset(seed=seed)
        self.state = self.start
        return self._observation(), {"memory_bank": self.bank, "dead_ends": self.table.dead_ends}

    def step(self, action: Any) -> tuple[dict, float, bool, bool, dict]:
        move = self.state, int(action)
        self.state = self.table.end[move]
        success = self.state == self.goal
        terminated = success or move in self.table.last
        return self._observation(), float(success), terminated, False, {"is_success": success, "terminated": terminated}

    def _observation(self) -> dict[str, Any]:
        return {"state": np.array(self.state), "goal": np.array(self.goal), "actions": self.table.actions}
