"""What an agent knows of its room: its memories, what states stand for, and what the model imagines.

An agent's policy is the same in any world. What depends on the kind of states is its Knowledge, one class for each kind
of codec.
"""

from __future__ import annotations

import copy
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.exploration import curiosity, most_uncertain, nearest_frontier
from eswm_gym.agents.latent_map import LatentMap
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.places import Place
from eswm_gym.agents.planning import UNKNOWN, Plan, TransitionTable, search
from eswm_gym.world_model import ESWM

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)


class Knowledge(ABC):
    """What an agent knows of its room.

    Args:
        model: frozen world model; shared, never changed.
        config: the agent's options, with a capacity.
        memories: the transitions of the memory bank.

    Attributes:
        memory: the memory bank.
        ruled_out: moves that action masks ruled out, as bumps.
        goal: the state that the agent last wanted to reach.
        table: where moves end, as imagined, with named places among the states; None if it has to be imagined anew.

    Raises:
        ValueError: if the memories do not fit the model's vocabulary.
    """

    states: ClassVar[str]  # what states are, in messages
    has_latent_map: ClassVar[bool] = True
    cost: str = "steps"  # what a plan minimises unless the options say otherwise
    is_limited: ClassVar[bool] = True  # whether the bank holds no more than the model reads at once

    def __init__(self, model: ESWM, config: AgentConfig, memories: Iterable = ()) -> None:
        self.model, self.config = model, config
        self.memory = MemoryBank.holding(memories, config.capacity, model.config.n_actions)
        self.check(*self.memory.states)
        self.ruled_out = MemoryBank(n_actions=model.config.n_actions)
        self.goal: int | None = None
        self.table: TransitionTable | None = None

    # What states stand for

    @abstractmethod
    def number(self, shown: Any) -> int:
        """The number of a state as an observation shows it; a number stays as it is."""

    @abstractmethod
    def shown(self, number: int) -> Any:
        """The state with this number as an observation shows it."""

    @abstractmethod
    def check(self, *states: int) -> None:
        """Refuse states that the model cannot be asked about.

        Raises:
            ValueError: naming the first of them.
        """

    @property
    def places(self) -> Mapping[int, Place]:
        """What each place is that has a name because its state is not known."""
        return {}

    # What the model imagines

    @classmethod
    @abstractmethod
    def imagine(cls, every: Sequence[Self], states: Sequence[int]) -> None:
        """Imagine the table of each agent, which is in one of the states, in one pass of their common model."""

    def table_at(self, state: int) -> TransitionTable:
        """The table with named places, in which this state has a row."""
        if self.table is None or self.table.row(state) is None:
            self.imagine([self], [state])
        assert self.table is not None
        return self.table

    def imagined(self, state: int) -> TransitionTable:
        """Where each move from each known state and from this one ends; what lies beyond a frontier is unknown."""
        unknown = {place for place, kind in self.places.items() if kind is Place.FRONTIER}
        return self.table_at(state).without_places(self.places.keys() - unknown, unknown).with_facts(self.ruled_out)

    def latent_map(self) -> LatentMap:
        """Where the remembered states lie in the latent space.

        Raises:
            ValueError: if there is no such map.
        """
        raise ValueError(f"states that are {self.states} have no latent map to plan with")

    def expected(self, state: int, action: int) -> int:
        """The state or place where a move should end: as remembered, else as imagined, else UNKNOWN."""
        end = self.memory.end_of(state, action)
        if end is None and self.table is not None and (row := self.table.row(state)) is not None:
            end = int(self.table.end[row, action])
        return UNKNOWN if end is None else end

    def name_unknown_ends(self, state: int, actions: Collection[int]) -> bool:
        """Give names to the places where unknown moves from a state end, so that the model can imagine them.

        Args:
            state: where the agent is.
            actions: the actions that it may choose there.

        Returns:
            Whether there are new names.
        """
        return False

    # Where to go

    def search(self, start: int, goal: int, horizon: int | None, cost: str) -> Plan:
        """The best plan by Dijkstra's algorithm; arguments as for `eswm_gym.agents.search`."""
        return search(self.imagined(start), start, goal, horizon, cost)

    def to_frontier(self, state: int, actions: Collection[int], rng: np.random.Generator, ordered: bool) -> int | None:
        """The first move towards a place not visited yet, None if no way is known; arguments as for
        `nearest_frontier`."""
        return nearest_frontier(self.table_at(state), self.places, state, actions, rng, ordered)

    def to_doubt(self, state: int, actions: Collection[int], rng: np.random.Generator) -> int | None:
        """The first move towards what the model is unsure of, by the paper's rule; else towards that of which it is
        least sure; None if there is nothing that the agent does not remember."""
        table = self.imagined(state).with_facts(self.bumps(state, actions))
        doubt = 1 - table.with_facts(self.memory).probability
        config = self.config
        for score in (
            curiosity(table, config.confidence, config.beta, config.gamma),
            np.where(doubt > 0, doubt, -np.inf),
        ):
            action = most_uncertain(table, score, state, rng)
            if action is not None:
                return action
        return None

    # What happens

    def set_goal(self, goal: int | None) -> None:
        """Keep the state that the agent wants to reach."""
        self.goal = goal

    def bumps(self, state: int, actions: Collection[int]) -> list[Transition]:
        """The actions that are not among these, as bumps."""
        return [(state, action, state) for action in range(self.model.config.n_actions) if action not in actions]

    def rule_out(self, state: int, actions: Collection[int]) -> None:
        """Keep in mind that an action mask allows only these actions at a state."""
        for bump in self.bumps(state, actions):
            self.ruled_out.add(*bump)

    def checked(self, source: int, action: int, end: int) -> Transition:
        """The transition as plain integers.

        Raises:
            ValueError: if this is no transition, or a state is outside the model's vocabulary.
        """
        transition = self.memory.checked(source, action, end)
        self.check(transition[0], transition[2])
        return transition

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        """Remember a transition; delete and return the memories that it shows to be outdated.

        Args:
            happened: a transition from `checked`.
            goal: the agent's goal at its source, as an observation shows it.
        """
        state, action, end = happened
        expected = self.expected(state, action)
        outdated = self.memory.end_of(state, action) not in (None, end)
        forgotten = [self.memory.forget(state, action)] if outdated else []
        if expected != end:
            happened, others = self._revise(expected, happened, goal)
            forgotten += others
        state = happened[0]
        if forgotten:
            logger.info("move %d from state %d led to %d; forgotten: %s", action, state, end, forgotten)
        expected = self.expected(state, action)  # if the move was blocked, by now the place of a wall
        if self.memory.add(*happened) and self.table is not None:
            # The table stays good where reality is as imagined; a surprise calls for a new one.
            if expected == end and self.config.trust_memory:
                self.table = self.table.with_facts([happened])
            elif not (end == state and expected in self.places):
                self.table = None
        return forgotten

    def begin_episode(self) -> None:
        """Keep what is known for another episode in the same world."""
        return None

    def reconsider(self) -> bool:
        """Take back what was concluded from little, where no way is known; returns whether there is any."""
        return False

    def avoid(self, state: int) -> None:
        """Keep in mind that an episode ended in a state without success. By default, nothing."""
        return None

    @abstractmethod
    def _revise(self, expected: int, happened: Transition, goal: Any) -> tuple[Transition, list[Transition]]:
        """Delete what is outdated when a move did not end where it was expected to.

        Returns:
            The transition to remember, and the deleted memories.
        """

    # Copies and files

    def copy(self) -> Self:
        """The same knowledge, for questions whose answers this one does not keep."""
        return copy.copy(self)

    def to_dict(self) -> dict[str, Any]:
        """All but the model and the options, ready for JSON, under the same keys for all kinds of states."""
        return {
            "memory": list(self.memory),
            "worn": [],
            "ruled_out": list(self.ruled_out),
            "places": [],
            "moves": [],
            "next_place": self.model.config.n_states,
            "views": None,
            "table": to_lists(self.table),
            "latent": None,
            "named": None,
            "seen": [],
            "blocked": [],
            "suspended": [],
            "goal": self.goal,
        }

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        """Know from now on what `to_dict` gave an account of."""
        n_actions = self.model.config.n_actions
        self.memory = MemoryBank(saved["memory"], self.config.capacity, n_actions)
        self.ruled_out = MemoryBank(saved["ruled_out"], n_actions=n_actions)
        self.table = to_arrays(TransitionTable, saved["table"])
        self.goal = saved["goal"]


KNOWLEDGE: dict[tuple[type, bool], type[Knowledge]] = {}  # by type of codec, and whether the agent trusts its memory
KnowledgeT = TypeVar("KnowledgeT", bound=Knowledge)


def knowledge_for(codec: type, trust: bool, *others: bool) -> Callable[[type[KnowledgeT]], type[KnowledgeT]]:
    """Register a kind of Knowledge for models with this kind of codec, and with kinds derived from it.

    Args:
        codec: a class.
        trust, others: the values of `AgentConfig.trust_memory` that it is for.
    """

    def register(kind: type[KnowledgeT]) -> type[KnowledgeT]:
        KNOWLEDGE.update({(codec, value): kind for value in (trust, *others)})
        return kind

    return register


def knowledge_of(model: ESWM, trust_memory: bool = True) -> type[Knowledge]:
    """The kind of Knowledge that goes with a model, for an agent that trusts its memory or does not.

    Raises:
        ValueError: if none is registered for its codec.
    """
    for codec in type(model.codec).__mro__:
        if (codec, trust_memory) in KNOWLEDGE:
            return KNOWLEDGE[codec, trust_memory]
    raise ValueError(f"no Knowledge is registered for the codec {type(model.codec).__name__}")


def to_lists(arrays: TransitionTable | LatentMap | None) -> dict[str, Any] | None:
    """A dataclass of arrays as lists: the type, shape and numbers of each array by its name, of None nothing."""
    if arrays is None:
        return None
    named = {field.name: getattr(arrays, field.name) for field in fields(arrays)}
    return {
        name: [str(array.dtype), list(array.shape), array.ravel().tolist()]
        for name, array in named.items()
        if array is not None
    }


def to_arrays(kind: Any, lists: Mapping[str, Any] | None) -> Any:
    """What `to_lists` made lists of."""
    if lists is None:
        return None
    return kind(**{name: np.array(flat, dtype).reshape(shape) for name, (dtype, shape, flat) in lists.items()})
