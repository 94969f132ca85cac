"""How far a benchmark is: a bar on a terminal, a plain line for each part elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterator
from typing import TypeVar

from tqdm import tqdm

T = TypeVar("T")


def progress(parts: Collection[T], title: str) -> Iterator[T]:
    """The parts of a benchmark one after the other, on standard error with the title and how far it is.

    Args:
        parts: names, or tuples that begin with a name; of others the number is said.
        title: what they are parts of.
    """
    if sys.stderr.isatty():
        yield from tqdm(parts, desc=title, leave=False)
        return
    begun = time.monotonic()
    for i, part in enumerate(parts, 1):
        named = part[0] if isinstance(part, tuple) else part
        what = f"{title}, {named}" if isinstance(named, str) else title
        print(f"{what}: {i} of {len(parts)}, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
        yield part
