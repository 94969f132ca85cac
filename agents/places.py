"""Names for places that an agent knows of without knowing their state, so that the model can imagine them.

A world model that knows states by their equality alone answers for any name as for any state. So a move that it does
not know gets a made-up state as its end, and the next time the model says which other moves lead to that place and
what lies next to it. A wall is a place too, one that cannot be entered: where a location turns out to be blocked, it
keeps its place on the map while the memories of it are deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from eswm_gym.agents.memory_bank import MemoryBank, Transition


class Place(Enum):
    """What a place is, as far as is known; one that has a state counts as visited."""

    VISITED = "visited"
    FRONTIER = "not tried yet"
    WALL = "blocked"
    OUTSIDE = "ruled out by an action mask"


class PlaceMap:
    """The named places and the moves that lead to them.

    Args:
        n_states: the model's vocabulary; names are whole numbers from there on.

    Attributes:
        kind: what each named place is.
        moves: the moves to and from named places, as transitions.
    """

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.kind: dict[int, Place] = {}
        self.moves = MemoryBank()
        self._next = n_states

    def add(self, kind: Place, state: int | None = None, action: int | None = None) -> int:
        """A new place, the end of a move from a state if one is given; returns its name."""
        name = self._next
        self._next += 1
        self.kind[name] = kind
        if state is not None and action is not None:
            self.moves.add(state, action, name)
        return name

    def rename(self, old: int, new: int) -> list[Transition]:
        """Put one place for another in all moves, such as the state that was found there; returns those moves."""
        changed = self.moves.forget_state(old)
        for source, action, end in changed:
            self.moves.add(new if source == old else source, action, new if end == old else end)
        self.kind.pop(old, None)
        return changed

    def extend(
        self, memory: MemoryBank, max_memories: int, here: int, dull: Collection[int] = ()
    ) -> tuple[MemoryBank, list[int]]:
        """A memory bank with the named places in it, for the model to read.

        Places take the numbers of the vocabulary that no memory uses. Where bank or vocabulary is too small,
        places outside are left out first, the oldest of them first.

        Args:
            memory: what the agent remembers; where it and the places speak of the same move, the places count.
            max_memories: longest bank that the model reads.
            here: the agent's state, which need not be in the bank.
            dull: places to leave out in any case.

        Returns:
            The bank, and for each number of the vocabulary the state or place that it stands for.
        """
        moves = [t for t in self.moves if t[2] not in dull]
        while True:
            held = {(source, action) for source, action, _ in moves}
            facts = [t for t in memory if t[:2] not in held]
            used = {here} | {state for source, _, end in [*facts, *moves] for state in (source, end)}
            if not moves or (len(facts) + len(moves) <= max_memories and len(used) <= self.n_states):
                break
            spare = (t for t in moves if self.kind.get(t[2]) is Place.OUTSIDE)
            moves.remove(next(spare, moves[0]))
        stands_for = list(range(self.n_states))
        free = (number for number in stands_for if number not in used)
        number = {place: place if place < self.n_states else next(free) for place in sorted(used)}
        for place, n in number.items():
            stands_for[n] = place
        return MemoryBank((number[s], a, number[e]) for s, a, e in [*facts, *moves]), stands_for
