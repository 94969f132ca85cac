"""The tests against values worked out by hand, and where nothing varies."""

import math
from dataclasses import replace

import numpy as np
import pytest
from common.tests import compare, corrected, print_tests, t_test
from scipy.stats import studentized_range, t

pytestmark = pytest.mark.filterwarnings("error")
SMALL = {"eswm": [4, 5, 6], "epn": [1, 2, 3], "random": [1, 3, 2]}


def test_anova_by_hand():
    """Means 5, 2, 2, in all 3: between 3 (4 + 1 + 1) = 18 over 2, within 3 x 2 = 6 over 6, so F = 9; and the tail
    of F(2, d) is (1 + 2 F / d) ** (-d / 2), here 4 ** -3."""
    anova = compare("random-wall-19", "unique_locations", SMALL, "eswm")[0]
    assert (anova.test, anova.methods, anova.n) == ("anova", ("eswm", "epn", "random"), (3, 3, 3))
    assert (anova.setting, anova.metric, anova.df) == ("random-wall-19", "unique_locations", (2, 6))
    assert anova.statistic == pytest.approx(9) and anova.p_value == pytest.approx(1 / 64)
    assert anova.difference is None and anova.ci95 is None


def test_tukey_by_hand():
    """Variance within is 1: q = 3 / sqrt(1 / 3); the interval's half is the critical q(3, 6) = 4.339 of the tables
    times sqrt(1 / 3)."""
    _, epn, random = compare("s", "m", SMALL, "eswm")
    assert (epn.test, epn.methods, epn.n, epn.df) == ("tukey", ("eswm", "epn"), (3, 3), (3, 6))
    assert epn.statistic == pytest.approx(3 * math.sqrt(3)) and epn.difference == 3
    assert epn.p_value == pytest.approx(studentized_range.sf(3 * math.sqrt(3), 3, 6))
    assert epn.ci95 == pytest.approx((3 - 4.339 / math.sqrt(3), 3 + 4.339 / math.sqrt(3)), abs=1e-3)
    assert random.methods == ("eswm", "random") and random.p_value == pytest.approx(epn.p_value)


def test_tukey_of_unequal_numbers():
    """Tukey and Kramer: the statistic that belongs to the p-value."""
    rng = np.random.default_rng(0)
    samples = {"a": rng.normal(0, 1, 7), "b": rng.normal(0.5, 2, 20), "c": rng.normal(1, 1, 4)}
    for test in compare("s", "m", samples, "b")[1:]:
        assert test.p_value == pytest.approx(studentized_range.sf(test.statistic, *test.df), rel=1e-6)
        low, high = test.ci95
        assert (low + high) / 2 == pytest.approx(test.difference)


def test_welch_by_hand():
    """Variances 1 / 3 and 4 / 3 of the means: t = -2 / sqrt(5 / 3), and df = (5 / 3)^2 / (1 / 18 + 16 / 18)."""
    a, b = [1, 2, 3], [2, 4, 6]
    test = t_test("s", "m", "a", a, "b", b)
    scale, df = math.sqrt(5 / 3), 25 / 9 / (17 / 18)
    assert (test.test, test.methods, test.n, test.difference) == ("welch-t", ("a", "b"), (3, 3), -2)
    assert test.statistic == pytest.approx(-2 / scale) and test.df == pytest.approx((df,))
    assert test.p_value == pytest.approx(2 * t.cdf(-2 / scale, df))
    half = t.ppf(0.975, df) * scale
    assert test.ci95 == pytest.approx((-2 - half, -2 + half))
    less, greater = (t_test("s", "m", "a", a, "b", b, alternative=side) for side in ("less", "greater"))
    assert less.p_value == pytest.approx(test.p_value / 2) and greater.p_value == pytest.approx(1 - less.p_value)
    assert less.ci95 == test.ci95 and less.alternative == "less"


def test_one_of_two_constant():
    """[1, 1, 1] and [0, 1, 2, 3]: t = -0.5 / sqrt(5 / 3 / 4) with 3 degrees of freedom, and no warning."""
    test = t_test("s", "m", "oracle", [1, 1, 1], "b", [0, 1, 2, 3])
    assert test.statistic == pytest.approx(-0.5 / math.sqrt(5 / 12)) and test.df == pytest.approx((3,))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_all_alike(value):
    samples = {"a": [value] * 10, "b": [value] * 7, "c": [value] * 3}
    for test in compare("s", "m", samples, "a") + [t_test("s", "m", "a", [value] * 10, "b", [value] * 7)]:
        assert (test.p_value, test.statistic, test.df) == (1, None, ())
        assert test.test == "anova" or (test.difference, test.ci95) == (0, (0, 0))


def test_different_without_variance():
    anova, b, c = compare("s", "m", {"a": [0.5] * 9, "b": [0.25] * 9, "c": [0.5] * 9}, "a")
    assert (anova.p_value, b.p_value, c.p_value) == (0, 0, 1)
    assert (anova.statistic, b.difference, b.ci95, c.difference) == (None, 0.25, (0.25, 0.25), 0)
    sides = ("two-sided", "greater", "less")
    assert [t_test("s", "m", "a", [2, 2], "b", [1, 1], alternative=side).p_value for side in sides] == [0, 0, 1]


def test_too_few_observations():
    assert compare("s", "m", {"a": [1], "b": [1, 2], "c": [2, 3]}, "a") == []
    assert compare("s", "m", {"a": [1, 2], "b": [1], "c": []}, "a") == []
    assert [test.methods for test in compare("s", "m", SMALL | {"few": [1]}, "epn")] == [
        ("eswm", "epn", "random"),
        ("epn", "eswm"),
        ("epn", "random"),
    ]
    with pytest.raises(ValueError, match="1 of b"):
        t_test("s", "m", "a", [1, 2], "b", [1])


def test_wrong_samples():
    with pytest.raises(ValueError, match="no samples of 'eswn'"):
        compare("s", "m", SMALL, "eswn")
    with pytest.raises(ValueError, match="epn: every value"):
        compare("s", "m", SMALL | {"epn": [1, math.nan]}, "eswm")


def test_lines(capsys):
    tests = compare("random-wall-19", "unique_locations", SMALL, "epn")
    tests += [t_test("s", "m", "a", [1, 2, 3], "b", [2, 4, 6], alternative="less")]
    print_tests(tests + compare("s", "m", {"a": [0, 0], "b": [1, 1]}, "a"))
    assert capsys.readouterr().out.splitlines() == [
        "ANOVA random-wall-19 unique_locations: F(2, 6) = 9.0000, p = 0.016",
        "  epn < eswm by 3.0000 (95 % CI 0.4948 to 5.5052), Tukey p = 0.024",
        "  no difference found between epn and random (0.0000, 95 % CI -2.5052 to 2.5052), Tukey p = 1.000",
        "Welch s m: no difference found between a and b (-2.0000, 95 % CI -6.1554 to 2.1554), "
        "t(2.9) = -1.5492, p = 0.110 (one-sided)",
        "ANOVA s m: nothing varies within a method, p < 0.001",
        "  a < b by 1.0000 (95 % CI 1.0000 to 1.0000), Tukey p < 0.001",
    ]


def test_a_correction_for_many_t_tests():
    """Holm: p-values .01, .03, .04 become 3 x .01, 2 x .03, and at least that."""
    made = t_test("s", "m", "a", [1, 2, 3], "b", [2, 4, 6])
    anova, *_ = compare("s", "m", SMALL, "epn")
    tests = [anova, *(replace(made, p_value=p) for p in (0.03, 0.01, 0.04))]
    assert [test.p_corrected for test in corrected(tests)] == [None, *map(pytest.approx, (0.06, 0.03, 0.06))]
    assert [test.p_value for test in corrected(tests)] == [test.p_value for test in tests]
    assert corrected([replace(made, p_value=0.8), replace(made, p_value=0.9)])[0].p == 1


def test_a_difference_that_a_correction_takes_away_is_not_called_one(capsys):
    made = replace(t_test("s", "m", "a", [1, 2, 3], "b", [2, 4, 6]), p_value=0.03)
    print_tests([made, *corrected([made, made])])
    one, *both = capsys.readouterr().out.splitlines()
    assert "a < b by 2.0000" in one
    assert all("no difference found between a and b" in line and "p = 0.060 (Holm)" in line for line in both)


def test_student_and_paired_by_hand():
    """Differences -1, -2, -3: mean -2, error 1 / sqrt(3). Student: pooled variance 2.5, error sqrt(2.5 * 2 / 3)."""
    a, b = [1, 2, 3], [2, 4, 6]
    student, paired = (t_test("s", "m", "a", a, "b", b, kind) for kind in ("t", "paired-t"))
    assert (student.df, paired.df) == ((4,), (2,))
    assert student.statistic == pytest.approx(-2 / math.sqrt(5 / 3))
    assert paired.statistic == pytest.approx(-2 * math.sqrt(3))
