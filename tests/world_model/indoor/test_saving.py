"""Models of camera views come back as they were saved, and files that are anything else are refused."""

import json
import os
import stat

import pytest
import torch
from safetensors.torch import load_file, save_file

from eswm_gym.files import CheckpointError
from eswm_gym.world_model import Transformer, TransformerConfig, save_model
from eswm_gym.world_model.indoor import IndoorConfig, IndoorModel, Memories, load_indoor, save_indoor

CONFIG = IndoorConfig("stand-in", (12,), 8, 32)


def model_of(config=CONFIG, seed=0):
    torch.manual_seed(seed)
    model = IndoorModel(config).eval()
    model.reduction.directions.normal_()
    return model


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "some.name.safetensors"
    save_indoor(model_of(), path, {"seed": 0, "steps": {"poses": 3}})
    return path


def test_round_trip(saved):
    """To the eleven bits of float16."""
    model, loaded = model_of(), load_indoor(saved)
    assert type(loaded) is IndoorModel and loaded.config == CONFIG
    for name, value in model.state_dict().items():
        found = loaded.state_dict()[name]
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, value, rtol=2**-11, atol=2**-24)
    info = json.loads(saved.with_suffix(".json").read_text())
    assert info["training"] == {"seed": 0, "steps": {"poses": 3}} and info["architecture"] == "indoor"
    assert all(value.dtype == torch.float16 for value in load_file(saved).values())


def test_a_loaded_model_answers_as_the_one_that_was_saved(saved):
    torch.manual_seed(1)
    views, actions = torch.randn(6, 16, 8), torch.randn(4, 3)
    answers = []
    for model in (model_of(), load_indoor(saved)):
        bank = model.encode(Memories(views[:4], actions, views[1:5]))
        found, unknown = model.action_between(bank, views, views.flip(0))
        answers += [(found.best(), unknown, *model.view_after(bank, views, torch.ones(6, 3)))]
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, atol=0.05, rtol=0.05)


def test_a_loaded_model_is_frozen(saved):
    loaded = load_indoor(saved)
    assert not loaded.training and not any(p.requires_grad for p in loaded.parameters())
    bank = loaded.encode(Memories(torch.randn(2, 16, 8), torch.ones(2, 3), torch.randn(2, 16, 8)))
    found, unknown = loaded.action_between(bank, bank.tokens, bank.tokens.flip(0))
    assert not found.mean.requires_grad and not unknown.requires_grad


def test_saved_anew_it_is_the_same_file(saved, tmp_path):
    save_indoor(load_indoor(saved), tmp_path / "again.safetensors", {})
    assert (tmp_path / "again.safetensors").read_bytes() == saved.read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="file permissions")
def test_others_may_read_it(saved):
    before = os.umask(0o022)
    os.umask(before)
    for file in (saved, saved.with_suffix(".json")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~before


def test_missing_files(saved):
    with pytest.raises(FileNotFoundError):
        load_indoor(saved.with_name("other.safetensors"))
    saved.unlink()
    with pytest.raises(FileNotFoundError, match="some.name.safetensors"):
        load_indoor(saved)


def test_damaged_files_are_refused(saved, describe):
    whole = saved.read_bytes()
    for damaged in (
        whole[:-10],
        whole[:1000],
        b"",
        bytes([whole[0] ^ 1]) + whole[1:],
        whole[:-1] + bytes([whole[-1] ^ 1]),
    ):
        saved.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged or replaced"):
            load_indoor(saved)
    saved.write_bytes(whole[:1000])
    describe(saved)  # the hash is right, and the weights are not whole all the same
    with pytest.raises(CheckpointError):
        load_indoor(saved)
    saved.write_bytes(whole)
    describe(saved)
    load_indoor(saved)
    for text in ("", "{", "[1]", '{"architecture": "indoor", "version": 1}'):
        saved.with_suffix(".json").write_text(text)
        with pytest.raises(CheckpointError):
            load_indoor(saved)


def test_foreign_files_are_refused(saved, tmp_path, describe):
    save_model(Transformer(TransformerConfig(n_states=7, dim=16, layers=1, heads=2)), tmp_path / "rooms")
    with pytest.raises(CheckpointError, match="no model of camera views, but of 'transformer'"):
        load_indoor(tmp_path / "rooms.safetensors")
    save_file({"weight": torch.zeros(3)}, saved)
    describe(saved)
    with pytest.raises(CheckpointError, match="does not fit its JSON"):
        load_indoor(saved)


def test_weights_of_another_model_are_refused(saved, tmp_path):
    other = tmp_path / "other.safetensors"
    save_indoor(model_of(seed=1), other, {})
    saved.write_bytes(other.read_bytes())
    with pytest.raises(CheckpointError, match="damaged or replaced"):
        load_indoor(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {"encoder": "stand-in", "groups": [12], "kept": 8, "dim": 64}}, "does not fit its JSON"),
        ({"config": {"encoder": "stand-in", "groups": [12, 6], "kept": 8, "dim": 32}}, "does not fit its JSON"),
        ({"config": {"encoder": "stand-in", "groups": [12], "kept": 8, "dim": -1}}, "does not describe a model"),
        ({"config": {"encoder": "stand-in", "groups": [12], "kept": 8, "width": 32}}, "does not describe a model"),
        ({"config": {"encoder": "stand-in", "kept": 8, "dim": 32}}, "does not describe a model"),
        ({"config": 3}, "does not describe a model"),
        ({"config": None}, "does not describe a model"),
        ({"version": 2}, "version 2"),
        ({"architecture": None}, "no model of camera views"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(saved, describe, changes, message):
    describe(saved, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_indoor(saved)


@pytest.mark.parametrize("value", [float("nan"), 1e6])
def test_a_model_that_diverged_is_not_written(tmp_path, value):
    """Nor one whose weights are too large for the file."""
    model = model_of()
    with torch.no_grad():
        model.trust[0] = value
    with pytest.raises(ValueError, match="trust has weights that are not finite"):
        save_indoor(model, tmp_path / "model.safetensors", {})
    assert list(tmp_path.iterdir()) == []


def test_the_model_of_the_package():
    """It loads by its name, and reads the features of the encoder of the package."""
    try:
        model = load_indoor()
    except FileNotFoundError as error:
        pytest.skip(f"the weights of camera views are not here: {error}")
    assert model.config == IndoorConfig()
    assert model.reduction.directions.any()
