"""What a benchmark finds: rows, each one figure, and tests of significance. And the text of a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Row:
    """One figure.

    A metric that is measured along a number, such as success by path length, has one row for each number.

    Attributes:
        setting, method, metric: what was measured.
        along: the name of the number, None where there is none.
        at: the number.
        value: rates are fractions, times are seconds.
        ci95: 95 % interval, None where there is none.
        n: how many observations the value rests on.
        paper: the paper's figure, None where it has none.
    """

    setting: str
    method: str
    metric: str
    along: str | None = field(default=None, kw_only=True)
    at: float | None = field(default=None, kw_only=True)
    value: float
    ci95: tuple[float, float] | None = None
    n: int = 1
    paper: float | None = None

    @property
    def title(self) -> str:
        """The metric, and where along its number, such as "success_rate, length 3"."""
        return self.metric if self.along is None else f"{self.metric}, {self.along} {self.at:g}"


@dataclass(frozen=True)
class Test:
    """One test of significance.

    Where no sample varies there is no statistic, and p is 1 if the means are equal, else 0.

    Attributes:
        setting, metric: what was measured.
        test: "anova", "tukey", "welch-t", "t" or "paired-t".
        methods: the methods compared: two, or all of them in an ANOVA.
        n: number of observations of each method.
        statistic: F, the studentized range q, or t; None where no sample varies.
        df: degrees of freedom: between and within methods (anova), number of methods and within (tukey), or of t;
            empty where no sample varies.
        p_value: two-sided unless `alternative` says otherwise. Tukey's holds for all its pairs at once.
        p_corrected: of a t-test, corrected by Holm's method for the other t-tests of the run; None for other tests.
        difference: the first method's mean less the second's; None in an ANOVA.
        ci95: two-sided 95 % interval of the difference (Tukey's holds for all its pairs at once); None in an ANOVA.
        alternative: "two-sided", "greater" (the first method's mean is greater) or "less".
    """

    setting: str
    metric: str
    test: str
    methods: tuple[str, ...]
    n: tuple[int, ...]
    statistic: float | None
    df: tuple[float, ...]
    p_value: float
    difference: float | None = None
    ci95: tuple[float, float] | None = None
    alternative: str = "two-sided"
    p_corrected: float | None = None

    @property
    def p(self) -> float:
        """The p-value after correction."""
        return self.p_value if self.p_corrected is None else self.p_corrected


class Found(NamedTuple):
    """What one experiment of a benchmark found.

    Attributes:
        rows, tests: all of it.
        draw: draws its figures into a folder.
    """

    rows: list[Row]
    draw: Callable[[Path], None] = lambda folder: None
    tests: Sequence[Test] = ()


def number(value: float) -> str:
    """A number as tables show it, with about four digits."""
    if math.isnan(value):
        return "not available"
    decimals = 4 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{decimals}f}"
