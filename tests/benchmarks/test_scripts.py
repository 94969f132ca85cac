"""Each benchmark's small run works and says what it should."""

import json

import adapt
import explore
import navigate
import networkx as nx
import numpy as np
import pytest
import report
import speed
from predict.command import main as predict

from eswm_gym.agents import MemoryBank
from eswm_gym.agents.baselines import GridOracle, GridOracleExplorer, MemoryGraphAgent, RandomAgent
from eswm_gym.agents.baselines.grid_agents import pose_graph
from eswm_gym.agents.episodes import Setup, run
from eswm_gym.rooms import Room, RoomConfig


def values_of(path):
    found = json.loads(path.read_text())
    return found, {key_of(r): r["value"] for r in found["rows"]}


def key_of(row):
    """Setting, method and metric; and where along its number, if there is one."""
    key = (row["setting"], row["method"], row["metric"])
    return key if row["along"] is None else (*key, row["at"])


def test_navigate(tmp_path, capsys):
    navigate.main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found, value = values_of(tmp_path / "out.json")
    rows = found["rows"]
    assert (found["benchmark"], found["seed"]) == ("navigate", 0)
    assert {key_of(r): r["paper"] for r in rows if r["paper"] is not None} == navigate.PAPER
    assert found["command"] == "python benchmarks/navigate.py --quick"
    for row in rows:
        assert set(row) == {"setting", "method", "metric", "along", "at", "value", "ci95", "n", "paper"}
        if row["ci95"] is not None:
            low, high = row["ci95"]
            assert low <= row["value"] + 1e-9 and row["value"] <= high + 1e-9
    by_length = [r["n"] for r in rows if (r["metric"], r["along"]) == ("success_rate", "length")]
    # Settings, methods, episodes; two of the untrained network; those of MiniGrid, without errors and with.
    assert sum(by_length) == 2 * 12 * 20 + 2 * 2 + 2 * 7 * 4
    assert value["minigrid", "oracle", "success_rate"] == value["minigrid", "oracle", "path_optimality"] == 1
    assert value["minigrid", "eswm", "success_rate"] >= 0.8 > value["minigrid", "random", "success_rate"]
    for setting in ("random-wall-19", "random-wall-37"):
        assert value[setting, "path-integration", "success_rate"] == 1
        assert value[setting, "path-integration", "path_optimality"] == pytest.approx(1)
        assert value[setting, "memory-graph", "success_rate"] == 1
        assert value[setting, "random", "success_rate"] < value[setting, "eswm", "success_rate"]
        assert value[setting, "eswm", "success_rate"] >= 0.9
        assert value[setting, "eswm", "path_optimality"] > 0.95
        expanded = {method: value[setting, method, "states_expanded"] for method in ("eswm-astar", "eswm-dijkstra")}
        saved = 1 - expanded["eswm-astar"] / expanded["eswm-dijkstra"]
        assert value[setting, "eswm-astar", "expansions_saved"] == pytest.approx(saved) and saved > 0.4
        assert value[setting, "eswm", "latent_r2"] > 0.7
        assert (tmp_path / f"navigate-{setting}.png").exists()
    assert {test["test"] for test in found["tests"]} == {"anova", "tukey", "welch-t"}
    assert "eswm-dijkstra" in capsys.readouterr().out


def test_explore(tmp_path, capsys):
    explore.main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found, value = values_of(tmp_path / "out.json")
    for setting, steps in (("random-wall-19", 15), ("random-wall-37", 25)):
        count = {key[1]: v for key, v in value.items() if (key[0], key[2]) == (setting, "unique_locations")}
        assert count["random"] < count["eswm-uncertainty"] < count["eswm"] <= count["bound"] <= steps + 1
        assert count["oracle"] <= count["bound"]
        assert value[setting, "eswm", "oracle_ratio"] == pytest.approx(count["eswm"] / count["oracle"])
        assert 0.7 < value[setting, "eswm", "coverage"] <= 1
        for method in ("lattice-frontier-ordered", "eswm-unordered", "eswm-uncertainty"):
            assert value[f"{setting}-no-mask", method, "unique_locations"] <= steps + 1
        assert value[f"{setting}-no-mask", "lattice-frontier", "unique_locations"] == count["lattice-frontier"]
        assert (tmp_path / f"explore-{setting}.png").exists()
    assert "oracle" in capsys.readouterr().out
    for steps in (10, 30):
        seen = {method: value["minigrid", method, "coverage", steps] for method in ("random", "eswm", "oracle")}
        assert seen["random"] < seen["eswm"] <= 1 and seen["eswm"] < seen["oracle"] + 0.05


def test_what_was_seen_counts_once():
    """In a room without inner walls, turning round at a corner shows the same again."""
    setup = Setup("ESWM-MiniGridExplore-v0", 0, options={"grid": np.pad(np.full((7, 7), 2), 1, constant_values=1)})
    [episode] = run([setup], GridOracleExplorer())
    share = explore.seen_by_step(episode)
    assert len(share) == max(explore.MINIGRID_STEPS) + 1
    assert share == sorted(share) and share[-1] == 1
    assert share[episode.steps] == 1 > share[episode.steps - 1]  # the episode ends when all is seen


@pytest.mark.usefixtures("compared_weights")
def test_predict(tmp_path, capsys):
    predict(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found, value = values_of(tmp_path / "out.json")
    models = ("eswm-t", "eswm-lstm", "eswm-mamba", "tem-t", "emwm", "emwm-nearest", "lookup", "path-integrator")
    for setting in ("random-wall-37", "open-arena-unseen"):
        unseen = {m: value[setting, m, "accuracy/unseen/end"] for m in models}
        assert unseen["path-integrator"] > unseen["eswm-t"] > 0.8
        assert unseen["lookup"] < 0.5  # the reverses of memories
        if setting == "random-wall-37":
            assert value[setting, "lookup", "accuracy/seen/end"] == 1
            assert value[setting, "eswm-agent", "validity/unseen/end"] > 0.97
        assert (tmp_path / f"predict-{setting}.png").exists()
    larger = {m: value["open-arena-37", m, "accuracy/unseen/end"] for m in ("eswm-t", "eswm-t-relational-shapes")}
    assert larger["eswm-t"] < value["open-arena-unseen", "eswm-t", "accuracy/unseen/end"]
    assert larger["eswm-t"] < larger["eswm-t-relational-shapes"] > 0.7
    for component in ("source", "end"):
        whole, cells = (value["minigrid", "eswm", f"{m}/unseen/{component}"] for m in ("views", "cells"))
        assert 0.9 < whole <= cells
        assert value["minigrid", "majority", f"cells/unseen/{component}"] < 0.6
    papers = {key_of(r): r["paper"] for r in found["rows"] if r["paper"] is not None}
    assert {key[3] for key in value if key[2] == "loss_unseen"} >= {1, 2}  # minutes
    assert value["random-wall-19", "random-wall", "validity/unseen/end"] > 0.97
    assert papers["random-wall-37", "eswm-t", "accuracy/unseen/source"] == 0.875
    assert papers["random-wall-37", "eswm-lstm", "accuracy/unsolvable/end"] == 0.756
    assert papers["open-arena-37", "eswm-t", "accuracy/unseen/action"] == 0.9
    for figure in ("losses", "ablation"):
        assert (tmp_path / f"predict-{figure}.svg").exists()
    assert "path-integrator" in capsys.readouterr().out


def test_predict_runs_single_experiments_and_names_unknown_ones(capsys):
    rows = predict(["minigrid", "--quick"])
    assert {row.setting for row in rows} == {"minigrid", "minigrid-noise"}
    with pytest.raises(SystemExit):
        predict(["maze", "--quick"])
    assert "no experiment maze; there are shipped, random-wall, " in capsys.readouterr().err


def test_moves_to_ask_are_true_new_and_between_places_seen():
    """By hand: three in a row are known, a wall lies beside the first two."""
    room = Room(1, [3, 1, 4, 9, 5, 2, 6], walls=[0])  # 3 1 / 4 9 5 / 2 6, of which 3 is wall
    explored, generated = MemoryBank([(4, 0, 9), (9, 0, 5), (4, 1, 4)]), MemoryBank([(5, 3, 9)])
    asked = {tuple(move) for move in explore.moves_to_ask(room, explored, generated).tolist()}
    assert asked == {(9, 3, 4), (9, 2, 9)}


def test_adapt(tmp_path, capsys):
    adapt.main(["--quick", "--json", str(tmp_path / "out.json"), "--plot", str(tmp_path)])
    found, value = values_of(tmp_path / "out.json")
    n = {key_of(r): r["n"] for r in found["rows"]}
    for setting in ("random-wall-19", "trained-room"):
        for walls in adapt.QUICK_MEET:
            methods = [key[1] for key in n if key[0] == setting and key[2:] == ("success_rate", walls)]
            counted = {n[setting, m, "success_rate", walls] for m in methods if m != "eswm-untrained"}
            assert len(counted) == 1 and 0 < counted.pop() <= 10  # what is cut off is left out for all
        assert value[setting, "eswm", "success_rate", 0] == 1
        assert min(value[setting, "eswm", "success_rate", walls] for walls in (3, 5)) >= 0.8
        detours = {key: n[key] for key in n if key[0] == setting and key[2] == "detour_success_rate"}
        assert {walls for *_, walls in detours} <= {3, 5}  # without a new wall no way is longer
        for (_, method, _, walls), some in detours.items():
            assert some <= n[setting, method, "success_rate", walls]
    assert value["random-wall-37", "path-integration", "success_rate", 5] >= 0.8
    assert ("trained-room", "a2c-lstm", "success_rate", 0) in value
    assert ("random-wall-19", "a2c-lstm", "success_rate", 0) not in value
    assert value["wall-removed", "eswm", "success_rate"] >= 0.8
    assert n["minigrid", "eswm", "success_rate"] > 0
    assert (tmp_path / "adapt-trained-room.svg").exists()
    assert "eswm-no-editing" in capsys.readouterr().out


def test_a_wall_on_the_way_is_the_same_for_everyone():
    """Whatever the agent does first; nobody stands in it."""
    for seed in range(8):
        walls = set()
        for agent in (GridOracle(), *(RandomAgent(i, n_actions=3) for i in range(4))):
            episode = adapt.WalledEpisode(Setup(adapt.MINIGRID, seed), agent)
            walls.add(episode.wall)
            before = episode.env.unwrapped.grid_classes.copy()
            for _ in range(adapt.AFTER + 3):
                if episode.done:
                    break
                episode.step()
                assert not episode.walled or episode.env.unwrapped.pose[:2] != episode.wall
            now = episode.env.unwrapped.grid_classes
            x, y = episode.wall or (0, 0)
            assert np.argwhere(now != before).tolist() == ([[y, x]] if episode.walled else [])
        assert len(walls) == 1


def test_a_wall_on_the_way_leaves_a_way():
    """Whoever knows the room goes the shortest way from there on."""
    walled = []
    for seed in range(8):
        agent = GridOracle()
        episode = adapt.WalledEpisode(Setup(adapt.MINIGRID, seed), agent)
        while not episode.done:
            agent.graph = pose_graph(episode.env.unwrapped.grid_classes)
            episode.step()
        if episode.walled:
            walled.append(episode)
    assert len(walled) >= 4
    assert all(episode.success and episode.steps == episode.shortest for episode in walled)


@pytest.mark.parametrize("seed", range(10))
def test_a_new_wall_is_a_run_of_free_locations(seed):
    rng = np.random.default_rng(seed)
    room = Room.generate(rng, RoomConfig.random_wall(2, hidden=0.0))
    keep = set(np.flatnonzero(~room.walls)[:2].tolist())
    wall = adapt.new_wall(room, 5, rng, keep)
    assert 1 <= len(wall) <= 5 and len(set(wall)) == len(wall)
    assert not room.walls[wall].any() and not keep & set(wall)
    touching = nx.from_edgelist(room.lattice.edges.tolist())
    assert all(touching.has_edge(*pair) for pair in zip(wall, wall[1:], strict=False))


def test_a_report_of_the_files_that_benchmarks_write(tmp_path):
    speed.main(["--quick", "--json", str(tmp_path / "speed.json")])
    report.main([str(tmp_path / "speed.json"), "--out", str(tmp_path / "report.html")])
    assert "cross-cached" in (tmp_path / "report.html").read_text()


def test_all_methods_see_the_same_episodes():
    setups = [Setup("ESWM-RandomWall19-v0", seed) for seed in range(5)]
    one, other = (run(setups, agent) for agent in (RandomAgent(), MemoryGraphAgent()))
    assert [e.shortest for e in one] == [e.shortest for e in other]
    assert [e.path[0] for e in one] == [e.path[0] for e in other]


def test_speed(capsys):
    rows = speed.main(["--quick"])
    value = {(r.method, r.metric): r.value for r in rows}
    assert value["numpy-batched/networkx", "ratio"] > 2
    assert all(v > 0 for v in value.values())
    assert "cross-cached" in capsys.readouterr().out
