"""Many random number generators drawn from at once, each exactly as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Streams:
    """n generators behind the methods of one: row i of a draw for n rooms comes from generator i.

    Functions that draw n rooms from one generator draw from `Streams` as they would for each room alone, number for
    number. It reads the raw 64-bit words of NumPy's PCG64 and turns them into numbers as `Generator` does: a float64
    takes a word; a float32 or a bounded integer takes half a word, the lower half first, and the upper half waits
    for the next of these. Call `close` when done: until then the generators are ahead of what was drawn.

    Args:
        generators: n generators over PCG64.
        half: (n,) uint32, the half words that wait; they are not looked for in the generators.
        waits: (n,) bool, whether one waits.
        n_words: words to fetch from each generator at first; more are fetched when they are used up.
    """

    def __init__(
        self, generators: Sequence[np.random.Generator], half: np.ndarray, waits: np.ndarray, n_words: int = 64
    ) -> None:
        self._sources: list[Any] = [generator.bit_generator for generator in generators]
        self.half, self.waits = half.astype(np.uint32), waits.astype(bool)
        self.used = np.zeros(len(generators), np.int64)  # words
        self._words = np.empty((len(generators), 0), "<u8")
        self._bound = 0  # no generator used more words than this
        self._fetch(n_words)
        self._rows = np.arange(len(generators))

    def at(self, rows: np.ndarray) -> Streams:
        """Return the streams of these rows (int or a bool mask), as a view."""
        return _View(self, np.arange(len(self.used))[rows])

    def only(self, mask: np.ndarray) -> _Masked:
        """Return a view that draws for all rows, but takes numbers from the streams of the mask only."""
        return _Masked(self, mask)

    def close(self) -> None:
        """Set the generators to what comes next; the waiting halves are in `half` and `waits`."""
        n_words = self._words.shape[1]
        for source, used in zip(self._sources, self.used.tolist(), strict=True):
            source.advance(used - n_words)

    def random(self, size: int | tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Uniform numbers from 0 to 1: (n,) float64, or (n, k) float32."""
        if dtype == np.float64:
            return self._doubles(self._rows)
        n, k = size  # type: ignore[misc]  # float32 is only ever drawn so
        return self._floats(self._rows, np.full(n, k))

    def random_at(self, mask: np.ndarray) -> np.ndarray:
        """One float32 for each True of an (n, k) mask, row by row."""
        counts = mask.sum(1)
        return self._floats(self._rows, counts)[np.arange(counts.max(initial=0)) < counts[:, None]]

    def integers(self, low: int, high: int | None = None, size: int | None = None) -> np.ndarray:
        """(n,) int from low to below high, or from 0 to below low."""
        low, high = (0, low) if high is None else (low, high)
        return low + self.below(np.full(len(self._rows), high - low))

    def choice(self, values: Sequence[int], size: int | None = None) -> np.ndarray:
        """(n,) of the values."""
        return np.asarray(values)[self.integers(len(values))]

    def pick(self, mask: np.ndarray) -> np.ndarray:
        """(n,) int, the place of one True in each row of an (n, k) mask, as `choice(np.flatnonzero(row))`."""
        rank = mask.cumsum(1)
        return (rank > self.below(rank[:, -1])[:, None]).argmax(1)

    def below(self, bounds: np.ndarray) -> np.ndarray:
        """(n,) int from 0 to below each bound (at least 1, at most 2**32 - 1), as `integers(bound)`."""
        return self._below(self._rows, bounds)

    def _fetch(self, n_words: int) -> None:
        n_known = self._words.shape[1]
        words = np.empty((len(self._sources), n_known + n_words), "<u8")
        words[:, :n_known] = self._words
        for row, source in zip(words, self._sources, strict=True):
            row[n_known:] = source.random_raw(n_words)
        self._words = words

    def _reserve(self, n_words: int) -> None:
        """See to it that every stream has this many words left."""
        self._bound += n_words
        if self._bound > self._words.shape[1]:
            self._bound = int(self.used.max(initial=0)) + n_words
            if self._bound > self._words.shape[1]:
                self._fetch(n_words + 16)

    def _take(self, rows: np.ndarray, column: np.ndarray) -> np.ndarray:
        return self._words.ravel().take(rows * self._words.shape[1] + column)

    def _doubles(self, rows: np.ndarray) -> np.ndarray:
        self._reserve(1)
        words = self._take(rows, self.used[rows])
        self.used[rows] += 1
        return (words >> np.uint64(11)) * 2.0**-53

    def _floats(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """(n, largest count) float32, of which row i holds counts[i]."""
        k = int(counts.max(initial=0))
        if not k:
            return np.zeros((len(rows), 0), np.float32)
        self._reserve((k + 1) // 2)
        half, waits = self.half[rows], self.waits[rows]
        halves = self._words.view("<u4").ravel()
        first = 2 * (rows * self._words.shape[1] + self.used[rows])
        drawn = halves.take((first - waits)[:, None] + np.arange(k))
        drawn[waits, 0] = half[waits]
        left = counts - waits  # halves beside the one that waits
        last = halves.take(first + np.maximum(left, 0), mode="clip")  # the upper half of a word where left is odd
        draws = counts > 0
        self.used[rows] += np.maximum(left + 1, 0) // 2
        self.half[rows] = np.where(draws, last, half)
        self.waits[rows] = np.where(draws, left % 2 == 1, waits)
        return (drawn >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)

    def _halves(self, rows: np.ndarray) -> np.ndarray:
        """(n,) uint64, the next half word of each."""
        self._reserve(1)
        waits = self.waits[rows]
        words = self._take(rows, self.used[rows])
        drawn = np.where(waits, self.half[rows], words & np.uint64(0xFFFFFFFF))
        self.half[rows] = np.where(waits, self.half[rows], words >> np.uint64(32))
        self.used[rows] += ~waits
        self.waits[rows] = ~waits
        return drawn

    def _below(self, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Lemire's method, as NumPy has it."""
        drawn = np.zeros(len(rows), np.int64)
        missing = np.flatnonzero(bounds > 1)  # a bound of 1 takes no number
        while missing.size:
            bound = bounds[missing].astype(np.uint64)
            product = self._halves(rows[missing]) * bound
            drawn[missing] = product >> np.uint64(32)
            missing = missing[(product & np.uint64(0xFFFFFFFF)) < (np.uint64(2**32) - bound) % bound]
        return drawn


class _View(Streams):
    """Some rows of streams."""

    def __init__(self, base: Streams, rows: np.ndarray) -> None:
        self._base, self._rows = base, rows

    def at(self, rows: np.ndarray) -> Streams:
        return _View(self._base, self._rows[rows])

    def _doubles(self, rows: np.ndarray) -> np.ndarray:
        return self._base._doubles(rows)

    def _floats(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return self._base._floats(rows, counts)

    def _below(self, rows: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        return self._base._below(rows, bounds)


class _Masked:
    """Draws for all rows, but takes numbers only from the streams of a mask; the other rows are 0."""

    def __init__(self, streams: Streams, mask: np.ndarray) -> None:
        self._streams, self._mask = _View(_base(streams), streams._rows[mask]), mask

    def random(self, size: int) -> np.ndarray:
        drawn = np.zeros(size)
        drawn[self._mask] = self._streams.random(size)
        return drawn

    def choice(self, values: Sequence[int], size: int) -> np.ndarray:
        drawn = np.zeros(size, np.int64)
        drawn[self._mask] = self._streams.choice(values)
        return drawn


def _base(streams: Streams) -> Streams:
    return streams._base if isinstance(streams, _View) else streams


def at(rng: np.random.Generator | Streams, rows: np.ndarray) -> np.random.Generator | Streams:
    """Return what draws for these rows of a batch alone."""
    return rng.at(rows) if isinstance(rng, Streams) else rng


def only(rng: np.random.Generator | Streams, mask: np.ndarray) -> Any:
    """Return what draws for all rows of a batch of which those of the mask need it."""
    return rng.only(mask) if isinstance(rng, Streams) else rng


def random_at(rng: np.random.Generator | Streams, mask: np.ndarray) -> np.ndarray:
    """Draw a float32 for each True of a (B, K) mask, row by row."""
    return rng.random_at(mask) if isinstance(rng, Streams) else rng.random(mask.sum(), dtype=np.float32)
