"""Values with their 95 % intervals. An `Estimate` fills three fields of a row: `Row(..., *mean(values))`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Estimate(NamedTuple):
    """A value, its 95 % interval (None where one observation is all there is), and the number of observations."""

    value: float
    ci95: tuple[float, float] | None
    n: int


def rate(successes: Sequence[bool]) -> Estimate:
    """The share of successes, with Wilson's interval."""
    n, k = len(successes), int(np.sum(successes))
    return Estimate(k / n, wilson(k, n), n)


def mean(values: Sequence[float] | np.ndarray, seed: int = 0) -> Estimate:
    """The mean, with a bootstrap interval."""
    return Estimate(float(np.mean(values)), bootstrap(np.mean, values, seed=seed), len(values))


def ratio(values: Sequence[float] | np.ndarray, others: Sequence[float] | np.ndarray, seed: int = 0) -> Estimate:
    """The mean of values over the mean of others, with a bootstrap interval over pairs, each of one room."""
    value = float(np.mean(values) / np.mean(others))
    return Estimate(value, bootstrap(_ratio_of_means, values, others, seed=seed), len(values))


def over_rooms(values: np.ndarray, counted: np.ndarray, seed: int = 0) -> Estimate:
    """The mean of values (R, Q) where `counted` (R, Q) bool, with an interval over the rooms, whose queries depend on
    each other; n is the number of rooms where anything counts."""
    rooms = counted.any(1)
    return ratio((values * counted)[rooms].sum(1), counted[rooms].sum(1), seed)


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson's score interval of k successes in n trials."""
    low, high = stats.binomtest(k, n).proportion_ci(method="wilson")
    return float(low), float(high)


def bootstrap(
    statistic: Callable[..., np.ndarray], *samples: Sequence[float] | np.ndarray, seed: int = 0
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of a statistic of samples that are drawn together; None for one observation.

    Args:
        statistic: takes the samples and `axis`.
        samples: as many numbers each.
        seed: of the draws.
    """
    if len(samples[0]) < 2:
        return None
    arrays = [np.asarray(sample, float) for sample in samples]
    options = {"n_resamples": 1000, "method": "percentile", "paired": True, "vectorized": True}
    low, high = stats.bootstrap(
        arrays, statistic, random_state=np.random.default_rng(seed), **options
    ).confidence_interval
    return float(low), float(high)


def _ratio_of_means(values: np.ndarray, others: np.ndarray, axis: int = -1) -> np.ndarray:
    return values.mean(axis) / others.mean(axis)
