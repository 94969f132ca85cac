"""What runs that take long share: free cores, stopping on Ctrl-C, a progress bar, a falling learning rate."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

FINAL_LR = 0.02  # share of the peak


def use_free_cores() -> int:
    """Let torch use as many threads as there are cores that nothing keeps busy at the moment, and at least one.

    The threads of one operation wait for each other. If one of them shares its core with another program, all wait for
    it: two threads on two busy cores were three times as slow as one thread there, and at times 40 times.
    `OMP_NUM_THREADS` goes first. For commands of ours alone: a library leaves torch as it finds it.

    Returns:
        How many threads torch uses.
    """
    import torch

    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, min(free_cores(), torch.get_num_threads())))
    return torch.get_num_threads()


def free_cores(seconds: float = 0.2) -> int:
    """How many of the cores that this process may use are idle, for so long; all of them where Linux does not say."""
    if not Path("/proc/stat").exists():
        return os.cpu_count() or 1
    before = _ticks()
    time.sleep(seconds)
    idle = [
        (after - since) / max(1, total - first) for (since, first), (after, total) in zip(before, _ticks(), strict=True)
    ]
    return sum(share > 0.5 for share in idle)


def _ticks() -> list[tuple[int, int]]:
    """Of each core that this process may use: ticks that it was idle, and all."""
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    found = [list(map(int, fields[1:])) for fields in lines if fields[0] in ours]
    return [(ticks[3] + ticks[4], sum(ticks)) for ticks in found]


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
