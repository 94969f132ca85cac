"""Planning over transitions, imagined or remembered (paper: algorithm "Dijkstra-Style Pathfinding with ESWM",
section "Planning by Guided Imagination")."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import torch

from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.checks import require_choices
from eswm_gym.rooms.transitions import END, MASKED, pad
from eswm_gym.world_model import ESWM

COSTS = ("steps", "tries", "caution", "uncertainty")
CERTAIN_MOVE = 1e-3  # the cost of a certain move when the cost is the uncertainty
CAUTION = 30.0  # steps that a move costs besides itself, per nat of its surprise, when the cost is "caution"
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
        new: (K, A) float, how many cells of MiniGrid one is expected to see for the first time where the move ends;
            None where states are no views.
    """

    states: np.ndarray
    end: np.ndarray
    probability: np.ndarray
    entropy: np.ndarray
    new: np.ndarray | None = None

    @cached_property
    def index(self) -> dict[int, int]:
        """The row of each known state."""
        return {state: row for row, state in enumerate(self.states.tolist())}

    def row(self, state: int) -> int | None:
        """The row of a state, None if it is not known."""
        return self.index.get(state)

    def ends_of(self, state: int) -> list[int]:
        """(A,) where each move from a state ends, UNKNOWN if it is not known."""
        row = self.row(state)
        return [UNKNOWN] * self.end.shape[1] if row is None else self.end[row].tolist()

    def rename(self, old: int, new: int) -> TransitionTable:
        """The same table with one state in place of another."""
        states, end = (np.where(array == old, new, array) for array in (self.states, self.end))
        return replace(self, states=states, end=end)

    def without_places(self, blocked: Collection[int], unknown: Collection[int]) -> TransitionTable:
        """The table without the rows of named places.

        A move to a blocked place stays where it starts; where a move to an unknown place ends is unknown.
        """
        end = np.where(np.isin(self.end, list(blocked)), self.states[:, None], self.end)
        end = np.where(np.isin(end, list(unknown)), UNKNOWN, end)
        rows = ~np.isin(self.states, [*blocked, *unknown])
        new = None if self.new is None else self.new[rows]
        return TransitionTable(self.states[rows], end[rows], self.probability[rows], self.entropy[rows], new)

    def with_facts(self, *banks: Iterable[Transition]) -> TransitionTable:
        """The same table, but the transitions in the banks are certain; where banks disagree, the last one counts."""
        end, probability, entropy = self.end.copy(), self.probability.copy(), self.entropy.copy()
        new = None if self.new is None else self.new.copy()
        for source, action, s_e in chain(*banks):
            if source in self.index:
                cell = self.index[source], action
                end[cell], probability[cell], entropy[cell] = s_e, 1.0, 0.0
                if new is not None:
                    new[cell] = 0.0
        return replace(self, end=end, probability=probability, entropy=entropy, new=new)


@torch.inference_mode()
def imagine_tables(
    model: ESWM,
    banks: Sequence[MemoryBank],
    also: Sequence[Collection[int]] | None = None,
    facts: Sequence[Collection[Transition]] | None = None,
    chunk: int = 8,
) -> list[TransitionTable]:
    """Imagine every move from every known state, for many banks in one pass.

    Args:
        model: frozen.
        banks: B memory banks of any lengths.
        also: for each bank, states to include that it may not hold, such as the agent's.
        facts: for each bank, moves that the model is not asked about, with what the table shall hold for certain: their
            ends, or UNKNOWN.
        chunk: the number of banks in one pass; more than a few do not fit into the cache of a CPU and are slower.

    Returns:
        B tables.

    Raises:
        ValueError: if a state is outside the model's vocabulary, or the model predicts what is not a number.
    """
    facts = facts or [()] * len(banks)
    tables: list[TransitionTable] = []
    for known, memories, query in every_move(model, banks, also, chunk):
        certain = facts[len(tables) :][: len(known)]
        asked = _asked(known, certain, model.config.n_actions)
        which = (~asked).argsort(1, kind="stable")[:, : asked.sum(1).max()]  # those not asked come last
        query = query.gather(1, torch.from_numpy(which).to(query.device)[..., None].expand(-1, -1, query.shape[2]))
        cells, unknown, _ = model.imagine(memories, query[..., :1], query[..., 1])
        p = torch.cat([cells[:, :, 0], unknown[..., None]], -1)
        require_numbers(model, p)
        entropy = torch.special.entr(p).sum(-1)
        probability, end = p.max(-1)
        end = torch.where(end == p.shape[-1] - 1, UNKNOWN, end)
        parts = []
        for values, otherwise in ((end, UNKNOWN), (probability, 1), (entropy, 0)):
            part = np.full(asked.shape, otherwise, values.cpu().numpy().dtype)
            np.put_along_axis(part, which, values.cpu().numpy(), 1)
            part[~asked] = otherwise
            parts.append(part.reshape(len(known), -1, model.config.n_actions))
        for i, states in enumerate(known):
            table = TransitionTable(np.array(states, np.int64), *(part[i, : len(states)] for part in parts))
            tables.append(table.with_facts(certain[i]))
    return tables


def _asked(known: Sequence[Sequence[int]], facts: Sequence[Collection[Transition]], n_actions: int) -> np.ndarray:
    """(b, K * A) bool, which of the moves of `every_move` the model has to be asked about."""
    asked = np.zeros((len(known), max(map(len, known)), n_actions), bool)
    for moves, states, certain in zip(asked, known, facts, strict=True):
        row = {state: i for i, state in enumerate(states)}
        moves[: len(states)] = True
        for source, action, _ in certain:
            if source in row:
                moves[row[source], action] = False
    return asked.reshape(len(known), -1)


def require_numbers(model: ESWM, *predicted: torch.Tensor) -> None:
    """Refuse predictions that are not numbers: with those, all moves would look equally good.

    Raises:
        ValueError: naming the model.
    """
    if not all(p.isfinite().all() for p in predicted):
        raise ValueError(f"{type(model).__name__} predicts nan: its weights are damaged ({model.config})")


def every_move(
    model: ESWM, banks: Sequence[MemoryBank], also: Sequence[Collection[int]] | None = None, chunk: int = 8
) -> Iterator[tuple[list[list[int]], torch.Tensor, torch.Tensor]]:
    """Ask for the end of every move from every known state; arguments as for `imagine_tables`.

    Yields:
        For each chunk of b banks: the known states of each bank, at most K; (b, N, 3) int banks; and (b, K * A, 3) int
        queries, the A moves of each state side by side. A bank with fewer states has its own queries first.
    """
    also, n_actions = also or [()] * len(banks), model.config.n_actions
    for first in range(0, len(banks), chunk):
        some = banks[first : first + chunk]
        known = [sorted({*bank.states, *extra}) for bank, extra in zip(some, also[first:], strict=False)]
        query = np.zeros((len(some), max(map(len, known)), n_actions, 3), np.int64)
        for rows, states in zip(query, known, strict=True):
            rows[: len(states), :, 0] = np.array(states)[:, None]
        query[..., 1] = np.arange(n_actions)
        query[..., END] = MASKED
        memories = torch.from_numpy(pad([bank.to_numpy() for bank in some])).to(model.device)
        queries = torch.from_numpy(query).to(model.device).flatten(1, 2)  # (b, K, A, 3) -> (b, K * A, 3)
        yield known, memories, queries


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
        cost: "steps": the shortest plan and, among the shortest, the most probable. "tries": a move costs 1 / p, as
            often as it has to be tried until it succeeds. "uncertainty": a move costs
            -log p and `CERTAIN_MOVE`, so that certain moves are not free. "caution": between the two, a move costs
            1 - `CAUTION` log p.
        distance: A*'s heuristic, from each state to the goal in the unit of the cost; None for Dijkstra's algorithm.
            A state that it lacks counts as cut off. The plan is sure to be the best only if the heuristic is
            consistent: from one state to the next it falls by no more than the cost of the move.

    Returns:
        The plan; `plan.found` is False if there is none within the horizon.

    Raises:
        ValueError: if the cost is none of `COSTS`.
    """
    require_choices(cost=(cost, COSTS))
    row = table.index
    bounded = horizon is not None and not (cost == "steps" and distance is None)
    horizon = len(row) if horizon is None else horizon
    surprise = -np.log(np.maximum(table.probability, 1e-12))
    price = {
        "steps": np.ones_like(surprise),
        "tries": np.exp(surprise),
        "caution": 1 + CAUTION * surprise,
        "uncertainty": surprise + CERTAIN_MOVE,
    }[cost]

    def ahead(state: int) -> float:
        return 0.0 if distance is None else distance.get(state, math.inf)

    def node(state: int, steps: int) -> tuple[int, int]:
        """A node of the search. With a horizon steps count too: the cheapest way to a state may be too long."""
        return state, steps if bounded else 0

    # Where sums of cost and estimate are equal, the node nearer to the goal comes first, then the more probable one.
    best = {node(start, 0): (0.0, 0.0)}
    parent: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
    frontier: list[tuple[float, float, float, int, int]] = [(ahead(start), ahead(start), 0.0, 0, start)]
    # Steps with which each state was expanded. The cheapest way comes first: a later one helps only if it is shorter.
    fewest: dict[int, int] = {}
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
        The plan; `plan.found` is False if the policy gets stuck or returns to a state of the plan.
    """
    states, actions, probability = [start], list[int](), 1.0
    horizon = len(table.states) if horizon is None else horizon
    while states[-1] != goal:
        row = table.row(states[-1])
        ends = [] if row is None or len(actions) >= horizon else table.ends_of(states[-1])
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
