"""Timing pieces of code beside each other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


def seconds_per_call(calls: dict[str, Callable[[], object]], budget: float) -> dict[str, float]:
    """The fastest of several calls of each, after one to warm up, within a time budget for each.

    They take turns, so that what else the machine does slows all of them.
    """
    for call in calls.values():
        call()
    spent, fastest = dict.fromkeys(calls, 0.0), dict.fromkeys(calls, math.inf)
    while waiting := [name for name in calls if spent[name] < budget]:
        for name in waiting:
            start = time.perf_counter()
            calls[name]()
            taken = time.perf_counter() - start
            spent[name], fastest[name] = spent[name] + taken, min(fastest[name], taken)
    return fastest
