"""What an agent knows of a world of any size: a map that grows with it, imagined in windows around the agent (ours)."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.exploration import nearest_frontier
from eswm_gym.agents.knowledge import Knowledge, knowledge_of
from eswm_gym.agents.large_map import LargeMap
from eswm_gym.agents.memory_bank import Transition
from eswm_gym.agents.places import FIRST_PLACE, Place, PlaceMap
from eswm_gym.agents.planning import UNKNOWN, Plan, TransitionTable
from eswm_gym.agents.states import symbol_of
from eswm_gym.world_model import ESWM

if TYPE_CHECKING:
    from typing_extensions import Self

WINDOWS = 2  # that are imagined at each step


class LargeKnowledge(Knowledge):
    """Knowledge of states that are numbers, as many as there may be, as a `LargeMap`.

    The bank grows without limit. A bank that the agent is given is imagined whole; after that, two windows near the
    agent at each step. A place whose state is not known has a name, and is a state of the map like others. States in
    which an episode ended without success are never entered again.

    Args:
        model, config, memories: as for `Knowledge`; the options have a window.

    Attributes:
        map: facts, and what is imagined.
        named: the places that have a name, walls among them; the map has the moves to and from them.
        dead_ends: states in which an episode ended without success.
        looked_at: the state around which it has imagined since its last move.

    Raises:
        ValueError: if the model is none of symbols, or cannot read such a window.
    """

    states = "symbols"
    has_latent_map = False
    is_limited = False

    def __init__(self, model: ESWM, config: AgentConfig, memories: Iterable = ()) -> None:
        if config.window is None or knowledge_of(model).states != self.states:
            raise ValueError(f"windows are for models of symbols, got {config.window} for {type(model).__name__}")
        super().__init__(model, config, memories)
        self.map = LargeMap(model, config.window)
        self.named = PlaceMap(FIRST_PLACE)
        for state, action, end in self.memory:
            if end == state:
                self._wall(state, action)
            else:
                self.map.add(state, action, end)
        self.dead_ends: set[int] = set()
        self.looked_at: int | None = None
        self._is_new = bool(len(self.memory))  # and nothing is imagined yet
        self._remembered = False

    def number(self, shown: Any) -> int:
        return symbol_of(shown)

    def shown(self, number: int) -> int:
        return number

    def check(self, *states: int) -> None:
        if states and not 0 <= min(states) <= max(states) < FIRST_PLACE:
            raise ValueError(f"a state is a number from 0 to 2**40 - 1, got {min(states)} to {max(states)}")

    @property
    def places(self) -> Mapping[int, Place]:
        return {place: kind for place, kind in self.named.kind.items() if place in self.map}

    # What the model imagines

    @classmethod
    def imagine(cls, every: Sequence[Self], states: Sequence[int]) -> None:
        for knowledge, state in zip(every, states, strict=True):
            if knowledge._is_new:
                knowledge._imagine_bank()
            elif state in knowledge.map and knowledge.looked_at != state:
                knowledge.map.imagine(state, windows=WINDOWS)
            knowledge.looked_at = state

    def _imagine_bank(self) -> None:
        """Imagine all that follows from the bank that the agent was given, once."""
        if self._is_new:
            self._is_new = False
            self.map.imagine()

    def name_unknown_ends(self, state: int, actions: Collection[int]) -> bool:
        """See `Knowledge`. What the model makes of the new names it says at the next step."""
        for action in range(self.model.config.n_actions):
            end = self.expected(state, action)
            if end == UNKNOWN:
                self._name(Place.FRONTIER if action in actions else Place.OUTSIDE, state, action)
            elif action not in actions and self.named.kind.get(end) is Place.FRONTIER:
                self.named.kind[end] = Place.OUTSIDE
        return False

    def _name(self, kind: Place, state: int, action: int) -> int:
        """Name the place where a move ends."""
        place = self.named.add(kind)
        self.map.add(state, action, place)
        return place

    def _wall(self, state: int, action: int) -> None:
        """Name the place of the wall that blocks a move."""
        self.map.wall(self._name(Place.WALL, state, action))

    def expected(self, state: int, action: int) -> int:
        remembered = self.memory.end_of(state, action)
        if remembered not in (None, state):
            return remembered  # type: ignore[return-value]
        end = self.map.place_of(state, action)
        return end if end is not None else UNKNOWN if remembered is None else state  # type: ignore[return-value]

    def ends_of(self, state: int) -> list[int]:
        """The state or place where each move from a state or place ends, UNKNOWN if it is not known; the state itself
        for moves that should not be made."""
        if state in self.dead_ends:
            return [state] * self.model.config.n_actions
        ends = [self.expected(state, action) for action in range(self.model.config.n_actions)]
        return [state if end in self.dead_ends and end != self.goal else end for end in ends]

    def search(self, start: int, goal: int, horizon: int | None, cost: str) -> Plan:
        return super().search(start, goal, horizon, cost) if goal in self.map else Plan()

    def imagined(self, state: int) -> TransitionTable:
        """See `Knowledge`. A move that should not be made stays where it starts."""
        self._imagine_bank()
        closed = self.dead_ends - {self.goal}
        states = np.array(list(dict.fromkeys([state, *(s for s in self.map.states if s < FIRST_PLACE)])), np.int64)  # type: ignore[operator]
        row = {state: i for i, state in enumerate(states.tolist())}
        end = np.full((len(states), self.model.config.n_actions), UNKNOWN)
        probability = np.zeros(end.shape)
        for move in self.map.transitions():
            if move.source in row:
                kind = self.named.kind.get(move.end)  # type: ignore[call-overload]
                cell = row[move.source], move.action
                if kind is not Place.FRONTIER:
                    end[cell] = move.end if kind is None and move.end not in closed else move.source
                    probability[cell] = move.probability
        facts = ((s, a, s if e in closed else e) for s, a, e in self.memory)
        return TransitionTable(states, end, probability, np.zeros(end.shape)).with_facts(facts, self.ruled_out)

    # Exploration

    def to_frontier(
        self, state: int, actions: Collection[int], rng: np.random.Generator, ordered: bool = True
    ) -> int | None:
        return nearest_frontier(self, self.named.kind, state, actions, rng, ordered)

    def to_doubt(self, state: int, actions: Collection[int], rng: np.random.Generator) -> int | None:
        """The first move to the nearest state with moves that were never made, and there the least probable of them."""
        first, queue = {state: UNKNOWN}, deque([state])
        while queue:
            here = queue.popleft()
            ends = self.ends_of(here)
            allowed = actions if here == state else range(len(ends))
            doubtful = [
                (move.probability if (move := self.map.move(here, action)) else 0.0, rng.random(), action)
                for action in allowed
                if self.memory.end_of(here, action) is None and self.ruled_out.end_of(here, action) is None
            ]
            if doubtful:
                return min(doubtful)[2] if here == state else first[here]
            for action in allowed:
                end = ends[action]
                if end not in first and end != UNKNOWN and end not in self.named.kind:
                    first[end] = action if here == state else first[here]
                    queue.append(end)
        return None

    # What happens

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        state, action, end = happened
        self.looked_at = None
        self._remembered = self.memory.end_of(state, action) is not None
        forgotten = super().learn(happened, goal)
        if end != state:
            self.map.add(*happened)
        return forgotten

    def _revise(self, expected: int, happened: Transition, goal: Any) -> tuple[Transition, list[Transition]]:
        state, action, end = happened
        if expected in self.named.kind:
            return happened, self._visit(expected, happened)
        if end == state:
            if self.config.adapt and self._remembered and expected not in (UNKNOWN, self.goal):
                return happened, self._wall_up(expected)
            self._wall(state, action)
        return happened, []

    def _wall_up(self, state: int) -> list[Transition]:
        """Delete and return the memories of a state that is a wall now. Its place stays on the map, so that what was
        imagined around it holds."""
        place = self.named.add(Place.WALL)
        self.map.rename(state, place)
        self.map.wall(place)
        return self.memory.forget_state(state)

    def _visit(self, place: int, happened: Transition) -> list[Transition]:
        """Learn what a named place is; delete and return the bumps into it if it was taken for a wall."""
        state, action, end = happened
        if end == state:
            self.named.kind[place] = Place.WALL
            self.map.add(state, action, place)
            self.map.wall(place)
            return []
        del self.named.kind[place]
        if end not in self.map:
            self.map.rename(place, end)
        else:  # it has two names
            untried = {name for name, kind in self.named.kind.items() if kind is Place.FRONTIER}
            for name in dict(self.map.join(place, end, untried | {place})):
                self.named.kind.pop(name, None)  # type: ignore[call-overload]  # names are numbers
        bumps: list[Any] = [(move.source, move.action) for move in self.map.moves_to(end)]
        return [self.memory.forget(*bump) for bump in bumps if self.memory.end_of(*bump) == bump[0]]

    def avoid(self, state: int) -> None:
        self.dead_ends.add(state)

    def begin_episode(self) -> None:
        self.looked_at = None

    # Copies and files

    def copy(self) -> Self:
        twin = super().copy()
        if self._is_new:  # else looking imagines nothing
            twin.map = LargeMap(self.model, self.map.window)
            twin.map.load_dict(copy.deepcopy(self.map.to_dict()))
        return twin

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "map": self.map.to_dict(),
            "places": [[place, kind.name] for place, kind in self.named.kind.items()],
            "next_place": self.named.next_name,
            "dead_ends": sorted(self.dead_ends),
            "looked_at": self.looked_at,
            "is_new": self._is_new,
        }

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_dict(saved)
        self.map.load_dict(saved["map"])
        self.named.kind = {place: Place[kind] for place, kind in saved["places"]}
        self.named.next_name = saved["next_place"]
        self.dead_ends = set(saved["dead_ends"])
        self.looked_at, self._is_new = saved["looked_at"], saved["is_new"]
