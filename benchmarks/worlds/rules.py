"""A rival that finds out from a bank what the actions do, by the rules of a world that is the same everywhere.

There a word of moves that leads back to where it began does so from any place: the cycles of a bank are relations
between actions. Linear algebra says which places are one and the same if the order of moves does not matter; else
places are merged until each relation holds at each known place, as in coset enumeration (Todd and Coxeter). What else
may be so is tried in every way, and said is what all ways agree on that do not contradict the bank.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations

from worlds.rivals import Facts, Place, lay_out, read_off

LONGEST = 8  # moves of a cycle that is followed from everywhere: those around a corner, each with a turn

Letter = tuple[int, int]  # an action and 1, or -1 for its way back
Word = tuple[Letter, ...]


def infer(facts: Facts, n_actions: int) -> Facts:
    """All that follows from a bank, if there are so many actions: an odd number cannot all have reverses, as they do
    where the order of moves does not matter."""
    found = None if n_actions % 2 else add_up(facts, n_actions)
    return merge(facts) if found is None else found


def agreed(ways: Iterable[Facts | None]) -> Facts | None:
    """What all ways to read a bank say, without those that contradict it; None if all do."""
    possible = [facts for facts in ways if facts is not None]
    return set.intersection(*possible) if possible else None


def add_up(facts: Facts, n_actions: int) -> Facts | None:
    """All moves if a place is the sum of the moves that lead there; None if the bank contradicts that.

    Sums are counts of each action, up to relations: the cycles of the bank; that each action has a reverse; and that
    of the axes of six actions one is the sum or difference of the others, since they lie in a plane.
    """
    actions = sorted({a for _, a, _ in facts})
    here = (0,) * len(actions)
    move = {a: tuple(int(a == b) for b in actions) for a in actions}
    free = lay_out(facts, lambda place, a, sign: add(place, move[a], sign), here)

    def read(relations: Sequence[Place]) -> Facts | None:
        def step(place: Place, action: int, sign: int) -> Place:
            return reduce(add(place, move[action], sign), relations)

        places = {state: (cluster, reduce(place, relations)) for state, (cluster, place) in free.items()}
        walls = {(places[s][0], step(places[s][1], a, 1)) for s, a, t in facts if s == t}
        around = {step(here, a, 1) for a in actions}
        distinct = len({*places.values()} | walls) == len(places) + len(walls) and len(around - {here}) == len(actions)
        return read_off(facts, places, actions, step) if distinct else None

    def pair_up(relations: Sequence[Place], left: Sequence[int], unseen: int) -> Facts | None:
        """What all ways agree on to pair the actions left, those aside whose reverse the bank does not hold."""
        found = read(relations)
        if found is None:
            return None
        if not left:
            return flatten(relations) if n_actions == 6 else found
        first, *rest = left
        ways = [
            pair_up(echelon([*relations, add(move[first], move[b])]), [a for a in rest if a != b], unseen) for b in rest
        ]
        return agreed([*ways, pair_up(relations, rest, unseen - 1) if unseen else None])

    def flatten(relations: Sequence[Place]) -> Facts | None:
        """What all ways agree on to put three axes into a plane."""
        axes: list[Place] = []
        for one in move.values():
            if all(any(reduce(add(one, other), relations)) for other in axes):
                axes.append(one)
        if len(axes) < 3:
            return read(relations)
        x, y, z = axes
        return agreed(read(echelon([*relations, add(add(z, x, i), y, j)])) for i in (-1, 1) for j in (-1, 1))

    cycles = echelon(add(add(free[s][1], move[a]), free[t][1], -1) for s, a, t in facts if s != t)
    return pair_up(cycles, actions, n_actions - len(actions))


def add(place: Place, other: Place, times: int = 1) -> Place:
    return tuple(x + times * y for x, y in zip(place, other, strict=True))


def echelon(rows: Iterable[Place]) -> list[Place]:
    """A basis in echelon form of the combinations of rows by whole numbers, by Euclid's algorithm in each column."""
    left, basis = {row for row in rows if any(row)}, []
    for column in range(max(map(len, left), default=0)):
        while pivots := [row for row in left if row[column]]:
            pivot = min(pivots, key=lambda row: abs(row[column]))
            left.remove(pivot)
            if len(pivots) == 1:
                basis.append(pivot if pivot[column] > 0 else tuple(-x for x in pivot))
            else:
                left = {add(row, pivot, -(row[column] // pivot[column])) for row in left} | {pivot}
                left.discard((0,) * len(pivot))
    return basis


def reduce(place: Place, basis: Sequence[Place]) -> Place:
    """The same place for all that differ by combinations of an echelon basis."""
    for row in basis:
        column = next(i for i, x in enumerate(row) if x)
        if times := place[column] // row[column]:
            place = add(place, row, -times)
    return place


def merge(facts: Facts) -> Facts:
    """All moves if each cycle of the bank leads back from every place, and some two actions turn by a quarter: they
    undo each other, and four of one lead back."""
    pairs = combinations(sorted({a for _, a, _ in facts}), 2)
    found = agreed(follow_everywhere(facts, [((a, 1), (b, 1)), ((a, 1),) * 4]) for a, b in pairs)
    return facts if found is None else found


def follow_everywhere(facts: Facts, words: Sequence[Word]) -> Facts | None:
    """All moves if these words and the cycles of the bank lead back from every place; None if two states would share
    one."""
    bank = Places()
    at = {state: bank.new() for state in sorted({state for s, _, t in facts for state in (s, t)})}
    for s, a, t in sorted(facts):
        bank.link(at[s], (a, 1), bank.new() if s == t else at[t])
    cycles = {word for s, a, t in facts if s != t if (word := bank.cycle(at[s], (a, 1)))}
    known = range(len(bank.ahead))
    for word in sorted({*cycles, *words}):
        for i in range(len(word)):
            for place in known:
                bank.close(place, word[i:] + word[:i])
    states = {bank.find(place): state for state, place in at.items()}
    walls = {bank.follow(at[s], (a, 1)) for s, a, t in facts if s == t}
    if len({*states} | walls) < len(at) + len(walls):
        return None
    found = set(facts)
    for place, state in states.items():
        for action in sorted({a for _, a, _ in facts}):
            ahead = bank.follow(place, (action, 1))
            if ahead in states:
                found.add((state, action, states[ahead]))
            elif ahead in walls:
                found.add((state, action, state))
    return found


class Places:
    """Places and moves between them; two to which one action leads from the same place, or from which, are merged.

    Attributes:
        ahead: where each letter leads, by place.
        merged: the place into which each one was merged, or itself.
    """

    def __init__(self) -> None:
        self.ahead: list[dict[Letter, int]] = []
        self.merged: list[int] = []

    def new(self) -> int:
        self.ahead.append({})
        self.merged.append(len(self.merged))
        return self.merged[-1]

    def find(self, place: int) -> int:
        while self.merged[place] != place:
            self.merged[place] = place = self.merged[self.merged[place]]
        return place

    def follow(self, place: int, letter: Letter) -> int | None:
        """Where a letter leads, None if that is not known."""
        there = self.ahead[self.find(place)].get(letter)
        return None if there is None else self.find(there)

    def link(self, place: int, letter: Letter, there: int) -> None:
        """Let a letter lead from one place to another, and merge what then has to be the same."""
        action, sign = letter
        same = []
        for start, way, end in ((place, letter, there), (there, (action, -sign), place)):
            same.append((self.ahead[self.find(start)].setdefault(way, end), end))
        while same:
            one, other = map(self.find, same.pop())
            if one != other:
                self.merged[other] = one
                same += [(self.ahead[one].setdefault(way, end), end) for way, end in self.ahead[other].items()]

    def close(self, place: int, word: Word) -> None:
        """Let a word lead back to a place, over new places where it was never followed."""
        here = place
        for letter in word[:-1]:
            if (there := self.follow(here, letter)) is None:
                self.link(here, letter, there := self.new())
            here = there
        self.link(here, word[-1], place)

    def cycle(self, place: int, letter: Letter) -> Word:
        """The shortest word that begins with a letter and leads back over other moves; empty if there is none."""
        (action, sign), start = letter, self.follow(place, letter)
        back = {start: (letter,)}
        queue = deque(back)
        while queue and len(back[here := queue.popleft()]) < LONGEST:
            for way, there in self.ahead[here].items():
                if there not in back and (here, way) != (start, (action, -sign)):
                    back[there] = (*back[here], way)
                    queue.append(there)
        return back.get(place, ())
