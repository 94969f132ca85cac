"""Planning over transitions, imagined or remembered (paper: algorithm "Dijkstra-Style Pathfinding with ESWM")."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.rooms import N_ACTIONS
from eswm_gym.world_model import END, ESWM, MASKED

UNKNOWN = -1  # "I don't know", or a move that was not imagined


@dataclass(frozen=True)
class Plan:
    """The way from a start to a goal.

    Attributes:
        states: start, ..., goal; empty if there is no plan.
        actions: one fewer.
        probability: of the whole plan, the product over its transitions; 0 if there is no plan.
        expanded: how many states the search expanded.
    """

    states: tuple[int, ...] = ()
    actions: tuple[int, ...] = ()
    probability: float = 0.0
    expanded: int = 0

    @property
    def found(self) -> bool:
        return bool(self.states)

    def __len__(self) -> int:
        return len(self.actions)


@dataclass(frozen=True)
class TransitionTable:
    """Where each move from each of K known states ends.

    Attributes:
        states: (K,) int, the known states.
        end: (K, 6) int, the most likely end state, UNKNOWN for "I don't know".
        probability: (K, 6) float, of that answer.
        entropy: (K, 6) float, of the whole prediction, in nats.
    """

    states: np.ndarray
    end: np.ndarray
    probability: np.ndarray
    entropy: np.ndarray

    def row(self, state: int) -> int | None:
        """Index of a state, None if it is not known."""
        found = np.flatnonzero(self.states == state)
        return int(found[0]) if len(found) else None

    def with_facts(self, bank: MemoryBank) -> TransitionTable:
        """The same table, but what the bank holds is certain."""
        end, probability, entropy = self.end.copy(), self.probability.copy(), self.entropy.copy()
        row = {int(state): i for i, state in enumerate(self.states)}
        for source, action, s_e in bank:
            if source in row:
                cell = row[source], action
                end[cell], probability[cell], entropy[cell] = s_e, 1.0, 0.0
        return TransitionTable(self.states, end, probability, entropy)


@torch.inference_mode()
def imagine_tables(
    model: ESWM, banks: Sequence[MemoryBank], also: Sequence[Collection[int]] | None = None, chunk: int = 8
) -> list[TransitionTable]:
    """Imagine every move from every known state, for many banks in one pass.

    Args:
        model: frozen.
        banks: B memory banks of any lengths.
        also: for each bank, states to include that it may not hold, such as the agent's.
        chunk: banks in one pass; more than a few leave the cache of a CPU and are slower.

    Returns:
        B tables.

    Raises:
        ValueError: if a state is outside the model's vocabulary.
    """
    tables: list[TransitionTable] = []
    also = also or [()] * len(banks)
    device = next(model.parameters()).device
    for first in range(0, len(banks), chunk):
        some = banks[first : first + chunk]
        known = [sorted({*bank.states, *extra}) for bank, extra in zip(some, also[first:], strict=False)]
        memories = np.full((len(some), max(1, *map(len, some)), 3), MASKED)
        query = np.zeros((len(some), max(map(len, known)), N_ACTIONS, 3), np.int64)
        for i, (bank, states) in enumerate(zip(some, known, strict=True)):
            memories[i, : len(bank)] = bank.to_numpy()
            query[i, : len(states), :, 0] = np.array(states)[:, None]
        query[..., 1] = np.arange(N_ACTIONS)
        query[..., END] = MASKED
        encoded = model.encode(torch.from_numpy(memories).to(device))
        asked = torch.from_numpy(query).to(device).flatten(1, 2)
        p = model.imagine(encoded, asked[..., 0], asked[..., 1])
        entropy = torch.special.entr(p).sum(-1)
        probability, end = p.max(-1)
        end = torch.where(end == p.shape[-1] - 1, UNKNOWN, end)
        parts = [t.unflatten(1, (-1, N_ACTIONS)).cpu().numpy() for t in (end, probability, entropy)]
        tables += [
            TransitionTable(np.array(states, np.int64), *(part[i, : len(states)] for part in parts))
            for i, states in enumerate(known)
        ]
    return tables


def dijkstra(table: TransitionTable, start: int, goal: int, horizon: int | None = None) -> Plan:
    """Find the shortest plan and, among the shortest, the most probable.

    Args:
        table: the transitions to plan with.
        start, goal: states.
        horizon: longest plan; None: as many moves as there are states.

    Returns:
        The plan; `plan.found` is False if there is none within the horizon.
    """
    row = {int(state): i for i, state in enumerate(table.states)}
    horizon = len(row) if horizon is None else horizon
    surprise = -np.log(np.maximum(table.probability, 1e-12))
    best: dict[int, tuple[int, float]] = {start: (0, 0.0)}
    parent: dict[int, tuple[int, int]] = {}
    frontier: list[tuple[int, float, int]] = [(0, 0.0, start)]
    done: set[int] = set()
    while frontier:
        cost, unlikely, state = heapq.heappop(frontier)
        if state == goal:
            states, actions = [goal], []
            while state != start:
                state, action = parent[state]
                states.append(state)
                actions.append(action)
            return Plan(tuple(states[::-1]), tuple(actions[::-1]), math.exp(-unlikely), len(done))
        if state in done or cost >= horizon or state not in row:
            continue
        done.add(state)
        for action in range(N_ACTIONS):
            end = int(table.end[row[state], action])
            reached = cost + 1, unlikely + float(surprise[row[state], action])
            if end != UNKNOWN and end != state and reached < best.get(end, (horizon + 1, 0.0)):
                best[end], parent[end] = reached, (state, action)
                heapq.heappush(frontier, (*reached, end))
    return Plan(expanded=len(done))
