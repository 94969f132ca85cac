"""Problems of MiniGrid's rooms: what the model is shown and what it should say, and that it learns from them."""

import json

import numpy as np
import pytest
import torch

from eswm_gym.rooms import Kind
from eswm_gym.rooms.grid import UNDECIDED, GridBanks, GridConfig, GridQueries, GridRooms, generate_grids
from eswm_gym.world_model import ACTION, END, SOURCE, ViewTransformerConfig, load_model
from eswm_gym.world_model.data import ProblemStream
from eswm_gym.world_model.grid_data import GridSource, to_problems
from eswm_gym.world_model.presets import PRESETS, Preset

SMALL = GridConfig(6, walls=(0, 1), wall_length=(1, 2))


def test_targets_by_hand():
    rooms = GridRooms.of(generate_grids(np.random.default_rng(0), 1, GridConfig()))
    pose = int(np.flatnonzero(rooms.free[0])[0])
    banks = GridBanks(rooms, np.array([[pose, -1]]), np.array([[1, -1]]))
    source, end = np.arange(25) % 9, np.arange(25) % 7 + 1
    row = np.concatenate([source, [2], end])
    queries = GridQueries(
        np.tile(row, (1, 5, 1)),
        np.array([[SOURCE, ACTION, END, END, ACTION]]),
        np.array([[Kind.UNSEEN, Kind.SEEN, Kind.UNSOLVABLE, UNDECIDED, UNDECIDED]]),
    )
    memories, query, target, masked = to_problems(banks, queries, 4)
    assert all(t.dtype == torch.int64 for t in (memories, query, target, masked))
    assert memories.shape == (1, 4, 51)
    assert memories[0, 0].tolist() == [*rooms.views[0, pose], 1, *rooms.views[0, rooms.targets[0, pose, 1]]]
    assert (memories[0, 1:] == -1).all()
    hidden = [-1] * 25
    asked = [[*hidden, 2, *end], [*source, -1, *end], [*source, 2, *hidden], [*source, 2, *hidden], [*source, -1, *end]]
    assert query[0].tolist() == asked
    assert target[0, 0].tolist() == [*source, 0]
    assert target[0, 1, [0, 25]].tolist() == [2, 0]
    assert target[0, 2].tolist() == [*end, 1]
    assert target[0, 3].tolist() == [*end, -1]
    assert target[0, 4, [0, 25]].tolist() == [2, -1]
    assert masked.tolist() == queries.masked.tolist()
    assert (queries.transitions == row).all()  # as they were


@pytest.mark.parametrize("bank", ["cover", "walk"])
def test_batches(bank):
    source = GridSource(GridConfig(), bank, hidden=0.6)
    assert source.capacity == {"cover": 24, "walk": 80}[bank]
    memories, query, target, masked = source.draw(np.random.default_rng(0), 12, 20, 64)
    assert memories.shape == (12, source.capacity, 51) and query.shape == (12, 20, 51)
    assert target.shape == (12, 20, 26) and masked.shape == (12, 20)
    held = memories[..., 0] >= 0
    assert (memories[~held] == -1).all() and (memories[held] >= 0).all()
    for i in range(12):
        for one, answer, m in zip(query[i].tolist(), target[i].tolist(), masked[i].tolist(), strict=True):
            parts = [one[:25], one[25:26], one[26:]]
            assert parts.pop(m) == [-1] * (1 if m == ACTION else 25)
            assert min(map(min, parts)) >= 0
            assert min(answer[:25]) >= 0 and max(answer[:25]) <= 8 and answer[25] in (-1, 0, 1)
            assert m != ACTION or answer[0] <= 2


def test_half_of_the_rooms_hide_a_region():
    source = GridSource(GridConfig(), "cover", hidden=0.6)
    banks = source.draw_banks(np.random.default_rng(0), 400)
    shown = banks.known().sum(1) / banks.rooms.visible.sum(1)
    assert 0.45 < (shown == 1).mean() < 0.75  # the last memory shows more than asked at times
    assert 0.4 <= shown.min() < 0.55
    whole = GridSource(GridConfig(), "cover").draw_banks(np.random.default_rng(0), 100)
    assert ((whole.known().sum(1) / whole.rooms.visible.sum(1)) == 1).mean() > 0.95


def test_walks_of_all_lengths():
    banks = GridSource(GridConfig(), "walk").draw_banks(np.random.default_rng(0), 300)
    held = (banks.pose >= 0).sum(1)
    assert held.min() == 0 and 40 < held.max() <= 80


def test_streams_are_functions_of_seed_and_step():
    sources = (GridSource(SMALL, "cover", share=0.5, hidden=0.5), GridSource(SMALL, "walk", share=0.5))

    def stream(seed=0, rank=0, first=0):
        return ProblemStream(sources, 9, 2, 3, seed, rank, first)

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
        settings={"small": SMALL},
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
