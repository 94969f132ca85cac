"""The numbers of states: what an observation shows as a number, and which view a number stands for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from eswm_gym.agents.memory_bank import Transition
from eswm_gym.rooms.grid import N_CELLS, N_CLASSES, ROW
from eswm_gym.rooms.lattice.bits import bits_to_state


def state_of(shown: Any) -> int:
    """The number of a state that an observation shows as an integer, as bits or as a view.

    Raises:
        ValueError: if it is none of these.
    """
    array = np.asarray(shown)
    if array.ndim > 1:
        return view_number(array)
    if array.dtype.kind not in "iu" or (array.ndim == 1 and not {0, 1}.issuperset(array.tolist())):
        raise ValueError(f"a state is an integer, bits of 0 and 1 or a view, got {shown!r}")
    return int(bits_to_state(array) if array.ndim else array)


def symbol_of(shown: Any) -> int:
    """The number of a state that an observation shows to a model of symbols.

    Raises:
        ValueError: if it is a view, or no state at all.
    """
    if np.ndim(shown) > 1:
        raise ValueError(
            f"a state is an integer or bits for a model of symbols, got {shown!r}: views are for "
            "ESWMAgent.from_pretrained('minigrid')"
        )
    return state_of(shown)


def view_number(view: np.ndarray) -> int:
    """The number of a view of classes (5, 5) or (25,), a hash of its cells: equal views have equal numbers.

    Raises:
        ValueError: if the view is not 25 integers, or a cell is no number of a byte.
    """
    view = np.asarray(view)
    if view.size != N_CELLS or view.dtype.kind not in "iu":
        raise ValueError(f"a view is {N_CELLS} integers, got {view!r}")
    if view.min() < 0 or view.max() > 255:  # two views would have one number
        wrong = view[(view < 0) | (view >= N_CLASSES)][0]
        raise ValueError(f"cell {wrong} of a view is outside the classes 0 ... {N_CLASSES - 1}")
    cells = np.ascontiguousarray(view, np.uint8).tobytes()
    return int.from_bytes(hashlib.blake2b(cells, digest_size=8).digest(), "big") >> 2


class ViewAlbum:
    """The views that an agent has seen or imagined, by number.

    Args:
        views: (25,) views to begin with.
    """

    def __init__(self, views: Iterable[np.ndarray] = ()) -> None:
        self._views: dict[int, np.ndarray] = {}
        for view in views:
            self.number(view)

    def number(self, view: np.ndarray) -> int:
        """The number of a view; the album keeps the view.

        Raises:
            ValueError: see `view_number`.
        """
        cells = np.asarray(view).reshape(-1)
        number = view_number(cells)
        if number not in self._views:
            self._views[number] = cells.astype(np.int64)
        return number

    def transitions(self, rows: np.ndarray) -> list[Transition]:
        """Transitions between numbers from (N, 51) rows of views; padding rows of -1 are dropped.

        Raises:
            ValueError: if the rows have another width, or are not integers.
        """
        if len(rows) and rows.shape[1:] != (ROW,):
            raise ValueError(
                f"a bank of views must be (N, {ROW}), got {rows.shape}; memories of integers or bits are for "
                "ESWMAgent.from_pretrained('random-wall') or 'lattices'"
            )
        return [
            (self.number(row[:N_CELLS]), int(row[N_CELLS]), self.number(row[N_CELLS + 1 :]))
            for row in rows
            if row[0] >= 0
        ]

    def views(self, numbers: Sequence[int]) -> np.ndarray:
        """(K, 25) int64, the views with these numbers.

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

    def copy(self) -> ViewAlbum:
        """An album of the same views, which grows by itself."""
        return ViewAlbum(self)

    def __iter__(self) -> Iterator[np.ndarray]:
        """The (25,) views, in the order in which they came."""
        return iter(self._views.values())
