"""What one would use in place of the world model: agents that explore and exploit, as strong as an afternoon allows.

All of them keep what they know from one episode to the next, and keep out of states where an episode ended without
success.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
from worlds.rivals import UNDOES, Place, step_by_name

from eswm_gym.agents.base import Agent, Info, Observation, goal_of


class Walker(Agent):
    """Remembers moves and dead ends, and goes along the shortest way that it knows of.

    Args:
        seed: of the random numbers that break ties.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.forget()

    def spawn(self, seed: int | None = None) -> Walker:
        return type(self)(seed)

    def forget(self) -> None:
        """Begin with an empty map."""
        self.end: dict[tuple[int, int], int] = {}
        self.dead: set[int] = set()

    def reset(self, obs: Observation, info: Info, keep_memories: bool = False) -> None:
        self.numbers = np.asarray(obs["actions"]).tolist()
        if not keep_memories:
            self.forget()
            self.dead.update(info.get("dead_ends", ()))
            for source, action, end in np.asarray(info.get("memory_bank", ()), np.int64).reshape(-1, 3).tolist():
                self.learn(source, action, end)

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        end = int(next_obs["state"])
        if info.get("terminated") and not info.get("is_success"):
            self.dead.add(end)
        self.learn(int(obs["state"]), action, end)

    def learn(self, source: int, action: int, end: int) -> None:
        """Remember a move."""
        self.end[source, action] = end

    def act(self, obs: Observation, info: Info) -> int:
        raise NotImplementedError

    def first_step(
        self, here: Hashable, is_goal: Callable[[Any], bool], moves: Callable[[Any], Iterable[tuple[int, Any]]]
    ) -> int | None:
        """The first action of a shortest way from here to a place that is a goal, None if there is none.

        Args:
            here: a place.
            is_goal: whether a place is one.
            moves: the (action, place) of a place.
        """
        first: dict[Any, int | None] = {here: None}
        queue = deque([here])
        while queue:
            place = queue.popleft()
            if place != here and is_goal(place):
                return first[place]
            for action, there in self.rng.permutation(np.array([*moves(place), None], object)[:-1]).tolist():
                if there not in first:
                    first[there] = action if place == here else first[place]
                    queue.append(there)
        return None


class MemoryGraph(Walker):
    """Knows moves, and the reverses of moves whose reverse has a name. It explores the nearest move not made yet.

    With a goal it still explores what might hold a shorter way: moves from states so near that such a way is possible.
    """

    def reset(self, obs: Observation, info: Info, keep_memories: bool = False) -> None:
        super().reset(obs, info, keep_memories)
        self.start = int(obs["state"])

    def ends(self, state: int) -> dict[int, int]:
        """Where the actions lead that are known or inferred at a state."""
        return {a: end for a in range(len(self.numbers)) if (end := self.known(state, a)) is not None}

    def known(self, state: int, action: int) -> int | None:
        return self.end.get((state, action), self.inferred.get((state, action)))

    def forget(self) -> None:
        super().forget()
        self.inferred: dict[tuple[int, int], int] = {}

    def learn(self, source: int, action: int, end: int) -> None:
        super().learn(source, action, end)
        if source != end and end not in self.dead:
            for back in UNDOES.get(self.numbers[action], set()).intersection(self.numbers):
                self.inferred.setdefault((end, self.numbers.index(back)), source)

    def act(self, obs: Observation, info: Info) -> int:
        here, goal = int(obs["state"]), goal_of(obs)

        def moves(state: int) -> list[tuple[int, int]]:
            return [(a, end) for a, end in self.ends(state).items() if end not in self.dead and state not in self.dead]

        steps = self.distances(self.start, moves)
        shortest = np.inf if goal is None else steps.get(int(goal), np.inf)
        if goal is not None and "memory_bank" in info:  # a single episode: there is no later one to explore for
            action = self.first_step(here, lambda s: s == goal, moves)
            if action is not None:
                return action
        left = {
            s: untried
            for s in steps.keys() | {here}
            if s not in self.dead and s != goal and steps.get(s, 0) + 2 < shortest
            and (untried := [a for a in range(len(self.numbers)) if self.known(s, a) is None])
        }  # fmt: skip
        if here in left:
            return int(self.rng.choice(left[here]))
        for is_target in [lambda s: s in left, lambda s: s == goal][:: 1 if left else -1]:
            action = self.first_step(here, is_target, moves)
            if action is not None:
                return action
        untried = [a for a in range(len(self.numbers)) if self.known(here, a) is None]
        return int(self.rng.choice(untried or range(len(self.numbers))))

    @staticmethod
    def distances(start: int, moves: Callable[[int], list[tuple[int, int]]]) -> dict[int, int]:
        """Steps from a state to all that can be reached."""
        steps, queue = {start: 0}, deque([start])
        while queue:
            state = queue.popleft()
            for _, end in moves(state):
                if end not in steps:
                    steps[end] = steps[state] + 1
                    queue.append(end)
        return steps


class Rules(Walker):
    """Is told the lattice: keeps coordinates, counts what it has not seen as free, and goes straight to the goal.

    Without a goal it goes to the nearest place that it has not seen. With a bank, which spans the world, it keeps to
    places that it has seen if there is such a way. A place is (x, y, heading); only poses have another heading than 0.
    """

    def forget(self) -> None:
        super().forget()
        self.place: dict[int, Place] = {}
        self.state: dict[Place, int] = {}
        self.blocked: set[tuple[Place, int]] = set()
        self.walls: set[Place] = set()

    def reset(self, obs: Observation, info: Info, keep_memories: bool = False) -> None:
        self.pending: list[tuple[int, int, int]] = []
        super().reset(obs, info, keep_memories)
        self.put(int(obs["state"]), (0, 0, 0))
        self.lay_out()

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        super().observe(obs, action, next_obs, info)
        self.lay_out()

    def lay_out(self) -> None:
        """Lay out the moves whose states have no place yet, as far as one of them has by now."""
        before = -1
        while len(self.pending) != before:
            before = len(self.pending)
            waiting, self.pending = self.pending, []
            for move in waiting:
                self.learn(*move)

    def put(self, state: int, place: Place) -> None:
        """Give a state a place if it has none and the place is not taken."""
        if state not in self.place and place not in self.state:
            self.place[state], self.state[place] = place, state

    def ahead(self, place: Place, action: int, sign: int = 1) -> Place:
        """The place where a move leads (1), or from where it leads there (-1)."""
        return step_by_name(place, self.numbers[action], sign)

    def learn(self, source: int, action: int, end: int) -> None:
        super().learn(source, action, end)
        entered = [s for (s, a), e in self.end.items() if a == action and e == end and s != e]
        if source != end and len(entered) > 1:  # of several moves by one action to one state, all but one are jumps
            self.blocked |= {(self.place[s], action) for s in entered if s in self.place}
        elif source == end and source in self.place:
            there = self.ahead(self.place[source], action)
            self.blocked.add((self.place[source], action))
            if there not in self.state:
                self.walls.add(there[:2])
        elif source in self.place:
            there = self.ahead(self.place[source], action)
            self.put(end, there)
            if self.place.get(end) != there:  # a jump
                self.blocked.add((self.place[source], action))
        elif end in self.place:
            self.put(source, self.ahead(self.place[end], action, -1))
        else:
            self.pending.append((source, action, end))

    def act(self, obs: Observation, info: Info) -> int:
        if int(obs["state"]) not in self.place:
            return int(self.rng.integers(len(self.numbers)))
        here, goal = self.place[int(obs["state"])], goal_of(obs)
        to = None if goal is None else self.place.get(int(goal))
        reach = 2 + sum(np.ptp([place[:2] for place in self.state], axis=0).tolist())

        def moves(place: Place) -> Iterable[tuple[int, Place]]:
            for action in range(len(self.numbers)):
                there = self.ahead(place, action)
                free = there[:2] not in self.walls and self.state.get(there) not in self.dead
                if free and (place, action) not in self.blocked and max(map(abs, there[:2])) <= reach:
                    yield action, there

        def seen(place: Place) -> Iterable[tuple[int, Place]]:
            return ((action, there) for action, there in moves(place) if there in self.state)

        action = None
        for ways in (seen, moves)["memory_bank" not in info :] if to is not None else ():
            if action is None:
                action = self.first_step(here, lambda place: place == to, ways)
        if action is None:
            action = self.first_step(here, lambda place: place not in self.state, moves)
        return int(self.rng.integers(len(self.numbers))) if action is None else action


class QLearning(Walker):
    """Tabular Q-learning, optimistic at first, so that what was not tried looks best (Sutton and Barto, 2018)."""

    def forget(self) -> None:
        super().forget()
        self.q: dict[int, np.ndarray] = {}

    def values(self, state: int) -> np.ndarray:
        return self.q.setdefault(state, np.ones(len(self.numbers)))

    def observe(self, obs: Observation, action: int, next_obs: Observation, info: Info) -> None:
        end, success = int(next_obs["state"]), bool(info.get("is_success"))
        ahead = 0.0 if info.get("terminated") or success else 0.95 * self.values(end).max()
        self.values(int(obs["state"]))[action] = float(success) + ahead

    def act(self, obs: Observation, info: Info) -> int:
        q = self.values(int(obs["state"]))
        return int(self.rng.choice(np.flatnonzero(q == q.max())))


class Random(Walker):
    """Any action."""

    def act(self, obs: Observation, info: Info) -> int:
        return int(self.rng.integers(len(self.numbers)))
