"""Explorers of a world from nothing, and what each knows afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from worlds.rivals import Fact, step_by_name

from eswm_gym.agents import ESWMAgent
from eswm_gym.agents.exploration import nearest_frontier
from eswm_gym.agents.places import Place
from eswm_gym.agents.planning import UNKNOWN
from eswm_gym.rooms import lattice_of, move_numbers
from large.worlds import World

MOST = 8  # steps for each state, after which an explorer gives up


class Explorer(Protocol):
    """Chooses moves and learns where they end."""

    def act(self, state: int) -> int: ...

    def observe(self, state: int, action: int, end: int) -> None: ...

    def facts(self) -> Iterable[Fact]: ...


class Remembering:
    """Goes to the nearest move that neither it nor, as its reverse, another one has shown it.

    Args:
        reverse: the action that undoes each action, -1 for none.
        seed: breaks ties.
    """

    def __init__(self, reverse: Sequence[int], seed: int) -> None:
        self.reverse, self.rng = reverse, np.random.default_rng(seed)
        self.ends: dict[tuple[int, int], int] = {}

    def ends_of(self, state: int) -> list[int]:
        return [self.ends.get((state, action), UNKNOWN) for action in range(len(self.reverse))]

    def act(self, state: int) -> int:
        action = nearest_frontier(self, {}, state, range(len(self.reverse)), self.rng, ordered=False)
        return int(self.rng.integers(len(self.reverse))) if action is None else action

    def observe(self, state: int, action: int, end: int) -> None:
        self.ends[state, action] = end
        if end != state and self.reverse[action] >= 0:
            self.ends[end, self.reverse[action]] = state

    def facts(self) -> list[Fact]:
        return [(state, action, end) for (state, action), end in self.ends.items()]


class Integrating:
    """Is told where each move leads: it goes to the nearest place that it has neither visited nor bumped into.

    Args:
        names: the moves' numbers in the vocabulary.
        seed: breaks ties.
    """

    def __init__(self, names: Sequence[int], seed: int) -> None:
        self.names, self.rng = names, np.random.default_rng(seed)
        self.state_at: dict[int, int] = {}  # by the number of a place
        self.kind: dict[int, Place] = {}
        self.place: tuple[int, ...] = (0, 0, 0)
        self._numbers: dict[tuple[int, ...], int] = {}
        self._places: list[tuple[int, ...]] = []

    def number(self, place: tuple[int, ...]) -> int:
        if place not in self._numbers:
            self._numbers[place] = len(self._places)
            self._places.append(place)
            self.kind[self._numbers[place]] = Place.FRONTIER
        return self._numbers[place]

    def ends_of(self, number: int) -> list[int]:
        return [self.number(step_by_name(self._places[number], name, 1)) for name in self.names]  # type: ignore[arg-type]

    def act(self, state: int) -> int:
        here = self.number(self.place)
        self.state_at[here], self.kind[here] = state, Place.VISITED
        action = nearest_frontier(self, self.kind, here, range(len(self.names)), self.rng)
        return int(self.rng.integers(len(self.names))) if action is None else action

    def observe(self, state: int, action: int, end: int) -> None:
        there = step_by_name(self.place, self.names[action], 1)  # type: ignore[arg-type]
        if end == state:
            self.kind[self.number(there)] = Place.WALL
        else:
            self.place = there
            self.state_at[self.number(there)] = end

    def facts(self) -> list[Fact]:
        moves = ((at, action, end) for at in self.state_at for action, end in enumerate(self.ends_of(at)))
        return [(self.state_at[at], action, self.state_at[end]) for at, action, end in moves if end in self.state_at]


class Imagining:
    """An `ESWMAgent` in the loop."""

    def __init__(self, agent: ESWMAgent, names: Sequence[int], bank: Sequence[Fact] = (), start: int = 0) -> None:
        self.agent, self.names, self.goal = agent, np.array(names), -1
        agent.reset(self.shown(start), {"memory_bank": bank})

    def shown(self, state: int) -> dict:
        return {"state": state, "goal": self.goal, "actions": self.names}

    def act(self, state: int) -> int:
        return self.agent.act(self.shown(state), {})

    def observe(self, state: int, action: int, end: int) -> None:
        self.agent.observe(self.shown(state), action, self.shown(end), {})

    def facts(self) -> list[Fact]:
        return list(self.agent.memory)

    def go(self, world: World, start: int, goal: int, most: int) -> int | None:
        """Steps to a goal in a world that it knows; None if it takes more than so many."""
        self.goal, here = goal, start
        self.agent.reset(self.shown(here), {}, keep_memories=True)
        for step in range(most + 1):
            if here == goal:
                return step
            action = self.act(here)
            end = world.moves.get((here, action), here)
            self.observe(here, action, end)
            here = end
        return None


def explorers(world: World, agent: Callable[[], ESWMAgent], seed: int, start: int) -> dict[str, Callable[[], Explorer]]:
    """An explorer of each method."""
    lattice = lattice_of(*world.lattice)
    names = move_numbers(lattice.actions).tolist()
    return {
        "memory-graph": lambda: Remembering(lattice.reverse.tolist(), seed),
        "path-integration": lambda: Integrating(names, seed),
        "eswm": lambda: Imagining(agent(), names, start=start),
    }


def explore(world: World, explorer: Explorer, start: int) -> tuple[int | None, list[float]]:
    """Explore until every state has been seen.

    Returns:
        Steps, None if some were not seen in `MOST` steps for each state; and the CPU milliseconds of each step.
    """
    unseen, here, times = {state for state, _ in world.moves} - {start}, start, list[float]()
    most = MOST * (len(unseen) + 1)
    while unseen and len(times) < most:
        begun = time.process_time()
        action = explorer.act(here)
        end = world.moves.get((here, action), here)
        explorer.observe(here, action, end)
        times.append(1000 * (time.process_time() - begun))
        here = end
        unseen.discard(here)
    return (None if unseen else len(times)), times
