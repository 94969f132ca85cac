"""The small run of `latent` works and says what it should."""

import json

import numpy as np
import pytest
from latent.command import main as latent
from latent.models import collect_epn, fits_of
from latent.subjects import PAPER

from eswm_gym.analysis import Activations, room_of_kind


@pytest.mark.usefixtures("compared_weights")
def test_latent(tmp_path, capsys):
    latent(["--quick", "--json", str(tmp_path / "out.json")])
    found = json.loads((tmp_path / "out.json").read_text())
    value = {(r["setting"], r["method"], r["metric"]): r["value"] for r in found["rows"] if r["along"] is None}
    layers = {(r["setting"], r["method"], r["metric"], r["at"]): r["value"] for r in found["rows"] if r["along"]}
    assert {r["along"] for r in found["rows"]} == {"layer", None}
    assert (found["benchmark"], found["seed"]) == ("latent", 0)
    paper = {(r["method"], r["metric"]): r["paper"] for r in found["rows"] if r["paper"] is not None}
    assert paper == PAPER
    assert value["random-wall-19", "eswm", "srsa"] > 0.85 > value["random-wall-19", "untrained", "srsa"]
    for task in ("srsa_end", "srsa_source"):
        assert value["random-wall-19", "eswm", task] > value["random-wall-19", "untrained", task]
    probe = value["random-wall-19", "eswm", "distance_probe"]
    assert probe > value["random-wall-19", "untrained", "distance_probe"] + 0.05
    assert value["random-wall-37", "eswm", "latent_r2"] > 0.75 > value["random-wall-37", "untrained", "latent_r2"]
    for kind in ("no-wall", "straight-wall", "two-walls", "clump", "partly-observed"):
        ours, control = (value[kind, method, "isomap_disparity"] for method in ("eswm", "untrained"))
        assert ours < 0.3 < control
    depth = [layers["random-wall-37", "eswm", "isomap_disparity", i] for i in range(1, 15)]
    assert min(depth) < 0.2 < max(depth)
    for cue in ("none", "wall", "one-obstacle-each", "shape"):
        mass = {m: v for (setting, _, m), v in value.items() if setting == f"clusters-{cue}"}
        assert 0 <= mass["neighbor_mass"] <= mass["other_cluster_mass"] <= 1
        assert mass["other_cluster_mass"] + mass["stays_mass"] + mass["unknown_mass"] <= 1 + 1e-6
        known = value[f"clusters-{cue}", "ideal", "neighbor_mass"]
        assert known == 1 if cue != "none" else known < 0.05
    assert value["clusters-shape", "eswm", "neighbor_mass"] > 0.2 > value["clusters-none", "eswm", "neighbor_mass"]
    for metric in ("isomap_disparity", "isomap_correlation", "isomap_srsa"):
        for method in ("eswm-lstm", "eswm-mamba", "epn-spanning"):
            alone = value["paper-rooms", method, f"{metric}/straight-wall"]
            assert value["paper-rooms", method, metric] == pytest.approx(alone)
    fit = {m: value["paper-rooms", m, "isomap_srsa"] for m in ("eswm-t", "eswm-t-untrained", "epn")}
    assert fit["eswm-t"] > 0.4 > fit["eswm-t-untrained"]
    for metric in ("srsa_one_heading", "srsa_cells"):
        assert ("minigrid", "untrained", metric) in value
    [test] = found["tests"]
    assert test["methods"] == ["eswm", "untrained"] and test["df"] == [test["n"][0] - 1]
    assert test["difference"] == pytest.approx(
        value["random-wall-19", "eswm", "srsa"] - value["random-wall-19", "untrained", "srsa"]
    )
    printed = capsys.readouterr().out
    assert "srsa: eswm is above untrained" in printed and "srsa, layer" not in printed


class Compass:
    """In the place of EPN: its activations are the state and the goal, and it remembers what the test says."""

    def __init__(self, *memory):
        self.memory = np.array(memory)

    def activations(self, memory, state, goal):
        assert (memory == memory[0]).all()
        self.read = memory[0]
        return np.stack([state, goal], 1)

    def fill_memories(self, rooms, seed):
        return [self.memory for _ in rooms]


def test_activations_of_epn_belong_to_where_it_stands():
    rng = np.random.default_rng(0)
    rooms = room_of_kind(rng, "partly-observed")
    states = rooms.states[0]
    free = np.flatnonzero(rooms.observed[0] & ~rooms.walls[0])
    found = collect_epn(Compass(), False, rng, rooms, 3)
    state, goal = found.vectors[0].T
    assert (state == states[found.place]).all() and (state != goal).all()
    assert set(goal) == set(state) == set(states[free])
    assert np.bincount(found.bank).tolist() == [10 * len(free)] * 3
    pairs = {(bank, *pair) for bank, pair in zip(found.bank, found.vectors[0].tolist(), strict=True)}
    assert len(pairs) == len(state)  # each goal once
    seen, hidden = states[free[:2]], states[~rooms.observed[0]][0]
    walker = Compass((seen[0], 0, seen[1]), (seen[0], 1, hidden), (hidden, 2, seen[1]))
    collect_epn(walker, True, rng, rooms, 3)
    assert walker.read.tolist() == [[seen[0], 0, seen[1]]]


def test_the_fit_of_a_perfect_map():
    rooms = room_of_kind(np.random.default_rng(0), "no-wall")
    place = np.tile(np.arange(37), 4)
    flat = np.concatenate([rooms.lattice.xy[place], np.full((len(place), 1), 1e3)], 1)
    fit = fits_of(Activations(np.stack([flat * 0 + 1, flat]), place, place // 37), 1, rooms)
    assert fit["isomap_disparity"] < 0.03
    assert fit["isomap_correlation"] > 0.97 and fit["isomap_srsa"] > 0.99


def test_figures(tmp_path):
    latent(["--quick", "--model", "minigrid", "--plot", str(tmp_path)])
    assert (tmp_path / "latent-minigrid-eswm.png").stat().st_size > 10_000
    assert (tmp_path / "latent-minigrid-eswm.svg").exists()
