"""Names for places that an agent knows of without knowing their state, so that the model can imagine them.

A world model that only knows whether two states are equal answers for a new name as for any state. So a move that it
does not know gets a made-up state as its end, and the next time the model says which other moves lead to that place and
what lies next to it. A wall is a place that cannot be entered: a location that turns out to be blocked keeps its place
on the map while the memories of its state are deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from eswm_gym.agents.memory_bank import MemoryBank, Transition

FIRST_PLACE = 2**40  # where states have any numbers, names of places begin here, beyond them


class Place(Enum):
    """What a place is, as far as the agent knows; a place with a known state counts as visited."""

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
        next_name: the name of the next place.
    """

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.kind: dict[int, Place] = {}
        self.moves = MemoryBank()
        self.next_name = n_states

    def add(self, kind: Place, state: int | None = None, action: int | None = None) -> int:
        """Name a new place, where a move from a state ends if one is given; returns the name."""
        name = self.next_name
        self.next_name += 1
        self.kind[name] = kind
        if state is not None and action is not None:
            self.moves.add(state, action, name)
        return name

    def rename(self, old: int, new: int) -> list[Transition]:
        """Replace a place by another one, or by the state found there, in all moves; returns these moves as before."""
        changed = self.moves.forget_state(old)
        for source, action, end in changed:
            self.moves.add(new if source == old else source, action, new if end == old else end)
        self.kind.pop(old, None)
        return changed

    def forget_frontiers(self) -> None:
        """Delete the places not tried yet, and the moves to and from them."""
        for place in [place for place, kind in self.kind.items() if kind is Place.FRONTIER]:
            self.moves.forget_state(place)
            del self.kind[place]

    def encode(
        self, memory: MemoryBank, max_memories: int, here: int, left_out: Collection[int] = ()
    ) -> tuple[MemoryBank, list[int]]:
        """A memory bank for the model to read, in which named places have numbers of the model's vocabulary.

        Places take the numbers that no memory uses. If the bank or the vocabulary is too small, places outside are
        left out first, the oldest of them first.

        Args:
            memory: what the agent remembers. If it and the map hold the same move, the map's end counts.
            max_memories: longest bank that the model reads.
            here: the agent's state, which need not be in the bank.
            left_out: places to leave out in any case.

        Returns:
            The bank, and for each number of the vocabulary the state or place that it stands for.
        """
        moves = [t for t in self.moves if t[2] not in left_out]
        while True:
            held = {(source, action) for source, action, _ in moves}
            facts = [t for t in memory if t[:2] not in held]
            used = {here} | {state for source, _, end in [*facts, *moves] for state in (source, end)}
            if not moves or (len(facts) + len(moves) <= max_memories and len(used) <= self.n_states):
                break
            spare = (t for t in moves if self.kind.get(t[2]) is Place.OUTSIDE)
            moves.remove(next(spare, moves[0]))
        return renumber([*facts, *moves], used, self.n_states)


def renumber(transitions: Collection[Transition], used: Collection[int], n_states: int) -> tuple[MemoryBank, list[int]]:
    """Transitions in which the states that are used have numbers of the vocabulary: their own, or else free ones.

    Returns:
        The bank, and for each number of the vocabulary the state that it stands for.
    """
    stands_for = list(range(n_states))
    free = (number for number in stands_for if number not in used)
    number = {state: state if state < n_states else next(free) for state in sorted(used)}
    for state, n in number.items():
        stands_for[n] = state
    return MemoryBank((number[s], a, number[e]) for s, a, e in transitions), stands_for
