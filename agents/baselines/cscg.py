"""A clone-structured cognitive graph (George et al., 2021, Nature Communications 12:2392), written from its paper.

A hidden Markov model in which each state that can be observed has some hidden clones, and a clone shows its state
alone. The transitions between clones under each action are learned from walks by expectation maximisation, which tells
places that look alike apart by what comes before and after them, and then by Viterbi training. Plans are ways on the
graph of clones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from eswm_gym.agents.base import Agent, Info, Observation, allowed_actions
from eswm_gym.agents.states import state_of

CLONES = 10  # of each state
SOFT, HARD = 60, 5  # rounds of expectation maximisation, and of Viterbi training
PSEUDOCOUNT = 2e-3  # of each transition between clones, while learning
LEAST = 0.05  # probability of a transition that plans use


class CloneGraph(NamedTuple):
    """What was learned of a room with H clones of its states.

    Attributes:
        moves: (A, H, H) float32, the probability that an action leads from a clone to another.
        visits: (H,) float32, how often the walk came to each clone.
    """

    moves: np.ndarray
    visits: np.ndarray


class CSCGAgent(Agent):
    """Follows the likeliest way over a graph of clones; it does not learn while it acts.

    Args:
        graph: what `fit` learned of the room.
        seed: of random moves, where no way is known.
    """

    def __init__(self, graph: CloneGraph, seed: int | None = None) -> None:
        self.graph, self.rng = graph, np.random.default_rng(seed)
        self._likely = np.where(graph.moves >= LEAST, graph.moves, 0)
        self.belief, self._goal, self._ahead = graph.visits, -1, np.zeros(0)

    def spawn(self, seed: int | None = None) -> CSCGAgent:
        return CSCGAgent(self.graph, seed)

    def reset(self, obs: Observation, info: Info) -> None:
        self.belief = self._clones(obs)

    def act(self, obs: Observation, info: Info) -> int:
        allowed = allowed_actions(info, len(self._likely))
        if self._goal != (goal := state_of(obs["goal"])):
            self._goal, self._ahead = goal, distances_to(self._likely, clones_of(goal))
        arrives = self.belief @ self._likely  # (A, H)
        # Clones that never took an action say nothing of it; where no way is known on, that counts as a long way.
        told, long = arrives.sum(1), len(self._ahead)
        cost = np.where(told > LEAST, arrives @ np.minimum(self._ahead, long) / np.maximum(told, LEAST), long)
        best = allowed[cost[allowed] <= cost[allowed].min() + 1e-9]
        return int(self.rng.choice(best))

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        seen = self._clones(next_obs)
        belief = self.belief @ self.graph.moves[action] * (seen > 0)
        self.belief = belief / belief.sum() if belief.sum() > 1e-9 else seen

    def _clones(self, obs: Observation) -> np.ndarray:
        """(H,) float, which clone of the state that is seen it may be, as often as the walk came there."""
        belief = np.zeros(len(self.graph.visits))
        clones = clones_of(state_of(obs["state"]))
        belief[clones] = self.graph.visits[clones] + 1e-3
        return belief / belief.sum()


def clones_of(state: int) -> slice:
    """The clones of a state."""
    return slice(state * CLONES, (state + 1) * CLONES)


def distances_to(moves: np.ndarray, goals: slice) -> np.ndarray:
    """(H,) float, what the likeliest way from each clone to the nearest of the goals costs: 1 - log p each move."""
    best = moves.max(0)
    start, end = np.nonzero(best >= LEAST)
    graph = csr_array((1 - np.log(best[start, end]), (end, start)), shape=best.shape)  # backwards
    return dijkstra(graph, indices=np.arange(len(best))[goals], min_only=True)


def fit(walks: np.ndarray, n_states: int, n_actions: int = 6, seed: int = 0) -> list[CloneGraph]:
    """Learn the graphs of R rooms at once.

    Args:
        walks: (R, T, 3) int, transitions (s_s, a, s_e), each of which starts where the last one ended.
        n_states: of the vocabulary.

    Returns:
        One for each room.
    """
    rooms, steps = len(walks), walks.shape[1]
    states, actions = np.concatenate([walks[:, :, 0], walks[:, -1:, 2]], 1), walks[:, :, 1]
    # (room, action, state, clone, state, clone); where a room does not show a state nothing is ever counted.
    shape = rooms, n_actions, n_states, CLONES, n_states, CLONES
    moves = _normalized(np.random.default_rng(seed).random(shape, dtype=np.float32) + 0.5)
    every = np.arange(rooms)

    def block(t: int) -> tuple:
        return every, actions[:, t], states[:, t], slice(None), states[:, t + 1]

    for round_ in range(SOFT + HARD):
        hard = round_ >= SOFT
        ahead = np.ones((steps + 1, rooms, CLONES), np.float32)  # of what comes after
        for t in reversed(range(steps)):
            weighted = moves[block(t)] * ahead[t + 1][:, None]
            ahead[t] = weighted.max(2) if hard else weighted.sum(2)
            ahead[t] /= ahead[t].sum(1, keepdims=True)
        counts = np.full(shape, PSEUDOCOUNT if not hard else PSEUDOCOUNT / 10, np.float32)
        here = _likeliest(ahead[0]) if hard else ahead[0]
        for t in range(steps):
            both = here[:, :, None] * moves[block(t)] * ahead[t + 1][:, None]  # (R, clone, clone)
            if hard:
                both = _likeliest(both.reshape(rooms, -1)).reshape(both.shape)
            both /= both.sum((1, 2), keepdims=True)
            counts[block(t)] += both
            here = both.sum(1)
        moves = _normalized(counts)
    hidden = n_states * CLONES
    visits = counts.sum((1, 2, 3)).reshape(rooms, hidden)
    return list(map(CloneGraph, moves.reshape(rooms, n_actions, hidden, hidden), visits))


def _normalized(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum((4, 5), keepdims=True)


def _likeliest(p: np.ndarray) -> np.ndarray:
    """(R, N) float, 1 at the greatest number of each row."""
    found = np.zeros_like(p)
    found[np.arange(len(p)), p.argmax(1)] = 1
    return found
