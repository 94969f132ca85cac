"""The small run of `latent.py` works and says what it should."""

import json

import latent
import pytest


def test_latent(tmp_path, capsys):
    latent.main(["--quick", "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())
    value = {(r["setting"], r["method"], r["metric"]): r["value"] for r in found["rows"]}
    assert (found["benchmark"], found["seed"]) == ("latent", 0)
    paper = {(r["method"], r["metric"]): r["paper"] for r in found["rows"] if r["paper"] is not None}
    assert paper == latent.PAPER
    assert value["random-wall-19", "eswm", "srsa"] > 0.85 > value["random-wall-19", "untrained", "srsa"]
    for task in ("srsa_end", "srsa_source"):
        assert value["random-wall-19", "eswm", task] > value["random-wall-19", "untrained", task]
    probe = value["random-wall-19", "eswm", "distance_probe"]
    assert probe > value["random-wall-19", "untrained", "distance_probe"] + 0.05
    assert value["random-wall-37", "eswm", "latent_r2"] > 0.75 > value["random-wall-37", "untrained", "latent_r2"]
    for kind in ("no-wall", "straight-wall", "two-walls", "clump", "partly-observed"):
        ours, control = (value[kind, method, "isomap_disparity"] for method in ("eswm", "untrained"))
        assert ours < 0.3 < control
    depth = [value["random-wall-37", "eswm", f"isomap_disparity/layer-{i}"] for i in range(1, 15)]
    assert min(depth) < 0.2 < max(depth)
    for cue in ("none", "wall", "one-obstacle-each", "shape"):
        mass = {m: v for (setting, _, m), v in value.items() if setting == f"clusters-{cue}"}
        assert 0 <= mass["neighbor_mass"] <= mass["other_cluster_mass"] <= 1
        assert mass["other_cluster_mass"] + mass["stays_mass"] + mass["unknown_mass"] <= 1 + 1e-6
    assert value["clusters-shape", "eswm", "neighbor_mass"] > 0.2 > value["clusters-none", "eswm", "neighbor_mass"]
    for metric in ("srsa_one_heading", "srsa_cells"):
        assert ("minigrid", "untrained", metric) in value
    [test] = found["tests"]
    assert test["methods"] == ["eswm", "untrained"] and test["df"] == [test["n"][0] - 1]
    assert test["difference"] == pytest.approx(
        value["random-wall-19", "eswm", "srsa"] - value["random-wall-19", "untrained", "srsa"]
    )
    printed = capsys.readouterr().out
    assert "Paired t-test" in printed and "srsa/layer" not in printed


def test_figures(tmp_path):
    latent.main(["--quick", "--model", "minigrid", "--plot", str(tmp_path)])
    assert (tmp_path / "latent-minigrid-eswm.png").stat().st_size > 10_000
    assert (tmp_path / "latent-minigrid-eswm.svg").exists()
