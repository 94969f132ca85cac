"""Each benchmark's small run works and says what it should."""

import json

import navigate
import pytest
import speed


def test_navigate(tmp_path, capsys):
    navigate.main(["--episodes", "30", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    rows = json.loads((tmp_path / "out.json").read_text())["rows"]
    value = {(r["setting"], r["method"], r["metric"]): r["value"] for r in rows}
    for setting in ("random-wall-19", "random-wall-37"):
        assert value[setting, "path-integration", "success_rate"] == 1
        assert value[setting, "path-integration", "path_optimality"] == pytest.approx(1)
        assert value[setting, "memory-graph", "success_rate"] == 1
        assert value[setting, "random", "success_rate"] < value[setting, "eswm", "success_rate"]
        assert value[setting, "eswm", "success_rate"] > 0.8
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
