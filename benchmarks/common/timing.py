"""Timing pieces of code beside each other."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_per_call(calls: dict[str, Callable[[], object]], budget: float) -> dict[str, float]:
    """The fastest of several calls of each, after one to warm up, within a time budget for each.

    They take turns, so that what else the machine does slows all of them.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    while any(sum(taken) < budget for taken in times.values()):
        for name, call in calls.items():
            if sum(times[name]) < budget:
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}
