"""Each benchmark's small run works and says what it should."""

import json

import navigate
import pytest
import speed


def test_navigate(tmp_path, capsys):
    navigate.main(["--episodes", "60", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    report = json.loads((tmp_path / "out.json").read_text())
    rows = report["rows"]
    assert (report["benchmark"], report["seed"]) == ("navigate", 0)
    paper = {(r["setting"], r["method"], r["metric"]): r["paper"] for r in rows if r["paper"] is not None}
    assert paper == {
        ("random-wall-19", "eswm-dijkstra", "success_rate"): 0.968,
        ("random-wall-19", "eswm-dijkstra", "path_optimality"): 0.992,
    }
    for row in rows:
        assert set(row) == {"setting", "method", "metric", "value", "ci95", "n", "paper"}
        low, high = row["ci95"]
        assert -1e-9 < low <= row["value"] + 1e-9 and row["value"] <= high + 1e-9 and high <= 1
    by_length = [r["n"] for r in rows if r["metric"].startswith("success_rate/length-")]
    assert sum(by_length) == 2 * 5 * 30  # settings, methods, episodes
    value = {(r["setting"], r["method"], r["metric"]): r["value"] for r in rows}
    for setting in ("random-wall-19", "random-wall-37"):
        assert value[setting, "path-integration", "success_rate"] == 1
        assert value[setting, "path-integration", "path_optimality"] == pytest.approx(1)
        assert value[setting, "memory-graph", "success_rate"] == 1
        assert value[setting, "random", "success_rate"] < value[setting, "eswm", "success_rate"]
        assert value[setting, "eswm", "success_rate"] >= 0.9
        assert value[setting, "memory-graph", "path_optimality"] < value[setting, "eswm", "path_optimality"]
        assert (tmp_path / f"navigate-{setting}.png").exists()
    assert "eswm-dijkstra" in capsys.readouterr().out


def test_all_methods_see_the_same_episodes():
    runs = [
        navigate.run("ESWM-RandomWall19-v0", agent, range(5))
        for agent in (navigate.RandomAgent(), navigate.MemoryGraphAgent())
    ]
    assert [e.shortest for e in runs[0]] == [e.shortest for e in runs[1]]


def test_speed(capsys):
    rows = speed.main(["--quick"])
    value = {(r.method, r.metric): r.value for r in rows}
    assert value["numpy-batched/networkx", "ratio"] > 2
    assert all(v > 0 for v in value.values())
    assert "cross-cached" in capsys.readouterr().out
