"""Do methods differ by more than chance? The paper's tests over per-episode samples: one-way ANOVA with Tukey's HSD
after it, and Welch's t. (Not named `statistics`, which would hide the standard library's.)"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from report import number
from scipy import stats

T_TESTS = {"welch-t": "Welch", "t": "t-test", "paired-t": "Paired t-test"}


@dataclass(frozen=True)
class Test:
    """One test.

    Where no sample varies there is no statistic and no room for chance: p is 1 if the means are equal, else 0.

    Attributes:
        setting, metric: what was measured.
        test: "anova", "tukey", "welch-t", "t" or "paired-t".
        methods: those compared: two, or all of them in an ANOVA.
        n: observations of each of these.
        statistic: F, the studentized range q, or t; None where no sample varies.
        df: degrees of freedom: between and within methods (anova), number of methods and within (tukey), Welch's
            (welch-t); empty where no sample varies.
        p_value: two-sided unless `alternative` says otherwise.
        difference: the first method's mean less the second's; None in an ANOVA.
        ci95: two-sided 95 % interval of the difference (Tukey's holds for all pairs at once); None in an ANOVA.
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
            _certain(setting, metric, "tukey", (reference, other), arrays[reference], arrays[other]) for other in others
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


def welch(
    setting: str,
    metric: str,
    a_name: str,
    a: Sequence[float],
    b_name: str,
    b: Sequence[float],
    alternative: str = "two-sided",
) -> Test:
    """Welch's t-test of two means, variances not assumed equal.

    Args:
        a_name, a: the first method and its values, one an episode.
        b_name, b: the second.
        alternative: "two-sided", "greater" (the first mean is greater) or "less".

    Raises:
        ValueError: a method has fewer than two values, or one that is not a finite number.
    """
    x, y = _array(a_name, a), _array(b_name, b)
    if min(len(x), len(y)) < 2:
        raise ValueError(f"two observations of each are needed, not {len(x)} of {a_name} and {len(y)} of {b_name}")
    if not (np.ptp(x) or np.ptp(y)):
        return _certain(setting, metric, "welch-t", (a_name, b_name), x, y, alternative)
    with warnings.catch_warnings():
        # SciPy warns where one of the two is constant, which Welch's formula takes as it is: a variance of 0.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        result = stats.ttest_ind(x, y, equal_var=False, alternative=alternative)
        interval = stats.ttest_ind(x, y, equal_var=False).confidence_interval()
    return Test(
        setting,
        metric,
        "welch-t",
        methods=(a_name, b_name),
        n=(len(x), len(y)),
        statistic=float(result.statistic),
        df=(float(result.df),),
        p_value=float(result.pvalue),
        difference=float(x.mean() - y.mean()),
        ci95=(float(interval.low), float(interval.high)),
        alternative=alternative,
    )


def _array(method: str, values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    if not np.isfinite(array).all():
        raise ValueError(f"{method}: every value must be a finite number")
    return array


def _certain(
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
            print(f"ANOVA {where}: {statistic_text(test)}, {p_text(test.p_value)}")
        elif test.test == "tukey":
            print(f"  {difference_text(test)}, Tukey {p_text(test.p_value)}")
        else:
            sided = "" if test.alternative == "two-sided" else " (one-sided)"
            said = f"{difference_text(test)}, {statistic_text(test)}, {p_text(test.p_value)}{sided}"
            print(f"{T_TESTS[test.test]} {where}: {said}")


def statistic_text(test: Test) -> str:
    """Such as "F(4, 4995) = 2,804"."""
    if test.statistic is None:
        return "nothing varies within a method"
    letter = {"anova": "F", "tukey": "q"}.get(test.test, "t")
    return f"{letter}({', '.join(f'{df:.1f}'.removesuffix('.0') for df in test.df)}) = {number(test.statistic)}"


def difference_text(test: Test) -> str:
    """Such as "eswm > epn by 2.31 (95 % CI 2.10 to 2.50)"."""
    (a, b), (low, high), difference = test.methods, test.ci95, test.difference
    if difference == 0:
        return f"{a} = {b}"
    if difference < 0:
        low, high = -high, -low
    sign = ">" if difference > 0 else "<"
    return f"{a} {sign} {b} by {number(abs(difference))} (95 % CI {number(low)} to {number(high)})"


def p_text(p_value: float) -> str:
    """Such as "p < 0.001" or "p = 0.012"."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
