"""What runs that take long share: stopping on Ctrl-C, a progress bar, a falling learning rate."""

from __future__ import annotations

import signal
import sys
from typing import Any

from tqdm import tqdm

FINAL_LR = 0.02  # share of the peak


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
