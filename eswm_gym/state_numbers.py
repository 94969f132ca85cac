"""Numbers of states of any kind, in the order in which they come."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

_SMALL = 64  # numbers in an array


class StateNumbers(dict[Hashable, int]):
    """Numbers states from 0 in the order in which they are first seen; equal states have the same number.

    A state is anything hashable, an array, or a list, tuple or dictionary of such. A small array is the same state as a
    list or tuple of its numbers, so that a state may be written as one.
    """

    def __call__(self, state: Any) -> int:
        """The number of a state.

        Raises:
            TypeError: if it is neither hashable nor an array, nor made of such.
        """
        return self.setdefault(_hashable(state), len(self))


def _hashable(state: Any) -> Hashable:
    """The state itself, or for arrays, lists and dictionaries something hashable that is equal where they are."""
    if isinstance(state, np.ndarray):
        return (state.shape, state.dtype.str, state.tobytes()) if state.size > _SMALL else _hashable(state.tolist())
    if isinstance(state, dict):
        return tuple((name, _hashable(part)) for name, part in sorted(state.items()))
    if isinstance(state, list | tuple):
        return tuple(map(_hashable, state))
    if isinstance(state, np.generic):
        return state.item()
    hash(state)
    return state
