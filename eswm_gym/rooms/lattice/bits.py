"""States as bits, most significant bit first (paper: "Open Arena")."""

from __future__ import annotations

import numpy as np


def state_to_bits(states, n_bits: int = 6) -> np.ndarray:
    """Return (..., n_bits) int8 of 0 and 1 for int states of shape (...), most significant bit first."""
    return (np.asarray(states)[..., None] >> np.arange(n_bits - 1, -1, -1) & 1).astype(np.int8)


def bits_to_state(bits) -> np.ndarray:
    """Return the int64 states of shape (...) that (..., n_bits) bits spell, most significant bit first."""
    bits = np.asarray(bits, np.int64)
    return bits @ (1 << np.arange(bits.shape[-1] - 1, -1, -1))
