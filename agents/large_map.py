"""A map of a world of any size, imagined window by window with a model that was trained on small rooms (ours).

States are exchangeable names for the model. So a few states around a place are given names of its vocabulary, the model
imagines how they lie to each other, and what is sure is named back and joined to the map.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eswm_gym.agents.planning import Plan
from eswm_gym.agents.supported_moves import SupportedMoves
from eswm_gym.agents.windows import PASS, Pool, Window, ask_all, filled, split, tree, unanswered
from eswm_gym.world_model import ESWM, NumberedActions

WIDER = 1.5  # times the states of a window, where those do not find what is missing


class Wall(NamedTuple):
    """What lies where a move is blocked: a place like others on the map, so that ways round it meet.

    Attributes:
        number: of the place.
    """

    number: int


class Move(NamedTuple):
    """A known move.

    Attributes:
        source, end: states; the same one if a wall blocks the move.
        action: an action.
        probability: the greatest that a window gave it; 1 for a fact.
        votes: the number of windows that imagined it; 0 for a fact.
    """

    source: Hashable
    action: int
    end: Hashable
    probability: float
    votes: int


class LargeMap:
    """The moves of a world: facts, and what a frozen model imagines from windows of them.

    A window is a breadth-first tree of known moves around a state; where the model has to find out what actions do, all
    known moves between these states. A wall has a place among them, as if one could go there. The model is asked where
    the unknown moves of its states end. An answer joins the map if it is sure, leads to another state of the window, a
    move leads back or the model is as sure of where it comes from, and no known move contradicts it: from a state only
    one action leads to another, and to a state an action leads from one other. It rests on the moves of its window and
    goes when they do.

    Args:
        model: frozen world model of symbols, without context.
        window: the number of states in a window. Where these find nothing more, half as many again.
        confidence: the least probability of an answer that joins the map.
        passes: passes of the model after each of which the map grows; more are for a pool.
        pool: does these passes at the same time. The map is the same without it.

    Attributes:
        n_windows: windows that the model has read so far.

    Raises:
        ValueError: if the model cannot read such a window, the confidence is no probability, or there are no passes.
    """

    def __init__(
        self,
        model: ESWM,
        window: int = 19,
        confidence: float = 0.99,
        passes: int = 1,
        pool: Pool | None = None,
    ) -> None:
        most = min(model.config.n_states, model.config.max_memories + 1)
        if not 2 <= window <= most:
            raise ValueError(f"a window has 2 to {most} states with this model, got {window}")
        if not 0 <= confidence <= 1:
            raise ValueError(f"confidence must be a probability, from 0 to 1, got {confidence}")
        if passes < 1:
            raise ValueError(f"passes must be at least 1, got {passes}")
        self.model, self.window, self.confidence = model, window, confidence
        self._wider = min(round(window * WIDER), most)  # for ways round what a window does not span
        self.passes, self.pool = passes, pool
        self._finds_out = isinstance(model, NumberedActions) and model.has_codes  # what actions do
        self.n_windows = 0
        self._states: list[Hashable] = []
        self._number: dict[Hashable, int] = {}  # of those that still are states or walls
        self._walls: set[int] = set()
        self._moves = SupportedMoves(model.config.n_actions)
        # By state and size of the window around it: when it was looked at last, and the states in it.
        self._looked: dict[tuple[int, int], tuple[int, Collection[int]]] = {}
        self._asked_back: set[int] = set()  # the moves of which the model was asked what undoes them

    def __len__(self) -> int:
        """The number of known moves, those into and, as if there were some, out of walls among them."""
        return len(self._moves)

    def __contains__(self, state: object) -> bool:
        return state in self._number

    @property
    def states(self) -> tuple[Hashable, ...]:
        """All states but walls."""
        return tuple(state for state, number in self._number.items() if number not in self._walls)

    def transitions(self) -> Iterator[Move]:
        """All known moves."""
        return self._described(self._moves.ends.items())

    def move(self, source: Hashable, action: int) -> Move | None:
        """A move, None if it is not known."""
        number = self._move(self._number.get(source, -1), action)
        return self._describe(number, self._moves.ends[number]) if number in self._moves.ends else None

    def end_of(self, source: Hashable, action: int, votes: int = 1) -> Hashable | None:
        """Where a move ends, None if that is not known; an imagined move counts if it has so many votes."""
        move = self.move(source, action)
        return None if move is None or 0 < move.votes < votes else move.end

    def place_of(self, source: Hashable, action: int) -> Hashable | None:
        """Where a move leads, or would lead if it were not blocked: a state or wall, None if it is not known."""
        end = self._moves.ends.get(self._move(self._number.get(source, -1), action))
        return None if end is None else self._states[end]

    def moves_to(self, state: Hashable) -> list[Move]:
        """The known moves from other states to a state.

        Raises:
            KeyError: if the map does not know the state.
        """
        number, starts, n = self._number[state], self._moves.starts, self._moves.n_actions
        moves = [starts[arrival] * n + arrival % n for arrival in self._moves.of(number) if arrival in starts]
        return list(self._described((move, number) for move in moves))

    # Facts

    def add(self, source: Hashable, action: int, end: Hashable) -> None:
        """Learn a fact. What contradicts it goes, and so does what was imagined from that.

        Raises:
            ValueError: if there is no such action.
        """
        self._move(0, action)  # refuses an action before anything is kept
        start = self._numbered(source)
        move = self._move(start, action)
        if end != source:
            last = self._numbered(end)
        elif (last := self._moves.ends.get(move, start)) not in self._walls:
            last = self._numbered(Wall(len(self._states)))
            self._walls.add(last)
        self._moves.set_fact(move, last)
        self._asked_back.discard(move)

    def wall(self, state: Hashable) -> None:
        """Learn that a state is a wall: moves to it are blocked from now on. What is known of its place stays.

        Raises:
            KeyError: if the map does not know the state.
        """
        self._walls.add(self._number[state])

    def forget(self, state: Hashable, action: int | None = None) -> list[tuple[Hashable, int, Hashable]]:
        """Delete a move, or all moves from and to a state, and what was imagined from them.

        Args:
            state: where the move starts.
            action: of the move. None: all moves from and to the state.

        Returns:
            The moves that are gone, as (source, action, end).

        Raises:
            KeyError: if the map does not know the state or the move.
        """
        number = self._number[state]
        if action is None:
            moves = [move for _, move in self._moves.around(number)]
        else:
            moves = [self._move(number, action)]
            if moves[0] not in self._moves.ends:
                raise KeyError((state, action))
        return [(move.source, move.action, move.end) for move in self._described(self._moves.retract(moves))]

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Call a state by another name from now on; all that is known of it stays. If it was a wall, it is open now.

        Raises:
            KeyError: if the map does not know the state.
            ValueError: if there is a state of that name.
        """
        if new in self._number:
            raise ValueError(f"the map has a state {new!r} already, {old!r} cannot be called so")
        self._number[new] = self._number.pop(old)
        self._states[self._number[new]] = new
        self._walls.discard(self._number[new])

    def join(self, name: Hashable, state: Hashable, names: Collection[Hashable]) -> list[tuple[Hashable, Hashable]]:
        """Learn that a state goes by two names; all that is known of the one is known of the other.

        Args:
            name: one of the names.
            state: the state.
            names: the states that may turn out to be others when these two are one.

        Returns:
            The pairs of states that are one, (name, state).
        """
        numbers = {self._number[one] for one in names if one in self._number}
        pairs = self._moves.join(self._number[name], self._number[state], numbers)
        return [(self._gone(old), self._states[new]) for old, new in pairs]

    # Imagination

    def imagine(self, near: Hashable | None = None, windows: int | None = None) -> int:
        """Imagine windows around states with unknown moves, until nothing is new.

        Args:
            near: a state in whose window the states lie; None: all states.
            windows: how many at most; None: no limit.

        Returns:
            The number of moves that are new.

        Raises:
            KeyError: if the map does not know the state.
        """
        before, most = len(self), math.inf if windows is None else self.n_windows + windows
        sizes = [self.window, self._wider] if near is None else [self.window]
        while self.n_windows < most:
            if near is None:
                states: Sequence[int] = range(len(self._states))
            else:
                states = tree(self._moves, self._number[near], self.window).states
            unsure = [state for state in states if self._moves.n_known.get(state, 0) < self._moves.n_actions]
            walls = [state for state in unsure if state in self._walls]
            others = [state for state in unsure if state not in self._walls]
            if not any(self._round(some, size, most) for size in sizes for some in (others, walls)) and not (
                self._ask_for_ways_back(states, most)
            ):
                break
        return len(self) - before

    def plan(self, start: Hashable, goal: Hashable, votes: int = 1) -> Plan:
        """A shortest way over known moves.

        Args:
            start, goal: states.
            votes: imagined moves count if they have so many.

        Returns:
            The plan, of states as they were given; `found` is False if no way is known.
        """
        if start not in self._number or goal not in self._number:
            return Plan()
        moves, expanded = self._moves.way(self._number[start], self._number[goal], votes, self._walls)
        if moves is None:
            return Plan(expanded=expanded)
        way = list(self._described((move, self._moves.ends[move]) for move in moves))
        states, actions = (start, *(move.end for move in way)), tuple(move.action for move in way)
        probability = math.prod(move.probability for move in way)
        return Plan(states, actions, probability, expanded)  # type: ignore[arg-type]  # its states are of any kind

    # Files

    def to_dict(self) -> dict[str, Any]:
        """All but the model and the options; ready for JSON if the states are."""
        return {
            "n_actions": self._moves.n_actions,
            "states": [state for state in self._states if not isinstance(state, Wall)],
            "unnamed": [state.number for state in self._states if isinstance(state, Wall)],
            "gone": sorted(set(range(len(self._states))).difference(self._number.values())),
            "walls": sorted(self._walls),
            "moves": self._moves.to_dict(),
            "looked": [[*key, when, sorted(seen)] for key, (when, seen) in self._looked.items()],
            "asked_back": sorted(self._asked_back),
            "n_windows": self.n_windows,
        }

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        """Know from now on what `to_dict` gave an account of.

        Raises:
            ValueError: if that map's model had another number of actions.
        """
        if saved["n_actions"] != self._moves.n_actions:
            raise ValueError(f"a map of {saved['n_actions']} actions is none of the model's {self._moves.n_actions}")
        self._states = list(saved["states"])
        for number in saved["unnamed"]:
            self._states.insert(number, Wall(number))
        gone = set(saved["gone"])
        self._number = {state: number for number, state in enumerate(self._states) if number not in gone}
        self._walls = set(saved["walls"])
        self._moves = SupportedMoves.from_dict(self._moves.n_actions, saved["moves"])
        self._looked = {(state, size): (when, frozenset(seen)) for state, size, when, seen in saved["looked"]}
        self._asked_back = set(saved["asked_back"])
        self.n_windows = saved["n_windows"]

    # Windows

    def _round(self, states: Sequence[int], size: int, most: float) -> bool:
        """Imagine windows of a size around those of the states, which have unknown moves, where something is new, the
        newest first, up to so many that were read in all; returns whether there were any."""
        group, before = list[Window](), self.n_windows
        covered = set[int]()  # by windows of this round
        for state in sorted(states, key=lambda state: -self._moves.changed.get(state, 0)):
            if self.n_windows + len(group) >= most:
                break
            if state not in covered and (window := self._news(state, size)):
                group.append(window)
                covered.update(window.states)
                if len(group) == PASS * self.passes:
                    self._keep(group)
                    group = []
        self._keep(group)
        return self.n_windows > before

    def _ask_for_ways_back(self, states: Sequence[int], most: float) -> int:
        """Ask once, of each move to one of these states that no known move undoes, what a model says that sees nothing
        else: a large window can make it doubt the nearest. Up to so many windows that were read in all; returns how
        many moves are new."""
        before, moves = len(self), self._moves
        ways = [
            (start, here, move)
            for here in states
            for action in range(moves.n_actions)
            if (start := moves.starts.get(here * moves.n_actions + action)) is not None
            and not moves.lead(here, start)
            and (move := start * moves.n_actions + action) not in self._asked_back
        ]
        if math.isfinite(most):
            ways = ways[: int(most) - self.n_windows]
        self._asked_back.update(move for *_, move in ways)
        for some in split(ways, PASS * self.passes):
            self._keep([Window([start, here], [move]) for start, here, move in some])
        return len(self) - before

    def _news(self, state: int, size: int) -> Window | None:
        """The window around a state, unless there is nothing to ask about, or the last one there held all of its states
        and has lost no move since."""
        moves = self._moves
        when, seen = self._looked.get((state, size), (-1, ()))
        if seen and all(moves.changed[one] <= when for one in seen):
            return None
        window = tree(moves, state, size)
        if self._finds_out:
            window = filled(moves, window, self.model.config.max_memories * 3 // 4)
        self._looked[state, size] = moves.clock, frozenset(window.states)
        old = seen and set(window.states) <= set(seen) and all(moves.lost.get(one, -1) <= when for one in seen)
        return None if old or not unanswered(moves, window.states) else window

    def _keep(self, group: Sequence[Window]) -> None:
        """Ask about windows, join what fits to the map, and walls that turn out to be one."""
        self.n_windows += len(group)
        walls = list[tuple[int, int]]()
        for held, answers in ask_all(self.model, self._moves, group, self.confidence, self.pool):
            fitting, contrary = self._moves.fitting(answers)
            walls += contrary
            if fitting:
                self._moves.support(held, fitting)
        for one, other in walls:
            if one in self._walls and other in self._walls:
                for old, _ in self._moves.join(one, other, {one}):
                    self._gone(old)

    # Names

    def _numbered(self, state: Hashable) -> int:
        """The number of a state, which gets one if it is new."""
        if state not in self._number:
            self._number[state] = len(self._states)
            self._states.append(state)
        return self._number[state]

    def _gone(self, number: int) -> Hashable:
        """Give up a state, and return it."""
        self._walls.discard(number)
        del self._number[self._states[number]]
        return self._states[number]

    def _move(self, state: int, action: int) -> int:
        if not 0 <= action < self._moves.n_actions:
            raise ValueError(f"an action is a number from 0 to {self._moves.n_actions - 1}, got {action}")
        return state * self._moves.n_actions + action

    def _describe(self, move: int, end: int) -> Move:
        source, action = divmod(move, self._moves.n_actions)
        belief = self._moves.beliefs.get(move)
        sure, votes = (1.0, 0) if belief is None else (belief.probability, len(belief.windows))
        return Move(self._states[source], action, self._states[source if end in self._walls else end], sure, votes)

    def _described(self, moves: Iterable[tuple[int, int]]) -> Iterator[Move]:
        """Moves to ends, less those that would start in walls."""
        return (self._describe(move, end) for move, end in moves if move // self._moves.n_actions not in self._walls)
