"""Training over MiniGrid's views: the stream, the presets, and that a model learns."""

import json

import pytest
import torch

from eswm_gym.rooms.grid import GridConfig, GridSource
from eswm_gym.world_model import OverlapConfig, ViewTransformerConfig, load_model
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
    assert sum(source.share for source in preset.sources) == pytest.approx(1)
    assert any(source.looks and max(source.wrong_cells) > 0.1 for source in preset.sources)
    assert any(max(source.wrong_cells) == 0 for source in preset.sources)
    errors = {name: source.wrong_cells for name, source in preset.settings.items()}
    assert errors == {"minigrid": (0, 0)} | {f"minigrid-noise-{n}": (n / 100, n / 100) for n in (5, 10, 15)}


def test_rooms_are_of_the_size_that_the_model_is_for():
    preset = PRESETS["minigrid"]
    every = [*preset.sources, *preset.settings.values()]
    assert {source.rooms.size for source in every} == {preset.model.size}


MODELS = {
    "plain": (ViewTransformerConfig(dim=32, layers=1, heads=2, cell_dim=4, max_memories=24), 150),
    "overlap": (OverlapConfig(dim=32, layers=1, size=6, max_memories=24), 40),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_short_run_learns_and_writes_a_model(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("lightning")
    from eswm_gym.world_model.train import main

    model, steps = MODELS[name]
    preset = Preset(
        model=model,
        sources=(GridSource(SMALL, "cover", hidden=0.5, looks=0.1),),
        settings={"small": GridSource(SMALL, "cover", hidden=0.6)},
        rooms=8,
        queries=16,
        lr=5e-3,
    )
    monkeypatch.setitem(PRESETS, "tiny-views", preset)

    def run(folder, steps):
        main(["tiny-views", "--steps", str(steps), "--no-compile", "--precision", "32-true", "--device", "cpu",
              "--out", str(tmp_path / folder), "--eval-rooms", "60"])  # fmt: skip
        return json.loads((tmp_path / folder / "tiny-views.json").read_text())["metrics"]["small"]

    first, last = run("first", 1), run("last", steps)
    trained = load_model(tmp_path / "last" / "tiny-views")
    assert trained.config == model
    assert last["loss"] < 0.8 * first["loss"]
    assert "accuracy/unseen/end" in capsys.readouterr().out
