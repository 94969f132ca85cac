"""States that are views: their numbers, and what the model imagines of them, matched to the views that are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch

from eswm_gym.agents.base import view_number
from eswm_gym.agents.memory_bank import MemoryBank, Transition
from eswm_gym.agents.planning import UNKNOWN, TransitionTable, require_numbers
from eswm_gym.rooms.grid import N_ACTIONS, N_CELLS, ROW
from eswm_gym.world_model import MASKED, ViewTransformer

LIKELY = 0.5  # a view that is imagined with no more than this probability is unknown
MATCH = 0.02  # a known view is the one imagined if it is so likely relative to the likeliest view
MOST_STATES = 500  # in a table; a room of 9 x 9 has up to 196


class ViewAlbum:
    """The views that an agent has seen or imagined, by number."""

    def __init__(self) -> None:
        self._views: dict[int, np.ndarray] = {}

    def number(self, view: np.ndarray) -> int:
        """The number of a view, which is kept.

        Raises:
            ValueError: if it is not 25 integers.
        """
        cells = np.asarray(view).reshape(-1)
        number = view_number(cells)
        if number not in self._views:
            self._views[number] = cells.astype(np.int64)
        return number

    def transitions(self, rows: np.ndarray) -> list[Transition]:
        """Transitions of (N, 51) rows; rows of -1 are padding and are dropped.

        Raises:
            ValueError: if the rows are not of that width, or not integers.
        """
        if len(rows) and rows.shape[1:] != (ROW,):
            raise ValueError(f"a bank of views must be (N, {ROW}), got {rows.shape}")
        return [
            (self.number(row[:N_CELLS]), int(row[N_CELLS]), self.number(row[N_CELLS + 1 :]))
            for row in rows
            if row[0] >= 0
        ]

    def views(self, numbers: Sequence[int]) -> np.ndarray:
        """(K, 25) int64.

        Raises:
            ValueError: naming a number that belongs to no view seen or imagined.
        """
        for number in numbers:
            if number not in self._views:
                raise ValueError(f"state {number} is no view that this agent has seen or imagined")
        return np.array([self._views[number] for number in numbers], np.int64).reshape(-1, N_CELLS)

    def rows(self, transitions: Iterable[Transition]) -> np.ndarray:
        """(N, 51) int64, transitions as the model reads them."""
        source, action, end = np.array(list(transitions), np.int64).reshape(-1, 3).T
        return np.concatenate([self.views(source.tolist()), action[:, None], self.views(end.tolist())], 1)


@torch.inference_mode()
def imagine_views(
    model: ViewTransformer,
    banks: Sequence[MemoryBank],
    albums: Sequence[ViewAlbum],
    worn: Sequence[MemoryBank] | None = None,
    also: Sequence[Collection[int]] | None = None,
    chunk: int = 8,
) -> list[TransitionTable]:
    """Imagine every move from every known view and, in turn, from every view that is imagined.

    Args:
        model: frozen.
        banks: B memory banks of any lengths.
        albums: for each bank the views behind its numbers; imagined ones are added.
        worn: for each bank, memories of which parts are outdated and taken out: the model reads them, but their views
            are no states.
        also: for each bank, states to include that it may not hold, such as the agent's and the goal.
        chunk: banks in one pass.

    Returns:
        B tables.

    Raises:
        ValueError: if a view has a cell of no class, or the model predicts what is not a number.
    """
    also, worn = also or [()] * len(banks), worn or [MemoryBank()] * len(banks)
    device = next(model.parameters()).device
    tables: list[TransitionTable] = []
    for first in range(0, len(banks), chunk):
        some = range(first, min(first + chunk, len(banks)))
        rows = [np.concatenate([albums[i].rows(bank) for bank in (banks[i], worn[i])]) for i in some]
        memories = np.full((len(some), max(1, *map(len, rows)), ROW), MASKED)
        for padded, held in zip(memories, rows, strict=True):
            padded[: len(held)] = held
        encoded = model.encode(torch.from_numpy(memories).to(device))
        makers = [_TableMaker(albums[i], sorted({*banks[i].states, *also[i]})) for i in some]
        while any(maker.waiting for maker in makers):
            asked = [maker.next_views() for maker in makers]
            source = np.zeros((len(some), max(map(len, asked)), N_ACTIONS, N_CELLS), np.int64)
            for row, views in zip(source, asked, strict=True):
                row[: len(views)] = views[:, None]
            action = np.broadcast_to(np.arange(N_ACTIONS), source.shape[:-1]).copy()
            p, unknown = model.imagine(
                encoded, *(torch.from_numpy(part).to(device).flatten(1, 2) for part in (source, action))
            )
            require_numbers(model, p, unknown)
            for maker, views, cells, dont_know in zip(
                makers, asked, p.cpu().numpy(), unknown.cpu().numpy(), strict=True
            ):
                n = len(views) * N_ACTIONS
                maker.answer(cells[:n], dont_know[:n])
        tables += [maker.table() for maker in makers]
    return tables


class _TableMaker:
    """One table in the making: which states it has, how many of them were asked about, and the answers."""

    def __init__(self, album: ViewAlbum, states: list[int]) -> None:
        self.album, self.states, self.asked = album, states, 0
        self.known = album.views(states)
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    @property
    def waiting(self) -> int:
        return len(self.states) - self.asked

    def next_views(self) -> np.ndarray:
        views = self.known[self.asked :]
        self.asked = len(self.states)
        return views

    def answer(self, p: np.ndarray, unknown: np.ndarray) -> None:
        """Match (n, 25, 9) probabilities to known views; what is none of them, but sure, is a new state."""
        log_p = np.log(np.maximum(p, 1e-3))
        likeliest, best = p.argmax(-1), log_p.max(-1).sum(-1)
        end, fit = np.full(len(p), UNKNOWN), best.copy()
        for i in range(len(p)):
            likelihood = log_p[i, np.arange(N_CELLS), self.known].sum(-1)
            match = int(likelihood.argmax())
            if likelihood[match] - best[i] >= np.log(MATCH):
                end[i], fit[i] = self.states[match], likelihood[match]
            elif (1 - unknown[i]) * np.exp(best[i]) > LIKELY and len(self.states) < MOST_STATES:
                end[i] = self.album.number(likeliest[i])
                self.states.append(int(end[i]))
                self.known = np.concatenate([self.known, likeliest[i : i + 1]])
        probability = (1 - unknown) * np.exp(fit)
        sure = (end != UNKNOWN) & (unknown <= LIKELY) & (probability > LIKELY)
        entropy = -(p * np.log(np.maximum(p, 1e-9))).sum((1, 2))
        self.parts.append((np.where(sure, end, UNKNOWN), np.where(sure, probability, 1 - probability), entropy))

    def table(self) -> TransitionTable:
        end, probability, entropy = (
            np.concatenate(part).reshape(-1, N_ACTIONS) for part in zip(*self.parts, strict=True)
        )
        return TransitionTable(np.array(self.states, np.int64), end, probability, entropy)
