"""What a vector environment returns, beside what Gymnasium's own returns."""

import numpy as np
from gymnasium.utils.env_checker import data_equivalence


def check_equal(sync, ours, path=""):
    """Keys, shapes, dtypes and values."""
    if isinstance(sync, dict):
        assert sync.keys() == ours.keys(), path
        for key in sync:
            check_equal(sync[key], ours[key], f"{path}/{key}")
    elif isinstance(sync, np.ndarray) and sync.dtype == object:  # final_obs
        assert len(sync) == len(ours)
        assert all(data_equivalence(one, other) for one, other in zip(sync, ours, strict=True)), path
    else:
        assert data_equivalence(np.asarray(sync), np.asarray(ours)), path
