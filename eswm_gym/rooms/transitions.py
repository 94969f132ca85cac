"""Transitions as rows of integers, whatever a state is: C cells of the source, the action, C cells of the end state.

A symbol is one cell (rows of 3), an egocentric view 25 (rows of 51).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SOURCE, ACTION, END = 0, 1, 2
MASKED = -1  # stands for the masked component of a query, and fills padding rows of a bank


def pad(banks: Sequence[np.ndarray], length: int | None = None) -> np.ndarray:
    """(B, length, W) int64: B banks of (n, W) rows, of one width W, with rows of -1 below them.

    Args:
        banks: at least one.
        length: rows of each; None: as many as the longest bank has, and at least one.

    Raises:
        ValueError: if a bank is longer.
    """
    longest = max(map(len, banks))
    length = max(1, longest) if length is None else length
    if longest > length:
        raise ValueError(f"a bank of {longest} transitions does not fit into {length} rows")
    padded = np.full((len(banks), length, banks[0].shape[1]), MASKED)
    for rows, bank in zip(padded, banks, strict=True):
        rows[: len(bank)] = bank
    return padded
