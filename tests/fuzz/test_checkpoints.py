"""Checkpoints that are damaged, foreign or half written: refused, never run, and the last good one is never lost."""

import json
import multiprocessing
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eswm_gym.world_model import CheckpointError, Transformer, TransformerConfig, load_model, save_model

in_one_folder = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
damages = st.tuples(st.booleans(), st.floats(0, 1, exclude_max=True), st.integers(0, 7))
forks = pytest.mark.skipif(os.name != "posix", reason="forks")


def damage(data: bytes, cut: bool, where: float, bit: int) -> bytes:
    """The data, cut off somewhere or with one bit changed."""
    at = int(where * len(data))
    return data[:at] if cut else data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def model_of(value: float) -> Transformer:
    """A model all of whose weights are one number."""
    model = Transformer(TransformerConfig(n_states=7, dim=8, layers=1, heads=1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    return model


def value_of(model) -> float:
    values = torch.cat([p.flatten() for p in model.parameters()]).unique()
    assert len(values) == 1, "a mixture of two models"
    return values.item()


@pytest.fixture
def saved(tmp_path):
    save_model(model_of(1), tmp_path / "model")
    return tmp_path / "model"


@in_one_folder
@given(damages)
def test_damaged_weights_are_always_refused(saved, how):
    file = saved.with_suffix(".safetensors")
    good = file.read_bytes()
    try:
        file.write_bytes(damage(good, *how))
        with pytest.raises(CheckpointError, match=str(file)):
            load_model(saved)
    finally:
        file.write_bytes(good)


@in_one_folder
@given(damages)
def test_a_damaged_description_is_refused_or_describes_a_model(saved, how):
    """It is text to be read, and has no hash itself: a changed digit may go unnoticed, but nothing else happens."""
    file = saved.with_suffix(".json")
    good = file.read_bytes()
    try:
        file.write_bytes(damage(good, *how))
        assert value_of(load_model(saved)) == 1
        json.loads(file.read_bytes())
    except CheckpointError as error:
        assert str(saved) in str(error)
    finally:
        file.write_bytes(good)


@pytest.mark.parametrize("fails_at", range(4))
def test_a_model_half_saved_is_the_old_one_or_refused(saved, monkeypatch, fails_at):
    """Writing the description, the first renaming or the second fails; between the two the pair does not fit."""
    calls, replace, write_text = [], Path.replace, Path.write_text

    def failing(call):
        def fail(*args, **kwargs):
            calls.append(call)
            if len(calls) == fails_at + 1:
                raise OSError("disk full")
            return call(*args, **kwargs)

        return fail

    monkeypatch.setattr(Path, "replace", failing(replace))
    monkeypatch.setattr(Path, "write_text", failing(write_text))
    if fails_at < 3:
        with pytest.raises(OSError, match="disk full"):
            save_model(model_of(2), saved)
    else:
        save_model(model_of(2), saved)
    monkeypatch.undo()
    if fails_at == 2:
        with pytest.raises(CheckpointError, match="sha256"):
            load_model(saved)
    else:
        assert value_of(load_model(saved)) == (2 if fails_at == 3 else 1)


def _save_models_for_ever(path):
    for value in range(2, 10**9):
        save_model(model_of(value), path)


def kill_in_the_middle(work, *args, seed):
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    time.sleep(np.random.default_rng(seed).uniform(0.005, 0.06))
    process.kill()
    process.join()


@forks
def test_a_model_killed_while_it_is_saved_is_whole_or_refused(saved):
    for seed in range(10):
        kill_in_the_middle(_save_models_for_ever, saved, seed=seed)
        try:
            assert value_of(load_model(saved)) >= 1
        except CheckpointError as error:
            assert "sha256" in str(error)
            save_model(model_of(1), saved)


# The checkpoint that training resumes from


@pytest.fixture(scope="module")
def make_run(tmp_path_factory):
    train = pytest.importorskip("eswm_gym.world_model.train", exc_type=ImportError)

    def make(folder, name="tiny"):
        fabric = train.fabric_for("cpu", "32-true", folder)
        fabric.launch()
        return train.Run(name, fabric, folder, compiled=False)

    return make


@pytest.fixture
def run(make_run, tmp_path):
    run = make_run(tmp_path)
    run.train(steps=2)
    return run


def weights(run) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in run.model.parameters()])


@in_one_folder
@given(damages)
def test_a_damaged_checkpoint_is_refused(run, how):
    """Or was damaged where it does not matter, in what the archive holds besides its entries."""
    good, before = run.checkpoint.read_bytes(), weights(run)
    try:
        run.checkpoint.write_bytes(damage(good, *how))
        run.resume()
    except Exception:
        assert torch.equal(weights(run), before) or how[0] is False
    else:
        assert run.step == 2
    finally:
        run.checkpoint.write_bytes(good)
        run.resume()
        assert torch.equal(weights(run), before)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("write", [torch.save, lambda bomb, file: file.write_bytes(pickle.dumps(bomb))])
def test_a_pickle_in_a_checkpoint_is_never_run(run, tmp_path, write):
    write({"name": "tiny", "seed": Bomb(str(tmp_path / "exploded"))}, run.checkpoint)
    with pytest.raises(pickle.UnpicklingError):
        run.resume()
    assert not (tmp_path / "exploded").exists()


def test_the_checkpoint_of_another_architecture(run):
    state = torch.load(run.checkpoint, weights_only=True)
    state["model"].popitem()
    torch.save(state, run.checkpoint)
    with pytest.raises(RuntimeError, match="Missing key"):
        run.resume()


@pytest.mark.parametrize("where", ["save", "replace"])
def test_a_checkpoint_that_cannot_be_written_leaves_the_old_one(run, monkeypatch, where):
    good = run.checkpoint.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(*((torch, "save", fail) if where == "save" else (Path, "replace", fail)))
    run.step = 7
    with pytest.raises(OSError, match="disk full"):
        run.save()
    assert run.checkpoint.read_bytes() == good


def _save_checkpoints_for_ever(run):
    for run.step in range(3, 10**9):
        with torch.no_grad():
            for parameter in run.model.parameters():
                parameter.fill_(run.step)
        run.save()


@forks
def test_a_run_killed_while_it_saves_goes_on_from_a_whole_checkpoint(run, make_run):
    for seed in range(10):
        kill_in_the_middle(_save_checkpoints_for_ever, run, seed=seed)
        resumed = make_run(run.out)
        resumed.resume()
        assert resumed.step == 2 or (weights(resumed) == resumed.step).all()
    assert resumed.step > 2, "it was never killed after it had saved"
    assert resumed.train(steps=resumed.step + 1)
