"""An agent's memory bank: transitions that it keeps, edits and hands to the world model."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from networkx.utils import UnionFind

from eswm_gym.state_numbers import StateNumbers

Transition = tuple[int, int, int]


class MemoryBank:
    """An ordered set of transitions (s_s, a, s_e), the oldest first.

    A move leads to one state: a transition replaces the one that contradicts it (same source and action, another
    end). A full bank forgets its oldest transition.

    Args:
        transitions: (N, 3) array or iterable of triples; rows with a negative action are padding and are dropped.
        capacity: the greatest number of transitions to keep; None for no limit.
        n_actions: actions are 0 ... n_actions - 1; None for no limit.

    Raises:
        ValueError: if there are more transitions than the capacity, or one of them is no transition.
    """

    def __init__(self, transitions: Iterable = (), capacity: int | None = None, n_actions: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity, self.n_actions = capacity, n_actions
        self._ends: dict[tuple[int, int], int] = {}
        for row in transitions:
            source, action, end = _integers(row)
            if action >= 0:
                if self.is_full and (source, action) not in self._ends:
                    raise ValueError(f"more than the bank's capacity of {capacity} transitions")
                self.add(source, action, end)

    @classmethod
    def holding(cls, transitions: Iterable, capacity: int | None, n_actions: int | None = None) -> MemoryBank:
        """A bank of any number of transitions; of too many it keeps those that join states, and the newest of others.

        The others are the first that it will forget.

        Raises:
            ValueError: if one of them is no transition.
        """
        every = cls(transitions, n_actions=n_actions)
        if capacity is None or len(every) <= capacity:
            return cls(every, capacity, n_actions)
        joined, joins, others = UnionFind(), list[Transition](), list[Transition]()
        for transition in every:
            source, _, end = transition
            (others if joined[source] == joined[end] else joins).append(transition)
            joined.union(source, end)
        joins = joins[-capacity:]
        return cls([*others[len(others) + len(joins) - capacity :], *joins], capacity, n_actions)

    @classmethod
    def from_minari(
        cls,
        dataset: Any,
        key: Callable[[Any], Any] | None = None,
        number: Callable[[Any], int] | None = None,
        episodes: Iterable[int] | None = None,
        capacity: int | None = None,
        n_actions: int | None = None,
    ) -> MemoryBank:
        """The transitions of a Minari dataset, as if they were lived through one after another.

        Args:
            dataset: a `minari.MinariDataset`, or another object with its `iterate_episodes`. Actions are integers.
            key: what of an observation tells states apart, such as a position. None: its entry `state` if it is a
                dictionary with one, else the whole observation.
            number: the number of a state as `key` shows it: `DiscreteStates.number` of the environment that the bank is
                for, or `ESWMAgent.number` where states are bits. None: integers are their own numbers, other states
                are numbered from 0 as they come.
            episodes: the ids of those to read; None for all. In a world that is new in each episode, read one.
            capacity, n_actions: of the bank, which forgets its oldest transition when it is full.

        Raises:
            ValueError: naming an action that is no integer, or a transition that `checked` refuses.
            TypeError: if a state is neither hashable nor an array, nor made of such.
        """
        key, number = key or _state_in, number or _own_number()
        bank = cls(capacity=capacity, n_actions=n_actions)
        for episode in dataset.iterate_episodes(episodes):
            states = [number(key(observation)) for observation in _steps(episode.observations)]
            for (source, end), action in zip(pairwise(states), _steps(episode.actions), strict=True):
                if np.ndim(action) or not np.issubdtype(np.asarray(action).dtype, np.integer):
                    raise ValueError(f"actions must be integers, got {action!r} in episode {episode.id}")
                bank.add(source, action, end)
        return bank

    @property
    def is_full(self) -> bool:
        return self.capacity is not None and len(self._ends) >= self.capacity

    def add(self, source: int, action: int, end: int) -> bool:
        """Keep a transition, as the newest.

        Returns:
            True if the transition is new, False if the bank held it already; then the bank stays as it was.

        Raises:
            ValueError: if it is no transition; see `checked`.
        """
        source, action, end = self.checked(source, action, end)
        if self._ends.get((source, action)) == end:
            return False
        self._ends.pop((source, action), None)
        if self.is_full:
            del self._ends[next(iter(self._ends))]
        self._ends[source, action] = end
        return True

    def checked(self, source: int, action: int, end: int) -> Transition:
        """The transition as plain integers; the bank stays as it is.

        Raises:
            ValueError: if a part is no integer, a state is negative, or the action is none of the bank's.
        """
        source, action, end = _integers((source, action, end))
        last = math.inf if self.n_actions is None else self.n_actions - 1
        if min(source, end) < 0 or not 0 <= action <= last:
            what = f"states of at least 0 and an action from 0 to {last}"
            raise ValueError(f"a transition has {what}, got {(source, action, end)}")
        return source, action, end

    def end_of(self, source: int, action: int) -> int | None:
        """The state where a move ends, None if the bank does not hold the move."""
        return self._ends.get((source, action))

    def forget(self, source: int, action: int) -> Transition:
        """Delete and return the transition of a move.

        Raises:
            KeyError: if the bank does not hold it.
        """
        return source, action, self._ends.pop((source, action))

    def forget_state(self, state: int) -> list[Transition]:
        """Delete and return the transitions that start or end at a state (paper: "Fast Adaptation to Changes")."""
        forgotten = [t for t in self if state in (t[0], t[2])]
        for source, action, _ in forgotten:
            del self._ends[source, action]
        return forgotten

    @property
    def states(self) -> list[int]:
        """The states that occur, in ascending order."""
        return sorted({state for source, _, end in self for state in (source, end)})

    def to_numpy(self) -> np.ndarray:
        """(N, 3) int64, the oldest first."""
        return np.array(list(self), np.int64).reshape(-1, 3)

    def copy(self) -> MemoryBank:
        return MemoryBank(self, self.capacity, self.n_actions)

    def __iter__(self) -> Iterator[Transition]:
        return iter([(source, action, end) for (source, action), end in self._ends.items()])

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, transition: object) -> bool:
        return transition in list(self)

    def __eq__(self, other: object) -> bool:
        """Banks are equal if they hold the same transitions, in any order."""
        return isinstance(other, MemoryBank) and self._ends == other._ends

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"MemoryBank({len(self)} transitions, capacity={self.capacity})"


def _integers(row: Iterable) -> Transition:
    try:
        source, action, end = (operator.index(part) for part in row)
    except (TypeError, ValueError):
        raise ValueError(f"a transition is three integers (s_s, a, s_e), got {row!r}") from None
    return source, action, end


def _state_in(observation: Any) -> Any:
    return observation["state"] if isinstance(observation, Mapping) and "state" in observation else observation


def _own_number() -> Callable[[Any], int]:
    """A function that leaves integers as they are and numbers other states as they come."""
    numbers = StateNumbers()
    return lambda state: int(state) if isinstance(state, int | np.integer) else numbers(state)


def _steps(column: Any) -> list[Any]:
    """What a column of an episode, (T, ...) or a dictionary or tuple of such, holds at each of T steps."""
    if isinstance(column, Mapping):
        return [dict(zip(column, parts, strict=True)) for parts in _steps(tuple(column.values()))]
    return list(zip(*map(_steps, column), strict=True)) if isinstance(column, tuple) else list(column)
