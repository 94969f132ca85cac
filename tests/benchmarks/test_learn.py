"""The learning curves' small run works and says what it should."""

import json

import learn
import pytest


def test_quick(tmp_path, capsys):
    learn.main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found = json.loads((tmp_path / "out.json").read_text())
    value = {(r["setting"], r["method"], r["metric"], r["at"]): r["value"] for r in found["rows"]}
    assert {r["along"] for r in found["rows"]} == {"steps", None}
    assert found["benchmark"] == "learn"
    curves = [
        ("random-wall-19", "success_rate", ["ppo", "ppo-planned-action"]),
        ("random-wall-19-explore", "unique_locations", ["ppo", "ppo-uncertainty-bonus", "ppo-only-bonus"]),
    ]
    expected = {
        (setting, method, metric, n) for setting, metric, methods in curves for method in methods for n in (0, 512)
    }
    assert set(value) == expected | {(setting, "eswm", metric, None) for setting, metric, _ in curves}
    # Before training, the reward has had no say.
    before = {value["random-wall-19-explore", method, "unique_locations", 0] for method in curves[1][2]}
    assert len(before) == 1
    for setting, metric, _ in curves:
        assert value[setting, "eswm", metric, None] >= {"success_rate": 0.9, "unique_locations": 12}[metric]
        assert (tmp_path / f"learn-{setting}.png").exists()
    assert "ppo-planned-action" in capsys.readouterr().out


def test_scores_by_hand():
    # Arrived with the first step, arrived with the fifteenth, did not arrive.
    assert learn.score("random-wall-19", [1.0, 0.86, -0.15]) == pytest.approx(2 / 3)
    # Three and six new locations, beside the start.
    assert learn.score("random-wall-19-explore", [3.0, 6.0]) == pytest.approx(5.5)
