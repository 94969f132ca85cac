"""Checkpoints that are damaged, foreign or half written: refused, never run, and the last good one is never lost."""

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

from eswm_gym.world_model import CheckpointError, Transformer, TransformerConfig, load_model, pretrained, save_model
from eswm_gym.world_model.pretrained import read_info

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
    save_model(model_of(1), tmp_path / "model", value=1)
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
    """It says what it said: damage that goes unnoticed is in white space or in the name of its hash."""
    file = saved.with_suffix(".json")
    good, said = file.read_bytes(), read_info(saved)
    try:
        file.write_bytes(damage(good, *how))
        assert value_of(load_model(saved)) == 1
        assert read_info(saved).items() >= said.items()
    except CheckpointError as error:
        assert str(saved) in str(error)
    finally:
        file.write_bytes(good)


@pytest.mark.parametrize("fails_at", range(4))
def test_a_model_half_saved_is_the_old_one_or_the_new_one(saved, monkeypatch, fails_at):
    """Writing the description, the first renaming or the second fails; after the first it is the new one."""
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
            save_model(model_of(2), saved, value=2)
    else:
        save_model(model_of(2), saved, value=2)
    monkeypatch.undo()
    value = 1 if fails_at < 2 else 2
    assert value_of(load_model(saved)) == read_info(saved)["value"] == value
    with monkeypatch.context() as patch:  # the next call, killed before it renames the weights, loses nothing
        patch.setattr(pretrained, "_write_json", lambda path, info: path.write_text("{") and 1 / 0)
        with pytest.raises(ZeroDivisionError):
            save_model(model_of(3), saved, value=3)
    assert value_of(load_model(saved)) == read_info(saved)["value"] == value


def _save_models_for_ever(path):
    for value in range(2, 10**9):
        save_model(model_of(value), path, value=value)


def kill_in_the_middle(work, *args, seed):
    process = multiprocessing.get_context("fork").Process(target=work, args=args)
    process.start()
    time.sleep(np.random.default_rng(seed).uniform(0.005, 0.2))
    process.kill()
    process.join()


@forks
def test_a_model_killed_while_it_is_saved_is_whole(saved):
    for seed in range(10):
        kill_in_the_middle(_save_models_for_ever, saved, seed=seed)
        assert value_of(load_model(saved)) == read_info(saved)["value"]


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
    except CheckpointError as error:
        assert str(run.checkpoint) in str(error)
    finally:
        assert torch.equal(weights(run), before) and run.step == 2
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
    with pytest.raises(CheckpointError, match=str(run.checkpoint)):
        run.resume()
    assert not (tmp_path / "exploded").exists()


def test_the_checkpoint_of_another_architecture_loads_nothing(run):
    before, state = weights(run), torch.load(run.checkpoint, weights_only=True)
    for value in state["model"].values():
        value.fill_(7)
    last = state["model"].popitem()
    torch.save(state, run.checkpoint)
    with pytest.raises(CheckpointError, match="Missing key"):
        run.resume()
    state["model"].update([last])
    state["optimizers"].pop()
    torch.save(state, run.checkpoint)
    with pytest.raises(CheckpointError, match="does not fit preset 'tiny'"):
        run.resume()
    del state["step"]
    torch.save(state, run.checkpoint)
    with pytest.raises(CheckpointError, match="step"):
        run.resume()
    assert torch.equal(weights(run), before)


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
