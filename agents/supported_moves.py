"""The moves of a large map, and what each of them rests on.

Facts rest on nothing. An imagined move rests on the windows that imagined it, and a window on the moves that it held,
facts or imagined ones. When a move is retracted, all goes that rests on nothing else.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Answers = list[tuple[int, int, float]]  # (move, end, probability)


@dataclass(slots=True)
class Belief:
    """What is kept of an imagined move.

    Attributes:
        probability: the greatest that a window gave it.
        windows: those that imagined it.
    """

    probability: float
    windows: list[int]


class SupportedMoves:
    """Moves between states that are numbers 0, 1, ...; storage grows with the moves alone.

    A move is the whole number `source * n_actions + action`, and an arrival `end * n_actions + action`. From one state
    an action leads to one other, and to one state from one other; no move ends where it starts.

    Attributes:
        ends: where each known move ends.
        starts: where each known arrival comes from.
        n_known: how many moves from each state are known.
        beliefs: of the moves that are no facts.
        changed, lost: when a move from or to a state last came or went, and last went, by a clock that counts changes.
        clock: what it shows now.
    """

    def __init__(self, n_actions: int) -> None:
        self.n_actions = n_actions
        self.ends: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.n_known: dict[int, int] = defaultdict(int)
        self.beliefs: dict[int, Belief] = {}
        self.changed: dict[int, int] = {}
        self.lost: dict[int, int] = {}
        self.clock = 0
        self._held: dict[int, tuple[int, ...]] = {}  # the moves that a window held
        self._imagined: dict[int, list[int]] = {}  # the moves that a window imagined
        self._windows_with: dict[int, set[int]] = defaultdict(set)  # the windows that held a move
        self._next_window = 0

    def __len__(self) -> int:
        return len(self.ends)

    def of(self, state: int) -> range:
        """The moves from a state, known or not; as arrivals, those to it."""
        return range(state * self.n_actions, (state + 1) * self.n_actions)

    def arrival(self, move: int, end: int) -> int:
        return end * self.n_actions + move % self.n_actions

    def unknown(self, states: Iterable[int]) -> list[int]:
        """The moves from states of which nothing is known."""
        return [move for state in states for move in self.of(state) if move not in self.ends]

    def lead(self, source: int, end: int) -> bool:
        """Whether a known move leads from one state to another."""
        return any(self.ends.get(move) == end for move in self.of(source))

    def around(self, state: int) -> Iterator[tuple[int, int]]:
        """(other state, move) of each known move that leads from or to a state, facts first."""
        later = []
        for here in self.of(state):
            end, start = self.ends.get(here, state), self.starts.get(here, state)
            for other, move in ((end, here), (start, start * self.n_actions + here % self.n_actions)):
                if other != state:
                    if move in self.beliefs:
                        later.append((other, move))
                    else:
                        yield other, move
        yield from later

    def way(self, start: int, goal: int, votes: int, closed: Container[int]) -> tuple[list[int] | None, int]:
        """A shortest way over facts and moves that so many windows imagined, through no closed states, breadth first.

        Returns:
            Its moves, None if there is no way; and how many states were expanded.
        """
        came, queue, expanded = {start: -1}, deque([start]), 0
        while queue and goal not in came:
            expanded += 1
            for move in self.of(queue.popleft()):
                end = self.ends.get(move)
                if end is not None and end not in came and end not in closed and self.counts(move, votes):
                    came[end] = move
                    queue.append(end)
        if goal not in came:
            return None, expanded
        moves, here = list[int](), goal
        while here != start:
            moves.append(came[here])
            here = moves[-1] // self.n_actions
        return moves[::-1], expanded

    def counts(self, move: int, votes: int) -> bool:
        """Whether a move is a fact or so many windows imagined it."""
        belief = self.beliefs.get(move)
        return move in self.ends and (belief is None or len(belief.windows) >= votes)

    def part(self, states: Iterable[int]) -> SupportedMoves:
        """Where the moves from and to these states lead, and nothing of what they rest on."""
        some = SupportedMoves(self.n_actions)
        for move in (move for state in states for move in self.of(state)):
            if move in self.ends:
                some.ends[move] = self.ends[move]
            if move in self.starts:
                some.starts[move] = self.starts[move]
        return some

    def set_fact(self, move: int, end: int) -> None:
        """Learn a fact; what contradicts it is retracted."""
        source, action = divmod(move, self.n_actions)
        wrong = [move] if self.ends.get(move, end) != end else []
        rival = self.starts.get(self.arrival(move, end), source) * self.n_actions + action
        if rival != move and rival in self.beliefs:
            wrong.append(rival)
        self.retract(wrong)
        if move in self.beliefs:
            for window in self.beliefs.pop(move).windows:
                self._imagined[window].remove(move)
        elif move not in self.ends:
            self._set(move, end)

    def fitting(self, answers: Answers) -> tuple[Answers, list[tuple[int, int]]]:
        """Sort out what contradicts itself or what is known.

        Args:
            answers: where moves end by a window, as (move, end, probability).

        Returns:
            The answers that may be supported, and the pairs of states that would have to be one for others to fit.
        """
        sources, pairs = defaultdict[int, list[int]](list), defaultdict[tuple[int, int], int](int)
        for move, end, _ in answers:
            sources[self.arrival(move, end)].append(move // self.n_actions)
            pairs[move // self.n_actions, end] += 1
        fitting, contrary = [], [pair for rivals in sources.values() for pair in pairwise(rivals)]
        for move, end, probability in answers:
            source, arrival = move // self.n_actions, self.arrival(move, end)
            if len(sources[arrival]) > 1 or pairs[source, end] > 1:
                continue
            known, start = self.ends.get(move, end), self.starts.get(arrival, source)
            if (known, start) != (end, source):
                contrary += [pair for pair in ((known, end), (start, source)) if pair[0] != pair[1]]
            elif move in self.beliefs or (move not in self.ends and not self.lead(source, end)):
                fitting.append((move, end, probability))
        return fitting, contrary

    def support(self, held: Sequence[int], imagined: Answers) -> None:
        """Learn what a window of moves that it held imagined, as (move, end, probability): no facts, none that
        contradicts what is known."""
        window, self._next_window = self._next_window, self._next_window + 1
        self._held[window], self._imagined[window] = tuple(held), []
        for move in held:
            self._windows_with[move].add(window)
        for move, end, probability in imagined:
            if move not in self.ends:
                self._set(move, end)
            belief = self.beliefs.setdefault(move, Belief(0.0, []))
            belief.probability = max(belief.probability, probability)
            belief.windows.append(window)
            self._imagined[window].append(move)

    def join(self, old: int, new: int, names: Collection[int]) -> list[tuple[int, int]]:
        """Learn that two states are one: what is known of the first is known of the second from now on.

        Where a move of both leads to two states, these are one as well if one of them is a mere name; else the first
        one's move is retracted, with what rests on it.

        Args:
            old: a name.
            new: the state.
            names: the states of which nothing but the name is known.

        Returns:
            The pairs that are one, (name, state).
        """
        joined, queue = dict[int, int](), deque([(old, new)])
        while queue:
            old, new = (self._last(state, joined) for state in queue.popleft())
            if old not in names:
                old, new = new, old
            if old == new or old not in names:
                continue
            joined[old] = new
            for move in self.of(old):
                if move in self.ends:
                    queue.extend(self._pass_on(move, new * self.n_actions + move % self.n_actions, names))
            for arrival in self.of(old):
                if arrival in self.starts:
                    queue.extend(self._redirect(arrival, new, names))
        return list(joined.items())

    @staticmethod
    def _last(state: int, joined: Mapping[int, int]) -> int:
        while state in joined:
            state = joined[state]
        return state

    def _pass_on(self, move: int, twin: int, names: Collection[int]) -> list[tuple[int, int]]:
        """Put a move of another state in the place of a move; the pair of their ends, if these have to be one."""
        end, new = self.ends[move], twin // self.n_actions
        other = self.ends.get(twin, end)
        is_rival = other != end and end not in names and other not in names
        if end in (new, move // self.n_actions) or is_rival or (twin not in self.ends and self.lead(new, end)):
            self.retract([move])
            return []
        belief, is_known = self.beliefs.pop(move, None), twin in self.ends
        for window in self._windows_with.pop(move, ()):
            self._held[window] = tuple(twin if held == move else held for held in self._held[window])
            self._windows_with[twin].add(window)
        del self.ends[move]
        self.n_known[move // self.n_actions] -= 1
        if self.starts.get(self.arrival(move, end)) == move // self.n_actions:
            del self.starts[self.arrival(move, end)]
        if not is_known:
            self._set(twin, end)
            if belief is not None:
                self.beliefs[twin] = Belief(belief.probability, [])
        for window in belief.windows if belief is not None else ():
            self._imagined[window].remove(move)
            if twin in self.beliefs and twin not in self._imagined[window]:
                self._imagined[window].append(twin)
                self.beliefs[twin].windows.append(window)
        if belief is None and twin in self.beliefs:  # it is a fact
            self.set_fact(twin, other)
        return [] if other == end else [(end, other)]

    def _redirect(self, arrival: int, new: int, names: Collection[int]) -> list[tuple[int, int]]:
        """Let an arrival at another state be one at a state; the pair of its starts, if these have to be one."""
        action, source = arrival % self.n_actions, self.starts[arrival]
        move, rival = source * self.n_actions + action, self.starts.get(new * self.n_actions + action, source)
        if source == new or (rival != source and source not in names and rival not in names):
            self.retract([move])
            return []
        del self.starts[arrival]
        self.ends[move] = new
        self._note(move, new)
        if rival == source:
            self.starts[self.arrival(move, new)] = source
            return []
        return [(source, rival)]

    def retract(self, moves: Iterable[int]) -> list[tuple[int, int]]:
        """Delete known moves, and what then rests on no window whose moves are all known.

        Returns:
            (move, end) of those that are gone.
        """
        wrong = dict.fromkeys(moves)
        gone, queue = dict(wrong), deque(wrong)
        touched: dict[int, None] = {}
        while queue:  # all that may follow from them
            for window in self._windows_with.get(queue.popleft(), ()):
                if window not in touched:
                    touched[window] = None
                    new = [move for move in self._imagined[window] if move not in gone]
                    gone |= dict.fromkeys(new)
                    queue.extend(new)
        saved = True
        while saved:  # less what follows from the rest all the same
            saved = False
            for move in [move for move in gone if move not in wrong]:
                if any(not any(held in gone for held in self._held[w]) for w in self.beliefs[move].windows):
                    del gone[move]
                    saved = True
        for window in [window for window in touched if any(held in gone for held in self._held[window])]:
            for held in self._held.pop(window):
                self._windows_with[held].discard(window)
            for move in self._imagined.pop(window):
                self.beliefs[move].windows.remove(window)
        for move in gone:
            if move in self.beliefs:
                for window in self.beliefs.pop(move).windows:
                    self._imagined[window].remove(move)
        return [(move, self._unset(move)) for move in gone]

    def _set(self, move: int, end: int) -> None:
        self.ends[move] = end
        self.starts[self.arrival(move, end)] = move // self.n_actions
        self.n_known[move // self.n_actions] += 1
        self._note(move, end)

    def _unset(self, move: int) -> int:
        end = self.ends.pop(move)
        self.n_known[move // self.n_actions] -= 1
        if self.starts.get(self.arrival(move, end)) == move // self.n_actions:
            del self.starts[self.arrival(move, end)]
        self._windows_with.pop(move, None)
        self._note(move, end)
        self.lost[move // self.n_actions] = self.lost[end] = self.clock
        return end

    def _note(self, move: int, end: int) -> None:
        self.clock += 1
        self.changed[move // self.n_actions] = self.changed[end] = self.clock

    # Files

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {
            "ends": list(self.ends.items()),
            "beliefs": [[move, belief.probability, belief.windows] for move, belief in self.beliefs.items()],
            "windows": [[window, held, self._imagined[window]] for window, held in self._held.items()],
            "changed": list(self.changed.items()),
            "lost": list(self.lost.items()),
            "counts": [self.clock, self._next_window],
        }

    @classmethod
    def from_dict(cls, n_actions: int, saved: Mapping[str, Any]) -> SupportedMoves:
        """What `to_dict` gave an account of."""
        moves = cls(n_actions)
        for move, end in saved["ends"]:
            moves._set(move, end)
        moves.beliefs = {move: Belief(probability, list(windows)) for move, probability, windows in saved["beliefs"]}
        for window, held, imagined in saved["windows"]:
            moves._held[window], moves._imagined[window] = tuple(held), list(imagined)
            for move in held:
                moves._windows_with[move].add(window)
        moves.changed, moves.lost = dict(saved["changed"]), dict(saved["lost"])
        moves.clock, moves._next_window = saved["counts"]
        return moves
