"""What runs that take long share: free cores, stopping on Ctrl-C, a progress bar, a falling learning rate."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tqdm import tqdm

FINAL_LR = 0.02  # share of the peak


def use_free_cores() -> int:
    """Let torch use as many threads as there are cores that nothing else keeps busy, and at least one.

    The threads of one operation wait for each other. If one of them shares its core with another program, all wait for
    it: two threads on two busy cores were three times as slow as one thread there, and at times 40 times.
    `OMP_NUM_THREADS` goes first. For commands of ours alone: a library leaves torch as it finds it.

    Returns:
        How many threads torch uses.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ and hasattr(os, "getloadavg"):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        free = cores - round(os.getloadavg()[0])  # over the last minute
        torch.set_num_threads(max(1, min(free, torch.get_num_threads())))
    return torch.get_num_threads()


class Interrupt:
    """While entered, the first Ctrl-C or SIGTERM only asks the loop to stop; a second one does what it always does.

    ```python
    with Interrupt() as interrupt:
        while not interrupt.stop:
            ...
    ```

    Attributes:
        stop: whether the loop was asked to stop.
    """

    stop = False

    def __enter__(self) -> Interrupt:
        self._before: dict[int, Any] = {s: signal.signal(s, self._ask) for s in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _ask(self, signum: int, frame: Any) -> None:
        self.stop = True
        signal.signal(signum, self._before[signum])

    def __exit__(self, *exception: object) -> None:
        for s, handler in self._before.items():
            signal.signal(s, handler)


def progress_bar(shown: bool = True) -> tqdm:
    """A bar from 0 to 1 on standard error, if that is a terminal, with room for text behind it."""
    return tqdm(total=1.0, disable=not (shown and sys.stderr.isatty()), bar_format="{l_bar}{bar}| {postfix}")


def falling(progress: float, begin: float = 0.0) -> float:
    """Share of the peak learning rate: 1 until `begin` of the run, then falling linearly, to FINAL_LR at its end."""
    return min(1.0, max(FINAL_LR, (1 - progress) / (1 - begin)))
