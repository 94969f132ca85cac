"""Training over MiniGrid's views: the stream, the presets, and that a model learns."""

import json

import pytest
import torch

from eswm_gym.rooms.grid import GridConfig, GridSource
from eswm_gym.world_model import ViewTransformerConfig, load_model
from eswm_gym.world_model.presets import PRESETS, Preset
from eswm_gym.world_model.stream import ProblemStream

SMALL = GridConfig(6, walls=(0, 1), wall_length=(1, 2))


def test_streams_are_functions_of_seed_and_step():
    sources = (GridSource(SMALL, "cover", share=0.5, hidden=0.5), GridSource(SMALL, "walk", share=0.5))

    def stream(seed=0, rank=0, first=0):
        return ProblemStream(sources, 2, 3, seed, rank, first)

    def same(a, b):
        return all(x.shape == y.shape and torch.equal(x, y) for x, y in zip(a, b, strict=True))

    going = iter(stream())
    batches = [next(going) for _ in range(6)]
    assert all(same(batch, stream().batch(step)) for step, batch in enumerate(batches))
    assert same(next(iter(stream(first=4))), batches[4])
    assert not same(stream(seed=1).batch(4), batches[4])
    assert not same(stream(rank=1).batch(4), batches[4])
    assert {batch.memories.shape[1] for batch in batches} == {24, 80}
    assert all(stream(rank=1).batch(i).memories.shape == batches[i].memories.shape for i in range(6))


@pytest.mark.parametrize("name", ["minigrid", "minigrid-plain"])
def test_presets_fit_their_problems(name):
    preset = PRESETS[name]
    assert all(source.capacity <= preset.model.max_memories for source in preset.sources)
    assert {source.rooms.size for source in preset.sources} == {preset.model.size}
    assert preset.model.registration == (name == "minigrid")


def test_a_short_run_learns_and_writes_a_model(tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightning")
    from eswm_gym.world_model.train import main

    preset = Preset(
        model=ViewTransformerConfig(dim=32, layers=1, heads=2, size=6, cell_dim=4, max_memories=24),
        sources=(GridSource(SMALL, "cover", hidden=0.5),),
        settings={"small": GridSource(SMALL, "cover", hidden=0.6)},
        rooms=8,
        queries=16,
        lr=5e-3,
    )
    monkeypatch.setitem(PRESETS, "tiny-views", preset)

    def run(name, steps):
        main(["tiny-views", "--steps", str(steps), "--no-compile", "--precision", "32-true", "--device", "cpu",
              "--out", str(tmp_path / name), "--eval-rooms", "60"])  # fmt: skip
        return json.loads((tmp_path / name / "tiny-views.json").read_text())["metrics"]["small"]

    first, last = run("first", 1), run("last", 150)
    model = load_model(tmp_path / "last" / "tiny-views")
    assert model.config == preset.model
    assert last["loss"] < 0.1 * first["loss"]
    assert last["cells/unseen/end"] > first["cells/unseen/end"]
    assert last["cells/unseen/end"] > 0.95 and last["accuracy/unseen/end"] > 0.7
    assert "accuracy/unseen/end" in capsys.readouterr().out
