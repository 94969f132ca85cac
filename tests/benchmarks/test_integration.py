"""The small run of `integration.py` works and says what it should."""

import json

import integration
import numpy as np
import pytest
from common.rows import Row
from scipy import stats

from eswm_gym.analysis import shortcut_divergences, untrained
from eswm_gym.rooms import RoomConfig, generate_rooms, spanning_banks
from eswm_gym.world_model import Lookup, ModelConfig, PathIntegrator, TransformerConfig

ROOMS = RoomConfig.random_wall(2)
CONFIG = ModelConfig(n_states=19)


def test_integration(tmp_path, capsys):
    rows = integration.main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["benchmark"], found["seed"]) == ("integration", 0)
    assert [tuple(row.values()) for row in found["rows"]] == [
        (r.setting, r.method, r.metric, r.along, r.at, r.value, r.ci95 and list(r.ci95), r.n, r.paper) for r in rows
    ]
    assert {(row.setting, row.method) for row in rows} == {("random-wall-37", "random-wall")}
    value = {row.metric: row.value for row in rows if row.along is None}
    paper = {row.metric.removeprefix("accuracy_drop/"): row.paper for row in rows if row.paper is not None}
    assert paper == integration.PAPER
    by_size = {(row.metric, row.at): row.value for row in rows if row.along == "memories"}
    sizes = [at for metric, at in by_size if metric.startswith("accuracy_")]
    assert sizes == sorted(sizes) and len(sizes) == 11 and sizes[0] >= 20 and sizes[-1] <= 73
    for metric, at in by_size:
        if metric.startswith("validity"):
            assert by_size[metric, at] >= max(0.95, by_size[metric.replace("validity", "accuracy"), at])
    for noise in integration.PAPER:
        drop = value["accuracy/clean"] - value[f"accuracy/{noise}"]
        assert value[f"accuracy_drop/{noise}"] == pytest.approx(drop)
    assert value["accuracy_drop_remembered/contradictory-states"] < value["accuracy_drop/contradictory-states"]
    assert value["entropy_correlation"] > 0.1 and value["kl/informative"] > value["kl/uninformative"] > 0
    [test] = found["tests"]
    assert test["difference"] == pytest.approx(value["kl/informative"] - value["kl/uninformative"])
    assert test["df"] == [sum(test["n"]) - 2]
    assert "kl: informative is above uninformative" in capsys.readouterr().out
    assert (tmp_path / "integration-random-wall-37.png").stat().st_size > 10_000
    assert (tmp_path / "integration-random-wall-37.svg").exists()


def test_a_model_that_composes_every_move_is_as_right_in_every_bank():
    """In the open, path integration errs nowhere; a lookup gains from every transition more, whose reverse it knows."""
    arena = RoomConfig.random_wall(2, no_wall=1.0)
    ceiling, floor = (
        {(row.metric, row.at): row for row in integration.size_rows(kind(CONFIG), arena, "s", "m", 600, 0)}
        for kind in (PathIntegrator, Lookup)
    )
    assert [at for metric, at in ceiling if metric == "accuracy_minimal"] == [
        11,
        13,
        15,
        17,
        18,
    ]
    assert [at for metric, at in ceiling if metric == "accuracy_dense"] == [
        21,
        24,
        27,
        30,
        33,
        37,
    ]
    assert all(row.n == 600 and (row.value, row.ci95) == (1, (1, 1)) for row in ceiling.values())
    dense = [row.value for (metric, _), row in floor.items() if metric == "accuracy_dense"]
    # Of 84 moves n are held; of the 84 - n others those whose reverse is.
    assert dense[0] == pytest.approx(20 / 63, abs=0.08) and dense[-1] > dense[0]


def test_entropy_and_its_correlation():
    rows = integration.entropy_rows(Lookup(CONFIG), ROOMS, "s", "m", 400, 0)
    correlation, *by_length = rows
    assert correlation.metric == "entropy_correlation" and correlation.ci95[0] < correlation.value < correlation.ci95[1]
    r, n = correlation.value, correlation.n
    spread = 1.96 * np.sqrt(1.06 / (n - 3))
    assert correlation.ci95 == pytest.approx((np.tanh(np.arctanh(r) - spread), np.tanh(np.arctanh(r) + spread)))
    assert [(row.metric, row.along, row.at) for row in by_length][:3] == [("entropy", "length", i) for i in (1, 2, 3)]
    assert by_length[0].value < by_length[1].value and sum(row.n for row in by_length) <= n


def test_the_t_test_is_students_over_the_two_samples():
    model = untrained(TransformerConfig(n_states=19, dim=32, layers=2))
    rows, test = integration.shortcut_rows(model, ROOMS, "s", "m", 120, 0)
    rng = np.random.default_rng([3 * 10**9, 4])
    samples = shortcut_divergences(model, rng, spanning_banks(rng, generate_rooms(rng, 24, ROOMS)), integration.QUERIES)
    a, b = samples
    assert [row.value for row in rows] == pytest.approx([a.mean(), b.mean()])
    pooled = (a.var(ddof=1) + b.var(ddof=1)) / 2
    t = (a.mean() - b.mean()) / np.sqrt(2 * pooled / len(a))
    assert test.statistic == pytest.approx(t)
    assert test.p_value == pytest.approx(2 * stats.t.sf(abs(t), 2 * len(a) - 2))


def test_rows_of_others_are_not_drawn(tmp_path):
    integration.plot_integration([Row("random-wall-19", "eswm", "success_rate", 1.0)], tmp_path)
    assert not list(tmp_path.iterdir())
