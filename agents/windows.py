"""Windows of a large map: parts that a world model can read, and what it answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import torch

from eswm_gym.agents.planning import require_numbers
from eswm_gym.agents.supported_moves import Answers, SupportedMoves
from eswm_gym.rooms.transitions import MASKED, pad
from eswm_gym.world_model import ESWM

T = TypeVar("T")
PASS = 8  # windows that the model reads at once: as many as a processor's cache holds
LEADS_BACK = 0.7  # least probability of the source of an answer, where no move is known to lead back


class Pool(Protocol):
    """Does many tasks at the same time: a `concurrent.futures.Executor`, or a `Pool` of multiprocessing or of Ray."""

    def map(self, do: Callable, tasks: Iterable, /) -> Iterable: ...


class Window(NamedTuple):
    """A part of the map that a model can read.

    Attributes:
        states: those whose unknown moves it is asked about; their places are their names.
        moves: the moves that join them.
    """

    states: list[int]
    moves: list[int]


def tree(moves: SupportedMoves, centre: int, size: int) -> Window:
    """A breadth-first tree of so many states around one."""
    states, joined = {centre: None}, list[int]()
    queue = deque([centre])
    while queue and len(states) < size:
        for other, move in moves.around(queue.popleft()):
            if other not in states and len(states) < size:
                states[other] = None
                joined.append(move)
                queue.append(other)
    return Window(list(states), joined)


def filled(moves: SupportedMoves, window: Window, most: int) -> Window:
    """The same window with other known moves between its states, up to so many in all."""
    states, joined = set(window.states), dict.fromkeys(window.moves)
    between = (move for state in window.states for move in moves.of(state) if moves.ends.get(move, state) != state)
    return Window(window.states, list(joined | dict.fromkeys(m for m in between if moves.ends[m] in states))[:most])


def unanswered(moves: SupportedMoves, states: Sequence[int]) -> list[int]:
    """The unknown moves that may lead to another of these states: one to which no such action leads yet."""
    n = moves.n_actions
    free = [[state for state in states if state * n + action not in moves.starts] for action in range(n)]
    return [move for move in moves.unknown(states) if free[move % n] not in ([], [move // n])]


def ask_all(
    model: ESWM, moves: SupportedMoves, windows: Sequence[Window], confidence: float, pool: Pool | None = None
) -> Iterator[tuple[list[int], Answers]]:
    """Ask about any number of windows, in as many passes as it takes, which a pool does at the same time: see `ask`."""
    parts = split(windows, PASS)
    tasks = [(moves.part({state for window in part for state in window.states}), part) for part in parts]
    for answered in (map if pool is None else pool.map)(partial(_do, model, confidence), tasks):
        yield from answered


def _do(
    model: ESWM, confidence: float, task: tuple[SupportedMoves, Sequence[Window]]
) -> list[tuple[list[int], Answers]]:
    return ask(model, *task, confidence)


@torch.inference_mode()
def ask(
    model: ESWM, moves: SupportedMoves, windows: Sequence[Window], confidence: float
) -> list[tuple[list[int], Answers]]:
    """Ask for the ends of the unknown moves of all states of windows, in one pass.

    An answer is a move between two states of a window that is at least so probable, and to which a move leads back or
    the model agrees where it comes from.

    Returns:
        For each window, the moves that the model read, and the answers.
    """
    n, banks, queries = moves.n_actions, list[np.ndarray](), list[np.ndarray]()
    for states, joined in windows:
        name = {state: i for i, state in enumerate(states)}
        banks.append(_rows((name[move // n], move % n, name[moves.ends[move]]) for move in joined))
        queries.append(_rows((name[move // n], move % n, MASKED) for move in unanswered(moves, states)))
    if not any(map(len, queries)):
        return []

    def predicted(some: Sequence[np.ndarray], component: str) -> torch.Tensor:
        """(B, Q, n_states + 1) probabilities of a component of the queries."""
        prediction = model(*(torch.from_numpy(pad(rows)).to(model.device) for rows in (banks, some)))
        p = getattr(prediction, component).float().softmax(-1)
        require_numbers(model, p)
        return p

    found: list[list[tuple[int, int, int, float]]] = []
    most, ends = (part.cpu().numpy() for part in predicted(queries, "end").max(-1))
    for asked, sure, end in zip(queries, most, ends, strict=True):
        rows = zip(asked.tolist(), end.tolist(), sure.tolist(), strict=False)
        found.append(
            [(u, a, v, p) for (u, a, _), v, p in rows if p >= confidence and v not in (u, model.config.n_states)]
        )
    doubtful = []
    for (states, _), answers in zip(windows, found, strict=True):
        back = {(v, u) for u, _, v, _ in answers}
        doubtful.append([x for x in answers if (x[0], x[2]) not in back and not moves.lead(states[x[2]], states[x[0]])])
    if any(doubtful):
        sources = predicted([_rows((MASKED, a, v) for _, a, v, _ in some) for some in doubtful], "source")
        for answers, some, source in zip(found, doubtful, sources, strict=True):
            for i, answer in enumerate(some):
                if source[i, answer[0]] < LEADS_BACK:
                    answers.remove(answer)
    return [
        (joined, [(states[u] * n + a, states[v], p) for u, a, v, p in answers])
        for (states, joined), answers in zip(windows, found, strict=True)
    ]


def split(some: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Parts of so many, the last one of fewer."""
    return (some[first : first + size] for first in range(0, len(some), size))


def _rows(transitions: Iterable[tuple[int, int, int]]) -> np.ndarray:
    return np.array(list(transitions), np.int64).reshape(-1, 3)
