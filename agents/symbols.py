"""What an agent knows of a room whose states are symbols: numbers that are equal or not, and say no more than that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.knowledge import Knowledge, knowledge_for, to_arrays, to_lists
from eswm_gym.agents.latent_map import LatentMap, latent_maps
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.places import Place, PlaceMap
from eswm_gym.agents.planning import UNKNOWN, Plan, imagine_tables, search
from eswm_gym.agents.states import symbol_of
from eswm_gym.world_model import ESWM
from eswm_gym.world_model.codecs import IntegerCodec

if TYPE_CHECKING:
    from typing_extensions import Self

LIKELY = 0.5  # a move whose imagined end has at most this probability gets a new place as its end


@knowledge_for(IntegerCodec, True, False)
class SymbolKnowledge(Knowledge):
    """Knowledge of states that are numbers, as observations show them or as their bits.

    A place whose state is not known has a name, which the model reads as a state that it has not met. So it can imagine
    how unknown places lie to each other. A location that turns out to be blocked keeps its place on this map, while the
    memories of its state are deleted.

    One observation is not believed against what is known, since an action may have slipped, or a state may have been
    seen wrongly: a move leads where it led most often, and plans expect as many tries as it took. A move that is
    blocked counts at once, but what is forgotten then comes back when its state is seen again, or where no way is known
    without it.

    Attributes:
        map: the named places.
        seen: how often moves ended where, of those that did not always end in one state; what was known before counts
            as once.
        blocked: moves that were blocked since they last led on.
        suspended: by state, the wall in its place and the memories that were forgotten when a first move to it was
            blocked.
        latent: where the remembered states lie in the latent space; None if that has to be computed anew.
        named: the state where the agent has named the ends of moves since its last move.
    """

    states = "symbols"

    def __init__(self, model: ESWM, config: AgentConfig, memories: Iterable = ()) -> None:
        super().__init__(model, config, memories)
        self.map = PlaceMap(model.config.n_states)
        self.latent: LatentMap | None = None
        self.named: int | None = None
        self.seen: dict[tuple[int, int], Counter[int]] = {}
        self.blocked: set[tuple[int, int]] = set()
        self.suspended: dict[int, tuple[int, list[Transition]]] = {}

    def number(self, shown: Any) -> int:
        return symbol_of(shown)

    def shown(self, number: int) -> int:
        return number

    def check(self, *states: int) -> None:
        self.model.codec.check(torch.tensor(states))

    @property
    def places(self) -> Mapping[int, Place]:
        return self.map.kind

    @classmethod
    def imagine(cls, every: Sequence[Self], states: Sequence[int]) -> None:
        model = every[0].model
        encoded = [knowledge._encode(state) for knowledge, state in zip(every, states, strict=True)]
        here = [[names.index(state)] for (_, names), state in zip(encoded, states, strict=True)]
        banks = [bank for bank, _ in encoded]
        facts = [each._not_asked(bank, names) for each, (bank, names) in zip(every, encoded, strict=True)]
        tables = imagine_tables(model, banks, here, facts)
        for knowledge, table, (_, stands_for) in zip(every, tables, encoded, strict=True):
            meaning = np.array([*stands_for, UNKNOWN])  # UNKNOWN, -1, is also the index of its own meaning
            knowledge.table = replace(table, states=meaning[table.states], end=meaning[table.end])
            knowledge.latent = None
            if knowledge.config.trust_memory:
                knowledge.table = knowledge.table.with_facts(knowledge.memory, knowledge.map.moves)

    def _encode(self, state: int) -> tuple[MemoryBank, list[int]]:
        """What the model reads of an agent in a state, see `PlaceMap.encode`."""
        return self.map.encode(self.memory, self.model.config.max_memories, state, self._uninformative_places())

    def _not_asked(self, bank: MemoryBank, names: Sequence[int]) -> list[Transition]:
        """What the model need not be asked about: moves out of places that no one enters, and remembered ones."""
        closed = [n for n, place in enumerate(names) if self.map.kind.get(place) in (Place.WALL, Place.OUTSIDE)]
        nowhere = [(n, action, UNKNOWN) for n in closed for action in range(self.model.config.n_actions)]
        return [*nowhere, *bank] if self.config.trust_memory else nowhere

    def latent_map(self) -> LatentMap:
        if self.latent is None:
            self.latent = latent_maps(self.model, [self.memory])[0]
        return self.latent

    def expected(self, state: int, action: int) -> int:
        named = self.map.moves.end_of(state, action)
        return super().expected(state, action) if named is None else named

    def name_unknown_ends(self, state: int, actions: Collection[int]) -> bool:
        """See `Knowledge`. Ends are named once a step: what the model then makes of the new names may be unknown."""
        if self.named == state:
            return False
        self.named = state
        row = None if self.table is None else self.table.row(state)
        n_before = len(self.map.kind)
        # If every bump in the bank has a named wall, a move that is expected to stay here, but has none, is suspicious.
        walls_are_named = all(s != e or self.map.moves.end_of(s, a) is not None for s, a, e in self.memory)
        for action in range(self.model.config.n_actions):
            allowed, expected = action in actions, self.expected(state, action)
            kind = self.map.kind.get(expected)
            unsure = row is None or self.table.probability[row, action] <= LIKELY  # type: ignore[union-attr]
            if allowed:  # it can lead neither outside nor, unless a wall without a name is there, back to here
                contradicted = kind is Place.OUTSIDE or (expected == state and walls_are_named)
            else:
                contradicted = expected == state
            if kind is Place.FRONTIER and not allowed:
                self.map.kind[expected] = Place.OUTSIDE
            elif expected == UNKNOWN or unsure or contradicted:
                self.map.add(Place.FRONTIER if allowed else Place.OUTSIDE, state, action)
        return len(self.map.kind) > n_before

    def begin_episode(self) -> None:
        self.named = None

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        self.named = None
        if self._is_doubtful(happened):
            return []
        state, action, end = happened
        if end != state:
            self.blocked.discard((state, action))
        known = self.memory.end_of(state, action)
        forgotten = super().learn(happened, goal)
        if known in self.suspended and end == state:
            self.suspended[known][1].append((state, action, known))
        if end in self.suspended:
            self._restore(end)
        return forgotten

    def search(self, start: int, goal: int, horizon: int | None, cost: str) -> Plan:
        if cost != "steps" or not self.seen:
            return super().search(start, goal, horizon, cost)
        table = self.imagined(start)
        share = np.ones_like(table.probability)
        for (state, action), ends in self.seen.items():
            if (row := table.row(state)) is not None:
                share[row, action] = max(ends[int(table.end[row, action])], 1) / ends.total()
        return search(replace(table, probability=share), start, goal, horizon, "tries")

    def reconsider(self) -> bool:
        """Take back the walls that one blocked move alone told of; returns whether there are any."""
        found = bool(self.suspended)
        for state in list(self.suspended):
            self._restore(state)
        return found

    def _is_doubtful(self, happened: Transition) -> bool:
        """Count a transition; whether it contradicts what the agent is sure of and has seen as often."""
        state, action, end = happened
        expected, seen = self.expected(state, action), self.seen.get((state, action))
        if seen is None:
            if expected == end or not self._is_sure(happened, expected):
                return False
            seen = self.seen[state, action] = Counter({expected: 1})
        seen[end] += 1
        return end not in (state, expected) and seen[end] <= seen[expected]

    def _is_sure(self, happened: Transition, expected: int) -> bool:
        """Whether the agent is so sure of another end that one observation does not count against it."""
        state, action, end = happened
        if not self.config.adapt or expected == UNKNOWN or expected in self.map.kind or end == state:
            return False
        if expected == state:  # a wall may be gone; but not if another move leads there
            return self.table is not None and end in self.table.ends_of(state)
        row = None if self.table is None else self.table.row(state)
        imagined = 0.0 if row is None else self.table.probability[row, action]  # type: ignore[union-attr]
        return self.memory.end_of(state, action) is not None or imagined > self.config.confidence

    def _restore(self, state: int) -> None:
        """Remember again what was forgotten of a state that was taken for a wall."""
        wall, forgotten = self.suspended.pop(state)
        for source, action, _ in self.map.rename(wall, state):
            if self.memory.end_of(source, action) == source:
                self.memory.forget(source, action)
        for transition in forgotten:
            if self.memory.end_of(*transition[:2]) is None:
                self.memory.add(*transition)
        self.table = None

    def _revise(self, expected: int, happened: Transition, goal: Any) -> tuple[Transition, list[Transition]]:
        if expected in self.map.kind:
            return happened, self._visit(expected, happened)
        if not self.config.adapt or expected == UNKNOWN:
            return happened, []
        if expected == happened[0]:  # a wall is gone, and all bumps into it are outdated
            return happened, self._forget_bumps_into(happened)
        if goal is not None and expected == self.number(goal):  # it is there, but cannot be reached from here
            return happened, []
        return happened, self._forget_state(expected, happened)

    def _visit(self, place: int, happened: Transition) -> list[Transition]:
        """Learn what a named place is; delete and return the bumps into it if it was taken for a wall."""
        state, action, end = happened
        if end == state:
            if self.map.kind[place] is Place.FRONTIER:
                self.map.kind[place] = Place.WALL
                self.map.moves.add(state, action, place)  # bumps from all sides are into one wall
            return []
        if self.map.kind[place] is not Place.FRONTIER:  # where moves from there lead was not imagined
            self.table = None
        moves = self.map.rename(place, end)
        self._rename_in_table(place, end)
        return [
            self.memory.forget(source, action)
            for source, action, _ in moves
            if self.memory.end_of(source, action) == source
        ]

    def _forget_state(self, expected: int, happened: Transition) -> list[Transition]:
        """Delete and return the memories of a state that is not where it was.

        If the move to it was blocked, its place stays on the map as a wall, so that the rest keeps its position.
        """
        state, action, end = happened
        forgotten = self.memory.forget_state(expected)
        if end == state:
            wall = self.map.add(Place.WALL, state, action)
            for source, move, target in forgotten:
                if source != target:
                    self.map.moves.add(source, move, target)
            self.map.rename(expected, wall)
            self._rename_in_table(expected, wall)
            if (state, action) not in self.blocked:
                self.blocked.add((state, action))
                self.suspended[expected] = wall, forgotten
        return forgotten

    def _forget_bumps_into(self, happened: Transition) -> list[Transition]:
        """Delete and return the bumps into a location that was found free.

        Those are the moves that, without any bumps in the bank, the model imagines to end there.
        """
        bumps = [(source, action) for source, action, end in self.memory if source == end]
        others = MemoryBank([*(t for t in self.memory if t[0] != t[2]), happened])
        table = imagine_tables(self.model, [others], [[source for source, _ in bumps]])[0]
        return [
            self.memory.forget(source, action)
            for source, action in bumps
            if table.end[table.index[source], action] == happened[2]
        ]

    def _uninformative_places(self) -> set[int]:
        """Places outside that the table shows next to no frontier; the model predicts better without them.

        Places that are newer than the table are not among them.
        """
        if self.table is None:
            return set()
        frontier = [place for place, kind in self.map.kind.items() if kind is Place.FRONTIER]
        next_to_frontier = set(self.table.end[np.isin(self.table.states, frontier)].ravel().tolist())
        newest = self.table.states.max()
        outside = (place for place, kind in self.map.kind.items() if kind is Place.OUTSIDE)
        return {place for place in outside if place not in next_to_frontier and place <= newest}

    def _rename_in_table(self, old: int, new: int) -> None:
        self.latent = None
        if self.table is not None:
            self.table = None if new in self.table.index else self.table.rename(old, new)

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "places": [[place, kind.name] for place, kind in self.map.kind.items()],
            "moves": list(self.map.moves),
            "next_place": self.map.next_name,
            "latent": to_lists(self.latent),
            "named": self.named,
            "seen": [[*move, list(ends.items())] for move, ends in self.seen.items()],
            "blocked": sorted(self.blocked),
            "suspended": [[state, *kept] for state, kept in self.suspended.items()],
        }

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_dict(saved)
        self.map.kind = {place: Place[kind] for place, kind in saved["places"]}
        self.map.moves = MemoryBank(saved["moves"], n_actions=self.model.config.n_actions)
        self.map.next_name = saved["next_place"]
        self.latent = to_arrays(LatentMap, saved["latent"])
        self.named = saved["named"]
        self.seen = {(s, a): Counter(dict(ends)) for s, a, ends in saved["seen"]}
        self.blocked = {(s, a) for s, a in saved["blocked"]}
        self.suspended = {state: (wall, [(s, a, e) for s, a, e in kept]) for state, wall, kept in saved["suspended"]}
