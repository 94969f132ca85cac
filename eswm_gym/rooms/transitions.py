"""Transitions as rows of integers, whatever a state is: C cells of the source, the action, C cells of the end state.

A symbol is one cell (rows of 3), an egocentric view 25 (rows of 51).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

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


class Kind(IntEnum):
    """What a query asks about."""

    UNSEEN = 0
    SEEN = 1
    UNSOLVABLE = 2
    OFF_LATTICE = 3


def draw_weighted(rng: np.random.Generator, weight: np.ndarray, n: int) -> np.ndarray:
    """Draw n columns for each row of (B, M) weights, in proportion to them, by inverting the distribution function.

    Returns:
        (B, n) int.
    """
    batch, columns = weight.shape
    cdf = weight.cumsum(1) / np.maximum(weight.sum(1, keepdims=True), 1e-9)
    rows = np.arange(batch)[:, None]
    # The distribution of row i occupies the interval (i, i + 1].
    draw = rows + 1.0 - rng.random((batch, n))
    drawn = np.searchsorted((np.minimum(cdf, 1) + rows).ravel(), draw.ravel()).reshape(batch, n)
    return np.clip(drawn - rows * columns, 0, columns - 1)
