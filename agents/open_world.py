"""What an agent knows of a world that somebody else wrote: of any size, with jumps, and perhaps not as it was told."""

from __future__ import annotations

import warnings
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from eswm_gym.agents.config import AgentConfig
from eswm_gym.agents.knowledge import knowledge_for
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.places import FIRST_PLACE, Place, renumber
from eswm_gym.agents.planning import UNKNOWN, TransitionTable
from eswm_gym.agents.symbols import SymbolKnowledge
from eswm_gym.world_model import ESWM
from eswm_gym.world_model.codecs import NameCodec

SURE = 0.9  # what is imagined with this probability should come true
MISSES, SHARE = 4, 0.25  # so many surprises, and such a share of what was sure, show that the lattice is a wrong one


@knowledge_for(NameCodec, True, False)
class OpenWorldKnowledge(SymbolKnowledge):
    """Knowledge of a world with any number of states, whose geometry may be another one than the model was told.

    The bank grows without limit, and the model reads the memories nearest to the agent. All memories are facts to plan
    with. Some are no evidence of geometry, and the model does not read them: jumps, such as a fall off a cliff that
    leads back to the start, and walls between two states. A place that may be free counts as free in plans, and the
    states in which an episode ended without success are never entered again. The first episode is planned with caution;
    later ones go the shortest way even where it is not sure, because it may be the way from then on.

    Attributes:
        jumps: transitions that the model does not read.
        dead_ends: states in which an episode ended without success.
        hits, misses: how often moves ended, and did not end, where the model was sure that they would.
    """

    cost = "caution"
    is_limited = False

    def __init__(self, model: ESWM, config: AgentConfig, memories: Iterable = ()) -> None:
        super().__init__(model, config, memories)
        self.map.next_name = FIRST_PLACE
        self.jumps: set[Transition] = set()
        self.dead_ends: set[int] = set()
        self.hits = self.misses = 0
        self._remembered = False
        self._note_jumps()

    def check(self, *states: int) -> None:
        if min(states, default=0) < 0:
            raise ValueError(f"a state is a number of at least 0, got {min(states)}")

    @property
    def is_misled(self) -> bool:
        """Whether the world contradicts what the model is sure of, so that only facts count."""
        return self.misses >= MISSES and self.misses > SHARE * (self.hits + self.misses)

    def _encode(self, state: int) -> tuple[MemoryBank, list[int]]:
        left_out = self._uninformative_places()
        moves = [t for t in self._named_moves() if t[2] not in left_out]
        held = {(source, action) for source, action, _ in moves}
        facts = [t for t in self.memory if t[:2] not in held and t not in self.jumps]
        config = self.model.config
        window = [] if self.is_misled else nearest([*facts, *moves], state, config.max_memories, config.n_states)
        return renumber(window, {state} | {s for source, _, end in window for s in (source, end)}, config.n_states)

    @classmethod
    def imagine(cls, every: Any, states: Any) -> None:
        super().imagine(every, states)
        for knowledge in every:
            knowledge.table = knowledge._with_all_states(knowledge.table)

    def _with_all_states(self, table: TransitionTable) -> TransitionTable:
        """The table with rows for remembered states that the model did not read: of those, facts alone are known."""
        others = np.array([state for state in self.memory.states if state not in table.index], np.int64)
        shape = (len(others), table.end.shape[1])
        whole = TransitionTable(
            np.concatenate([table.states, others]),
            np.concatenate([table.end, np.full(shape, UNKNOWN)]),
            np.concatenate([table.probability, np.zeros(shape, table.probability.dtype)]),
            np.concatenate([table.entropy, np.zeros(shape, table.entropy.dtype)]),
        )
        if self.is_misled:
            whole = replace(whole, end=np.full_like(whole.end, UNKNOWN))
        return whole.with_facts(self.memory, self._named_moves())

    def _named_moves(self) -> list[Transition]:
        """The moves to and from named places, less those that turned out to lead elsewhere."""
        return [t for t in self.map.moves if self.memory.end_of(t[0], t[1]) in (None, t[0])]

    def table_at(self, state: int) -> TransitionTable:
        table = super().table_at(state)
        dead = [state for state in self.dead_ends if state != self.goal]
        never = np.isin(table.end, dead) | np.isin(table.states, dead)[:, None]
        return replace(table, end=np.where(never, table.states[:, None], table.end))

    def imagined(self, state: int) -> TransitionTable:
        closed = {place for place, kind in self.places.items() if kind is not Place.FRONTIER}
        return self.table_at(state).without_places(closed, ()).with_facts(self.ruled_out)

    def expected(self, state: int, action: int) -> int:
        remembered = self.memory.end_of(state, action)
        return super().expected(state, action) if remembered in (None, state) else remembered  # type: ignore[return-value]

    def name_unknown_ends(self, state: int, actions: Collection[int]) -> bool:
        return not self.is_misled and super().name_unknown_ends(state, actions)

    def learn(self, happened: Transition, goal: Any = None) -> list[Transition]:
        state, action, end = happened
        self._remembered = self.memory.end_of(state, action) is not None
        if not self._remembered:
            self._compare(happened)
        forgotten = super().learn(happened, goal)
        named = self.map.moves.end_of(state, action)
        if named not in (None, end) and named not in self.places:  # the place was taken for another one
            self.map.moves.forget(state, action)
            self.table = None
        if end == state and self.table is not None:  # else the move would stay as doubtful as it was
            wall = self.map.moves.end_of(state, action)
            self.table = self.table.with_facts([(state, action, end if wall is None else wall)])
        return forgotten

    def _compare(self, happened: Transition) -> None:
        """Compare a move that was not made before with what the model was sure of."""
        state, action, end = happened
        table = self.table
        if table is None or (row := table.row(state)) is None:
            return
        expected = int(table.end[row, action])
        if table.probability[row, action] >= SURE and expected not in (UNKNOWN, state) and expected not in self.places:
            if end == state:
                self.jumps.add(happened)  # a wall between two free places
            else:
                self._count(expected == end)
        if end not in (state, expected):
            # An action leads to a state from one other state at most: if from two, one of the moves is a jump.
            sure = (table.end[:, action] == end) & (table.probability[:, action] >= SURE)
            for other in set(table.states[sure].tolist()) - {state, end} - self.places.keys():
                self.jumps |= {t for t in [happened, (other, action, end)] if t == happened or t in self.memory}

    def _count(self, hit: bool) -> None:
        """Count whether a move ended where it was sure to; warn when there are too many surprises."""
        before = self.is_misled
        self.hits, self.misses = self.hits + hit, self.misses + (not hit)
        if self.is_misled and not before:
            self.table = None
            warnings.warn(
                f"{self.misses} of {self.hits + self.misses} moves did not lead where the model was sure they would: "
                "the lattice or the names of the actions are wrong, or moves are random. From now on the agent plans "
                "with what it remembers alone",
                stacklevel=2,
            )

    def begin_episode(self) -> None:
        """See `Knowledge`. A place that was named when little was known may be a state that is known by now, so that
        the model is asked anew where the moves to such places end."""
        super().begin_episode()
        self.cost, self.table = "steps", None
        self.map.forget_frontiers()

    def _note_jumps(self) -> None:
        """Of several moves by one action that end in one state, all but one at most are jumps."""
        ways = defaultdict(list)
        for source, action, end in self.memory:
            if source != end:
                ways[action, end].append((source, action, end))
        self.jumps |= {move for moves in ways.values() if len(moves) > 1 for move in moves}

    def avoid(self, state: int) -> None:
        self.dead_ends.add(state)

    def _revise(self, expected: int, happened: Transition, goal: Any) -> tuple[Transition, list[Transition]]:
        """See `SymbolKnowledge`. Only what contradicts a memory shows that the world has changed."""
        if self._remembered or expected in self.places:
            return super()._revise(expected, happened, goal)
        return happened, []

    def to_dict(self) -> dict[str, Any]:
        own = {
            "jumps": sorted(self.jumps),
            "dead_ends": sorted(self.dead_ends),
            "counts": [self.hits, self.misses],
            "cost": self.cost,
        }
        return super().to_dict() | own

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_dict(saved)
        self.jumps = {(source, action, end) for source, action, end in saved["jumps"]}
        self.dead_ends = set(saved["dead_ends"])
        self.hits, self.misses = saved["counts"]
        self.cost = saved["cost"]


def nearest(transitions: Collection[Transition], here: int, n_memories: int, n_states: int) -> list[Transition]:
    """The transitions nearest to a state: all of them if they fit, else a breadth-first tree, then bumps, then others.

    Args:
        transitions: all of them.
        here: the state.
        n_memories, n_states: greatest numbers of transitions and of states in them.
    """
    states = {here} | {state for source, _, end in transitions for state in (source, end)}
    if len(transitions) <= n_memories and len(states) <= n_states:
        return list(transitions)
    touching = defaultdict(list)
    for transition in transitions:
        for state in {transition[0], transition[2]}:
            touching[state].append(transition)
    tree, rank, queue = list[Transition](), {here: 0}, deque([here])
    while queue:
        state = queue.popleft()
        for source, action, end in touching[state]:
            other = end if source == state else source
            if other not in rank and len(rank) < n_states and len(tree) < n_memories:
                rank[other] = len(rank)
                tree.append((source, action, end))
                queue.append(other)
    taken = set(tree)
    rest = [t for t in transitions if t not in taken and t[0] in rank and t[2] in rank]
    rest.sort(key=lambda t: (t[0] != t[2], rank[t[0]]))
    return tree + rest[: n_memories - len(tree)]
