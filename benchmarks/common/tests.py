"""Do methods differ by more than chance? The paper's tests over per-episode samples: one-way ANOVA with Tukey's HSD
after it, and t-tests."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from common.rows import Test, number

T_TESTS = {"welch-t": "Welch", "t": "t-test", "paired-t": "Paired t-test"}
LEVEL = 0.05  # a difference is called one where p is below


def compare(setting: str, metric: str, samples: Mapping[str, Sequence[float]], reference: str) -> list[Test]:
    """ANOVA over all methods, then Tukey's comparison of the reference with each other method.

    Methods with fewer than two observations show no variance and are left out. The list is empty where that leaves
    no reference or nothing to compare it with.

    Args:
        samples: each method's values, one an episode.
        reference: the method that the others are compared with.

    Raises:
        ValueError: the reference has no samples, or a value is not a finite number.
    """
    if reference not in samples:
        raise ValueError(f"no samples of {reference!r}, only of {', '.join(samples)}")
    arrays = {method: _array(method, values) for method, values in samples.items()}
    arrays = {method: array for method, array in arrays.items() if len(array) > 1}
    others = [method for method in arrays if method != reference]
    if reference not in arrays or not others:
        return []
    k, n = len(arrays), tuple(map(len, arrays.values()))
    if not any(map(np.ptp, arrays.values())):
        alike = len({array[0] for array in arrays.values()}) == 1
        anova = Test(setting, metric, "anova", tuple(arrays), n, None, (), float(alike))
        return [anova] + [
            _without_variance(setting, metric, "tukey", (reference, other), arrays[reference], arrays[other])
            for other in others
        ]
    within = sum(n) - k
    statistic, p_value = map(float, stats.f_oneway(*arrays.values()))
    tests = [Test(setting, metric, "anova", tuple(arrays), n, statistic, (k - 1, within), p_value)]
    variance = sum((len(array) - 1) * array.var(ddof=1) for array in arrays.values()) / within
    tukey = stats.tukey_hsd(*arrays.values())
    interval, order = tukey.confidence_interval(), list(arrays)
    for other in others:
        a, b = arrays[reference], arrays[other]
        pair, difference = (order.index(reference), order.index(other)), float(a.mean() - b.mean())
        tests.append(
            Test(
                setting,
                metric,
                "tukey",
                methods=(reference, other),
                n=(len(a), len(b)),
                statistic=abs(difference) / math.sqrt(variance * (1 / len(a) + 1 / len(b)) / 2),
                df=(k, within),
                p_value=float(tukey.pvalue[pair]),
                difference=difference,
                ci95=(float(interval.low[pair]), float(interval.high[pair])),
            )
        )
    return tests


def t_test(
    setting: str,
    metric: str,
    a_name: str,
    a: Sequence[float] | np.ndarray,
    b_name: str,
    b: Sequence[float] | np.ndarray,
    kind: str = "welch-t",
    alternative: str = "two-sided",
) -> Test:
    """A t-test of two means.

    Args:
        a_name, a: the first method and its values, one an episode.
        b_name, b: the second.
        kind: "welch-t" (variances are not assumed equal), "t" (Student's) or "paired-t" (values come in pairs).
        alternative: "two-sided", "greater" (the first mean is greater) or "less".

    Raises:
        ValueError: a method has fewer than two values, or one that is not a finite number.
    """
    x, y = _array(a_name, a), _array(b_name, b)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"two observations of each are needed, not {len(x)} of {a_name} and {len(y)} of {b_name}")
    if not (np.ptp(x) or np.ptp(y)):
        return _without_variance(setting, metric, kind, (a_name, b_name), x, y, alternative)

    def result(side: str) -> Any:
        if kind == "paired-t":
            return stats.ttest_rel(x, y, alternative=side)
        return stats.ttest_ind(x, y, equal_var=kind == "t", alternative=side)

    with warnings.catch_warnings():
        # SciPy warns where one of the two is constant, which Welch's formula takes as it is: a variance of 0.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        found, interval = result(alternative), result("two-sided").confidence_interval()
    return Test(
        setting,
        metric,
        kind,
        methods=(a_name, b_name),
        n=(len(x), len(y)),
        statistic=float(found.statistic),
        df=(float(found.df),),
        p_value=float(found.pvalue),
        difference=float(x.mean() - y.mean()),
        ci95=(float(interval.low), float(interval.high)),
        alternative=alternative,
    )


def corrected(tests: Iterable[Test]) -> list[Test]:
    """The tests, p-values of t-tests corrected for each other by Holm's method."""
    tests = list(tests)
    order = sorted((i for i, test in enumerate(tests) if test.test in T_TESTS), key=lambda i: tests[i].p_value)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * tests[i].p_value))
        tests[i] = replace(tests[i], p_corrected=largest)
    return tests


def _array(method: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    array = np.asarray(values, float)
    if not np.isfinite(array).all():
        raise ValueError(f"{method}: every value must be a finite number")
    return array


def _without_variance(
    setting: str,
    metric: str,
    test: str,
    methods: tuple[str, str],
    a: np.ndarray,
    b: np.ndarray,
    alternative: str = "two-sided",
) -> Test:
    """The test of two methods where nothing varies."""
    difference, n = float(a[0] - b[0]), (len(a), len(b))
    true = {"two-sided": difference != 0, "greater": difference > 0, "less": difference < 0}[alternative]
    ci95 = difference, difference
    return Test(setting, metric, test, methods, n, None, (), float(not true), difference, ci95, alternative)


def print_tests(tests: Iterable[Test]) -> None:
    """Print a line for each test, Tukey's comparisons below their ANOVA."""
    for test in tests:
        where = f"{test.setting} {test.metric}"
        if test.test == "anova":
            print(f"ANOVA {where}: {statistic_text(test)}, {p_text(test.p)}")
        elif test.test == "tukey":
            print(f"  {difference_text(test)}, Tukey {p_text(test.p)}")
        else:
            notes = [] if test.alternative == "two-sided" else ["one-sided"]
            notes += [] if test.p_corrected is None else ["Holm"]
            end = f" ({', '.join(notes)})" if notes else ""
            print(
                f"{T_TESTS[test.test]} {where}: {difference_text(test)}, {statistic_text(test)}, {p_text(test.p)}{end}"
            )


def statistic_text(test: Test) -> str:
    """Such as "F(4, 4995) = 2,804"."""
    if test.statistic is None:
        return "nothing varies within a method"
    letter = {"anova": "F", "tukey": "q"}.get(test.test, "t")
    return f"{letter}({', '.join(f'{df:.1f}'.removesuffix('.0') for df in test.df)}) = {number(test.statistic)}"


def difference_text(test: Test) -> str:
    """Such as "eswm > epn by 2.31 (95 % CI 2.10 to 2.50)", or that no difference was found."""
    (a, b), (low, high), difference = test.methods, test.ci95, test.difference  # type: ignore[misc]
    if not test.p < LEVEL:
        return (
            f"no difference found between {a} and {b} ({number(difference)}, 95 % CI {number(low)} to {number(high)})"
        )
    if difference < 0:
        low, high = -high, -low
    sign = ">" if difference > 0 else "<"
    return f"{a} {sign} {b} by {number(abs(difference))} (95 % CI {number(low)} to {number(high)})"


def p_text(p_value: float) -> str:
    """Such as "p < 0.001" or "p = 0.012"."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
