"""The benchmark of duplicate states, of models whose answers are known."""

import json

import duplicates
import numpy as np
import pytest
import torch

from eswm_gym.rooms import LatticeSource, RoomConfig
from eswm_gym.world_model import ACTION, END, ESWM, EncodedBank, ModelConfig, Prediction, Transformer
from eswm_gym.world_model.presets import PRESETS
from eswm_gym.world_model.pretrained import save_model

SOURCE = LatticeSource(
    RoomConfig.open_arena(1, duplicates=(0, 2)), mix=(1, 0, 0, 0), components=(ACTION, END), context=4
)


class Guesses(ESWM):
    """Says that a move leads to the state that the walk came from last, and is the last move back; else to state 0."""

    def encode(self, memories):
        return EncodedBank(memories)

    def predict(self, bank, query):
        last = bank.memories[:, -1]
        back, came_from = (last[:, 1] + 3) % 6, last[:, 0].clamp(min=0)
        action, end = (torch.eye(n)[x][:, None].expand(-1, query.shape[1], -1) for n, x in ((7, back), (65, came_from)))
        return Prediction(end, action, end)

    def activations(self, bank, query):
        raise NotImplementedError


def test_right_answers():
    """Counted again one query at a time."""
    asked = duplicates.ask(Guesses(ModelConfig(64)), SOURCE, 30, seed=5)
    rng = np.random.default_rng(5)
    banks = SOURCE.draw_banks(rng, 30)
    queries = SOURCE.ask(rng, banks, 12)
    walks = banks.transitions()[:, -4:].tolist()
    assert asked.kind.shape == (30, 12) and 0 < asked.duplicated.mean() < 1
    neighbors = banks.rooms.lattice.neighbors
    for i in range(30):
        shown = banks.rooms.states[i].tolist()
        for j in range(12):
            start, action, end = queries.transitions[i, j].tolist()
            assert start == walks[i][-1][2]
            assert asked.duplicated[i, j] == (shown.count(start) == 2)
            guess, blank = ((walks[i][-1][1] + 3) % 6, 2) if asked.masked[i, j] == ACTION else (walks[i][-1][0], 0)
            truth = action if asked.masked[i, j] == ACTION else end
            here = neighbors[queries.location[i, j]].tolist()
            for method, answer in (("context", guess), ("no-context", blank)):
                assert asked.right[method, "accuracy"][i, j] == (answer == truth)
                # Or another move to a state that looks the same; off the lattice the agent stays where it is.
                leads_to = shown[here[answer]] if asked.masked[i, j] == ACTION and here[answer] >= 0 else start
                also = asked.masked[i, j] == ACTION and leads_to == end
                assert asked.right[method, "validity"][i, j] == (answer == truth or also)


def test_rows_by_hand():
    """Two rooms of three queries, all unseen: for the action 1 of 2 and 1 of 1 right, for the end 0 of 1 and 2 of 2."""
    kind = np.zeros((2, 3), int)
    masked = np.array([[1, 1, 2], [1, 2, 2]])
    right = {
        ("context", "accuracy"): np.array([[1, 0, 0], [1, 1, 1]], bool),
        ("no-context", "validity"): np.zeros((2, 3), bool),
    }
    asked = duplicates.Answers(kind, masked, np.array([[True] * 3, [False] * 3]), right)
    value = {
        (r.method, r.metric): (r.value, r.n) for r in duplicates.rows_of("x", "t", asked, np.ones((2, 3), bool), seed=0)
    }
    assert value == {
        ("t-context", "accuracy/unseen/action"): (pytest.approx(2 / 3), 2),
        ("t-context", "accuracy/unseen/end"): (pytest.approx(2 / 3), 2),
        ("t-no-context", "validity/unseen/action"): (0, 2),
        ("t-no-context", "validity/unseen/end"): (0, 2),
    }
    first = {
        r.metric: r.value for r in duplicates.rows_of("x", "t", asked, asked.duplicated, 0) if r.method == "t-context"
    }
    assert first == {"accuracy/unseen/action": 0.5, "accuracy/unseen/end": 0}


def test_quick(tmp_path, capsys):
    for name in duplicates.MODELS:
        save_model(Transformer(PRESETS[name].model), tmp_path / name, training={"preset": name})
    models = [str(tmp_path / f"{name}.safetensors") for name in duplicates.MODELS]
    out = tmp_path / "out.json"
    duplicates.main(["--quick", "--model", *models, "--plot", str(tmp_path), "--json", str(out)])
    found = json.loads(out.read_text())
    assert found["benchmark"] == "duplicates"
    families = {"open-arena-seen", "open-arena-unseen", "random-wall-37"}
    ends = ("", "-duplicates", "-duplicates-source-duplicated", "-duplicates-source-unique")
    assert {row["setting"] for row in found["rows"]} == {family + end for family in families for end in ends}
    labels = {"eswm-t", "eswm-agent"}
    assert {row["method"] for row in found["rows"]} == {f"{x}-{y}" for x in labels for y in ("context", "no-context")}
    kinds = {row["metric"].split("/")[1] for row in found["rows"] if row["setting"].startswith("open-arena")}
    assert kinds == {"unseen"}  # the kind that is asked about there
    assert all(0 <= row["ci95"][0] <= row["value"] <= row["ci95"][1] <= 1 for row in found["rows"])
    assert (tmp_path / "duplicates.png").stat().st_size > 10_000 and (tmp_path / "duplicates.svg").exists()
    assert "eswm-t-no-context" in capsys.readouterr().out
