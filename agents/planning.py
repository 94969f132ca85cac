"""Planning over transitions, imagined or remembered (paper: algorithm "Dijkstra-Style Pathfinding with ESWM",
section "Planning by Guided Imagination")."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eswm_gym.agents.memory_bank import MemoryBank
from eswm_gym.checks import require_choices
from eswm_gym.rooms import N_ACTIONS
from eswm_gym.world_model import END, ESWM, MASKED, EncodedBank

COSTS = ("steps", "uncertainty")
CERTAIN_MOVE = 1e-3  # what a move costs that is certain, when the cost is the uncertainty
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
        end: (K, A) int, of A actions the most likely end state, UNKNOWN for "I don't know".
        probability: (K, A) float, of that answer.
        entropy: (K, A) float, of the whole prediction, in nats.
    """

    states: np.ndarray
    end: np.ndarray
    probability: np.ndarray
    entropy: np.ndarray

    def row(self, state: int) -> int | None:
        """Index of a state, None if it is not known."""
        found = np.flatnonzero(self.states == state)
        return int(found[0]) if len(found) else None

    def rename(self, old: int, new: int) -> TransitionTable:
        """The same table with one state put for another."""
        states, end = (np.where(array == old, new, array) for array in (self.states, self.end))
        return replace(self, states=states, end=end)

    def resolve(self, blocked: Collection[int], unknown: Collection[int]) -> TransitionTable:
        """The table to plan with: some ends are blocked, so that one stays, others unknown; and neither has a row."""
        end = np.where(np.isin(self.end, list(blocked)), self.states[:, None], self.end)
        end = np.where(np.isin(end, list(unknown)), UNKNOWN, end)
        rows = ~np.isin(self.states, [*blocked, *unknown])
        return TransitionTable(self.states[rows], end[rows], self.probability[rows], self.entropy[rows])

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
        ValueError: if a state is outside the model's vocabulary, or the model predicts what is not a number.
    """
    tables: list[TransitionTable] = []
    for known, encoded, query in every_move(model, banks, also, chunk):
        cells, unknown = model.imagine(encoded, query[..., :1], query[..., 1])
        p = torch.cat([cells[:, :, 0], unknown[..., None]], -1)
        require_numbers(model, p)
        entropy = torch.special.entr(p).sum(-1)
        probability, end = p.max(-1)
        end = torch.where(end == p.shape[-1] - 1, UNKNOWN, end)
        parts = [t.unflatten(1, (-1, N_ACTIONS)).cpu().numpy() for t in (end, probability, entropy)]
        tables += [
            TransitionTable(np.array(states, np.int64), *(part[i, : len(states)] for part in parts))
            for i, states in enumerate(known)
        ]
    return tables


def require_numbers(model: ESWM, *predicted: torch.Tensor) -> None:
    """Refuse predictions that are not numbers: of those, any move would be as good as any other.

    Raises:
        ValueError: naming the model.
    """
    if not all(p.isfinite().all() for p in predicted):
        raise ValueError(f"{type(model).__name__} predicts nan: its weights are damaged ({model.config})")


def every_move(
    model: ESWM, banks: Sequence[MemoryBank], also: Sequence[Collection[int]] | None = None, chunk: int = 8
) -> Iterator[tuple[list[list[int]], EncodedBank, torch.Tensor]]:
    """Ask for the end of every move from every known state; arguments as for `imagine_tables`.

    Yields:
        For each chunk of b banks: the K states known of each, the encoded banks, and (b, 6 K, 3) int queries, the
        six moves of a state side by side; those beyond 6 K of a smaller bank are to be ignored.
    """
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
        yield (
            known,
            model.encode(torch.from_numpy(memories).to(device)),
            torch.from_numpy(query).to(device).flatten(1, 2),
        )


def search(
    table: TransitionTable,
    start: int,
    goal: int,
    horizon: int | None = None,
    cost: str = "steps",
    distance: Mapping[int, float] | None = None,
) -> Plan:
    """Find the best plan: Dijkstra's algorithm, or A* where there is an estimate of the distances to the goal.

    Args:
        table: the transitions to plan with.
        start, goal: states.
        horizon: longest plan; None: as many moves as there are states.
        cost: "steps": the shortest plan and, among the shortest, the most probable; "uncertainty": the most
            probable, each move costing -log p and, since certain moves should not be free, a little more.
        distance: A*'s heuristic, from each state to the goal in the unit of the cost; none is Dijkstra's. A state
            that it lacks counts as cut off. The plan is the best for sure only if it never overestimates, nor falls by
            more than a move costs.

    Returns:
        The plan; `plan.found` is False if there is none within the horizon.

    Raises:
        ValueError: if the cost is neither "steps" nor "uncertainty".
    """
    require_choices(cost=(cost, COSTS))
    row = {int(state): i for i, state in enumerate(table.states)}
    bounded = horizon is not None and not (cost == "steps" and distance is None)
    horizon = len(row) if horizon is None else horizon
    surprise = -np.log(np.maximum(table.probability, 1e-12))
    price = np.ones_like(surprise) if cost == "steps" else surprise + CERTAIN_MOVE

    def ahead(state: int) -> float:
        return 0.0 if distance is None else distance.get(state, math.inf)

    def node(state: int, steps: int) -> tuple[int, int]:
        """Within a horizon the cheapest way to a state may be too long, and another one is needed."""
        return state, steps if bounded else 0

    # Equal sums of cost and estimate: the one that is further on, then the more probable one, goes first.
    best = {node(start, 0): (0.0, 0.0)}
    parent: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
    frontier: list[tuple[float, float, float, int, int]] = [(ahead(start), ahead(start), 0.0, 0, start)]
    fewest: dict[int, int] = {}  # steps with which a state was expanded: cheapest first, so that only fewer can help
    while frontier:
        _, _, unlikely, steps, state = heapq.heappop(frontier)
        here = node(state, steps)
        if state == goal:
            states, actions = [state], []
            while here in parent:
                here, action = parent[here]
                states.append(here[0])
                actions.append(action)
            return Plan(tuple(states[::-1]), tuple(actions[::-1]), math.exp(-unlikely), len(fewest))
        if here[1] >= fewest.get(state, math.inf) or steps >= horizon or state not in row:
            continue
        fewest[state] = here[1]
        for action in range(table.end.shape[1]):
            end = int(table.end[row[state], action])
            there = node(end, steps + 1)
            reached = (
                best[here][0] + float(price[row[state], action]),
                best[here][1] + float(surprise[row[state], action]),
            )
            if end in (UNKNOWN, state) or there[1] >= fewest.get(end, math.inf):
                continue
            if reached < best.get(there, (math.inf, 0.0)):
                best[there], parent[there] = reached, (here, action)
                heapq.heappush(frontier, (reached[0] + ahead(end), ahead(end), reached[1], steps + 1, end))
    return Plan(expanded=len(fewest))


def follow(
    table: TransitionTable, start: int, goal: int, distance: Mapping[int, float], horizon: int | None = None
) -> Plan:
    """The greedy policy: go each time to the end state that is least far from the goal.

    Args:
        table, start, goal, horizon: as for `search`.
        distance: from each state to the goal; a state that it lacks counts as cut off.

    Returns:
        The plan; `plan.found` is False if the policy gets stuck or comes back to where it has been.
    """
    states, actions, probability = [start], list[int](), 1.0
    horizon = len(table.states) if horizon is None else horizon
    while states[-1] != goal:
        row = table.row(states[-1])
        ends = [] if row is None or len(actions) >= horizon else table.end[row].tolist()
        moves = [
            (distance.get(end, math.inf), -table.probability[row, action], action)
            for action, end in enumerate(ends)
            if end not in (UNKNOWN, states[-1])
        ]
        far, unlikely, action = min(moves, default=(math.inf, 0.0, 0))
        if math.isinf(far) or ends[action] in states:
            return Plan(expanded=len(actions))
        states.append(ends[action])
        actions.append(action)
        probability *= float(-unlikely)
    return Plan(tuple(states), tuple(actions), probability, len(actions))
