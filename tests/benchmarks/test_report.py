"""Intervals against textbook values, the table and the JSON."""

import json

import numpy as np
import pytest
from report import Row, bootstrap, mean, print_table, rate, wilson, write_json


def test_wilson_interval():
    """8 of 10: (0.8 + z^2/20 -+ z sqrt(0.016 + z^2/400)) / (1 + z^2/10) with z = 1.96, worked out by hand."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 20)[0] == 0 and wilson(20, 20)[1] == 1
    assert wilson(20, 20)[0] == pytest.approx(20 / (20 + 1.959964**2))


def test_bootstrap_interval_of_a_normal_mean():
    values = np.random.default_rng(0).normal(5, 2, 400)
    low, high = bootstrap(values)
    assert (low, high) == bootstrap(values)
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)
    assert low < values.mean() < high


def test_rows_table_and_json(tmp_path, capsys):
    rows = [
        rate("random-wall-19", "eswm", "success_rate", [True, True, False, True], paper=0.968),
        mean("random-wall-19", "eswm", "path_optimality", [1.0, 0.5]),
        Row("random-wall-37", "numpy", "rooms_per_second", 12345.6),
    ]
    assert (rows[0].value, rows[0].n, rows[1].value) == (0.75, 4, 0.75)
    print_table(rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["setting", "method", "metric", "value", "95", "%", "interval", "n", "paper"]
    assert lines[1].split()[3] == "0.7500" and lines[1].split()[-1] == "0.9680" and "12,346" in lines[3]
    write_json(tmp_path / "out.json", "navigate", 3, rows)
    report = json.loads((tmp_path / "out.json").read_text())
    assert set(report) == {"benchmark", "seed", "versions", "rows"} and report["versions"]["eswm_gym"]
    assert set(report["rows"][0]) == {"setting", "method", "metric", "value", "ci95", "n", "paper"}
