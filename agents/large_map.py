"""A map of a world of any size, imagined window by window with a model that was trained on small rooms (ours).

States are exchangeable names for the model. So a few states around a place are given names of its vocabulary, the model
imagines how they lie to each other, and what is sure is named back and joined to the map.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eswm_gym.agents.planning import Plan
from eswm_gym.agents.supported_moves import SupportedMoves
from eswm_gym.agents.windows import PASS, Answers, Pool, Window, ask_all, chains, filled, split, tree
from eswm_gym.world_model import ESWM, NumberedActions

OFTEN = 2  # a state that so many windows of a round hold needs none around itself
CHAIN_CONFIDENCE = 0.9  # the least probability of the answers of a chain
AGREE = 2  # so many chains have to agree
Votes = dict[tuple[int, ...], tuple[int, int, float]]  # of chains, by what they held: (move, end, probability)


class Move(NamedTuple):
    """A known move.

    Attributes:
        source, end: states.
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

    A window is a breadth-first tree of known moves around a state, and the bumps of its states; where the model has to
    find out what actions do, all known moves between these states. The model is asked where the unknown moves of its
    states end. An answer joins the map if it is sure, leads to another state of the window, a move leads back or the
    model is as sure of where it comes from, and no known move contradicts it: from a state only one action leads to
    another, and to a state an action leads from one other. It rests on the moves of its window and goes when they do.

    Args:
        model: frozen world model of symbols, without context.
        window: the number of states in a window.
        confidence: the least probability of an answer that joins the map.
        seed: of the order in which it looks at states.
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
        confidence: float = 0.95,
        seed: int | None = 0,
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
        self.passes, self.pool = passes, pool
        self._finds_out = isinstance(model, NumberedActions) and model.has_codes  # what actions do
        self.rng = np.random.default_rng(seed)
        self.n_windows = 0
        self._states: list[Hashable] = []
        self._number: dict[Hashable, int] = {}
        self._moves = SupportedMoves(model.config.n_actions)
        self._looked: dict[int, tuple[int, Collection[int]]] = {}  # when a state was looked around, and at what states
        self._asked_back: set[int] = set()  # the moves of which the model was asked what undoes them
        self._surprises = 0  # sure answers that contradicted what was known

    def __len__(self) -> int:
        """The number of known moves, bumps among them."""
        return len(self._moves)

    def __contains__(self, state: object) -> bool:
        return state in self._number

    @property
    def states(self) -> tuple[Hashable, ...]:
        """All states, in the order in which they came."""
        return tuple(self._states)

    def transitions(self) -> Iterator[Move]:
        """All known moves."""
        return (self._describe(move, end) for move, end in self._moves.ends.items())

    def move(self, source: Hashable, action: int) -> Move | None:
        """A move, None if it is not known."""
        number = self._move(self._number.get(source, -1), action)
        return self._describe(number, self._moves.ends[number]) if number in self._moves.ends else None

    def end_of(self, source: Hashable, action: int, votes: int = 1) -> Hashable | None:
        """Where a move ends, None if that is not known; an imagined move counts if it has so many votes."""
        move = self.move(source, action)
        return None if move is None or 0 < move.votes < votes else move.end

    def moves_to(self, state: Hashable) -> list[Move]:
        """The known moves from other states to a state.

        Raises:
            KeyError: if the map does not know the state.
        """
        number, starts, n = self._number[state], self._moves.starts, self._moves.n_actions
        moves = [starts[arrival] * n + arrival % n for arrival in self._moves.of(number) if arrival in starts]
        return [self._describe(move, number) for move in moves]

    # Facts

    def add(self, source: Hashable, action: int, end: Hashable) -> None:
        """Learn a fact. What contradicts it goes, and so does what was imagined from that.

        Raises:
            ValueError: if there is no such action.
        """
        self._move(0, action)  # refuses an action before anything is kept
        for state in (source, end):
            if state not in self._number:
                self._number[state] = len(self._states)
                self._states.append(state)
        move = self._move(self._number[source], action)
        self._moves.set_fact(move, self._number[end])
        self._asked_back.discard(move)

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
            moves = [move for _, move in self._moves.around(number)] + self._moves.bumps([number])
        else:
            moves = [self._move(number, action)]
            if moves[0] not in self._moves.ends:
                raise KeyError((state, action))
        n = self._moves.n_actions
        return [(self._states[m // n], m % n, self._states[end]) for m, end in self._moves.retract(moves)]

    def rename(self, old: Hashable, new: Hashable) -> None:
        """Call a state by another name from now on; all that is known of it stays.

        Raises:
            KeyError: if the map does not know the state.
            ValueError: if there is a state of that name.
        """
        if new in self._number:
            raise ValueError(f"the map has a state {new!r} already, {old!r} cannot be called so")
        self._number[new] = self._number.pop(old)
        self._states[self._number[new]] = new

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
        return [(self._states[old], self._states[new]) for old, new in pairs]

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
        while self.n_windows < most:
            if near is None:
                states = self.rng.permutation(len(self._states)).tolist()
            else:
                states = tree(self._moves, self._number[near], self.window).states
            if not self._round(states, most) and not self._ask_for_ways_back(states, most):
                break
        return len(self) - before

    def close(self) -> int:
        """Look for moves between states that are far from each other on the map, as on two sides of a long wall.

        Windows are ways round what is unknown. What two of them agree on is a hypothesis, and stays unless windows
        around it then contradict what is known.

        Returns:
            The number of moves that are new.
        """
        before, waiting = len(self), list[Window]()
        asked, found = set[frozenset[int]](), defaultdict[frozenset[int], Votes](dict)
        for state in self.rng.permutation(len(self._states)).tolist():
            waiting += [way for way in chains(self._moves, state) if frozenset(way.states) not in asked]
            asked.update(frozenset(way.states) for way in waiting)
            if len(waiting) >= PASS * self.passes:
                self._count_votes(waiting, found)
                waiting = []
        self._count_votes(waiting, found)
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
        moves, expanded = self._moves.way(self._number[start], self._number[goal], votes)
        if moves is None:
            return Plan(expanded=expanded)
        way = [self._describe(move, self._moves.ends[move]) for move in moves]
        states, actions = (start, *(move.end for move in way)), tuple(move.action for move in way)
        probability = math.prod(move.probability for move in way)
        return Plan(states, actions, probability, expanded)  # type: ignore[arg-type]  # its states are of any kind

    # Files

    def to_dict(self) -> dict[str, Any]:
        """All but the model and the options; ready for JSON if the states are."""
        return {
            "n_actions": self._moves.n_actions,
            "states": self._states.copy(),
            "moves": self._moves.to_dict(),
            "looked": [[state, when, sorted(seen)] for state, (when, seen) in self._looked.items()],
            "asked_back": sorted(self._asked_back),
            "counts": [self.n_windows, self._surprises],
            "rng": self.rng.bit_generator.state,
        }

    def load_dict(self, saved: Mapping[str, Any]) -> None:
        """Know from now on what `to_dict` gave an account of.

        Raises:
            ValueError: if that map's model had another number of actions.
        """
        if saved["n_actions"] != self._moves.n_actions:
            raise ValueError(f"a map of {saved['n_actions']} actions is none of the model's {self._moves.n_actions}")
        self._states = list(saved["states"])
        self._number = {state: number for number, state in enumerate(self._states)}
        self._moves = SupportedMoves.from_dict(self._moves.n_actions, saved["moves"])
        self._looked = {state: (when, frozenset(seen)) for state, when, seen in saved["looked"]}
        self._asked_back = set(saved["asked_back"])
        self.n_windows, self._surprises = saved["counts"]
        self.rng.bit_generator.state = saved["rng"]

    # Windows

    def _round(self, states: Sequence[int], most: float) -> bool:
        """Imagine windows around those of the states where something is new, up to so many that were read in all;
        returns whether there were any."""
        group, before = list[Window](), self.n_windows
        times: dict[int, int] = defaultdict(int)  # that a state was in a window
        for state in states:
            if self.n_windows + len(group) >= most:
                break
            if times[state] < OFTEN and (window := self._news(state)):
                group.append(window)
                for one in window.states:
                    times[one] += 1
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

    def _news(self, state: int) -> Window | None:
        """The window around a state with unknown moves, unless the last one there held all of its states and has lost
        no move since."""
        moves = self._moves
        if not moves.unknown([state]):
            return None
        when, seen = self._looked.get(state, (-1, ()))
        if seen and all(moves.changed[one] <= when for one in seen):
            return None
        window = tree(moves, state, self.window)
        if self._finds_out:
            window = filled(moves, window, self.model.config.max_memories * 3 // 4)  # bumps have to fit in as well
        self._looked[state] = moves.clock, frozenset(window.states)
        old = seen and set(window.states) <= set(seen) and all(moves.lost.get(one, -1) <= when for one in seen)
        return None if old else window

    def _keep(self, group: Sequence[Window]) -> None:
        for held, answers in self._answers(group, self.confidence):
            if answers:
                self._moves.support(held, answers)

    def _count_votes(self, ways: Sequence[Window], found: dict[frozenset[int], Votes]) -> None:
        """Count what ways say of each pair of states, and join to the map that on which enough of them agree."""
        there = [way for way in ways if all(move in self._moves.ends for move in way.moves)]
        for held, answers in list(self._answers(there, CHAIN_CONFIDENCE)):
            for move, end, probability in answers:
                votes = found[frozenset((move // self._moves.n_actions, end))]
                votes[(move, *held)] = move, end, probability
                if len(votes) == AGREE:
                    self._try(votes)

    def _try(self, votes: Votes) -> None:
        """Join a hypothesis to the map, unless what follows from it contradicts what is known."""
        surprises, tried = self._surprises, list[int]()
        for (_, *held), answer in votes.items():
            if all(move in self._moves.ends for move in held) and (fitting := self._fitting([answer])):
                self._moves.support(held, fitting)
                tried.append(answer[0])
        for move in tried:
            self.imagine(self._states[move // self._moves.n_actions], PASS)
        if self._surprises > surprises:
            self._moves.retract([move for move in tried if move in self._moves.beliefs])

    # Answers

    def _answers(self, group: Sequence[Window], confidence: float) -> Iterator[tuple[Sequence[int], Answers]]:
        """The moves that each window held, and its answers that fit, in one pass of the model."""
        self.n_windows += len(group)
        for held, answers in ask_all(self.model, self._moves, group, confidence, self.pool):
            yield held, self._fitting(answers)

    def _fitting(self, answers: Answers) -> Answers:
        """The answers that contradict neither each other nor what is known."""
        moves = self._moves
        arrivals, pairs = defaultdict[int, int](int), defaultdict[tuple[int, int], int](int)
        for move, end, _ in answers:
            arrivals[moves.arrival(move, end)] += 1
            pairs[move // moves.n_actions, end] += 1
        fitting = []
        for move, end, probability in answers:
            source, arrival = move // moves.n_actions, moves.arrival(move, end)
            if arrivals[arrival] > 1 or pairs[source, end] > 1:
                continue
            if moves.ends.get(move) == end:
                if move in moves.beliefs:
                    fitting.append((move, end, probability))
            elif move in moves.ends or arrival in moves.starts or moves.lead(source, end):
                self._surprises += 1
            else:
                fitting.append((move, end, probability))
        return fitting

    def _move(self, state: int, action: int) -> int:
        if not 0 <= action < self._moves.n_actions:
            raise ValueError(f"an action is a number from 0 to {self._moves.n_actions - 1}, got {action}")
        return state * self._moves.n_actions + action

    def _describe(self, move: int, end: int) -> Move:
        source, action = divmod(move, self._moves.n_actions)
        belief = self._moves.beliefs.get(move)
        sure, votes = (1.0, 0) if belief is None else (belief.probability, len(belief.windows))
        return Move(self._states[source], action, self._states[end], sure, votes)
