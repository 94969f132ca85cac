"""What several training runs say together (Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the
Statistical Precipice"): interquartile means with stratified bootstrap intervals, and performance profiles.

Scores are (R, T): of R runs on T tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import trim_mean

from common.intervals import Estimate

RESAMPLES = 2000


def interquartile_mean(scores: np.ndarray) -> float:
    """The mean of the scores without the least and the greatest quarter."""
    return float(trim_mean(scores, 0.25, axis=None))


def stratified(statistic: Callable[[np.ndarray], float], scores: np.ndarray, seed: int = 0) -> Estimate:
    """A statistic of scores; its 95 % interval comes from runs that are drawn anew for each task."""
    rng = np.random.default_rng(seed)
    n_runs, n_tasks = scores.shape
    if n_runs < 2:
        return Estimate(statistic(scores), None, n_runs)
    drawn = rng.integers(n_runs, size=(RESAMPLES, n_runs, n_tasks))
    found = [statistic(np.take_along_axis(scores, runs, 0)) for runs in drawn]
    low, high = np.quantile(found, (0.025, 0.975))
    return Estimate(statistic(scores), (float(low), float(high)), n_runs)


def share_above(scores: np.ndarray, threshold: float) -> float:
    """A performance profile at a threshold: the share of all scores that are greater."""
    return float((scores > threshold).mean())
