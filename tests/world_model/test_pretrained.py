"""Saved models come back as they were, and nothing else passes for one."""

import json
import pickle

import pytest
import torch

from eswm_gym.world_model import (
    CheckpointError,
    Transformer,
    TransformerConfig,
    load_model,
    load_pretrained,
    save_model,
)
from eswm_gym.world_model.pretrained import available, model_info

SMALL = TransformerConfig(n_states=7, dim=16, layers=1, heads=2, state_embeddings=False)


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(0)
    model = Transformer(SMALL)
    save_model(model, tmp_path / "small", metrics={"loss": 1.0})
    return model, tmp_path / "small.safetensors"


def test_a_saved_model_comes_back_bit_by_bit_and_frozen(saved):
    model, path = saved
    loaded = load_model(path)
    assert loaded.config == SMALL
    assert not loaded.training
    assert not any(p.requires_grad for p in loaded.parameters())
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    assert not list(path.parent.glob("*.tmp"))
    assert json.loads(path.with_suffix(".json").read_text())["metrics"] == {"loss": 1.0}


def test_any_suffix_names_the_model(saved):
    _, path = saved
    assert load_model(path.with_suffix("")).config == load_model(path.with_suffix(".json")).config


def test_flipped_byte_is_noticed(saved):
    _, path = saved
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="sha256"):
        load_model(path)


@pytest.mark.parametrize("content", [b"", b"not a model", pickle.dumps({"weight": 1})])
def test_what_is_no_safetensors_file_is_refused_even_with_the_right_hash(saved, content):
    _, path = saved
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        load_model(path)
    _claim_hash(path)
    with pytest.raises(CheckpointError, match="does not fit"):
        load_model(path)


def test_weights_of_another_shape_are_refused(saved, tmp_path):
    _, path = saved
    save_model(Transformer(TransformerConfig(n_states=7, dim=32, layers=1, heads=2)), tmp_path / "other")
    path.write_bytes((tmp_path / "other.safetensors").read_bytes())
    _claim_hash(path)
    with pytest.raises(CheckpointError, match="does not fit"):
        load_model(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "{}", '{"architecture": "oracle", "config": {}, "sha256": ""}',
             '{"architecture": "transformer", "config": {"depth": 3}, "sha256": ""}',
             '{"architecture": "transformer", "config": {"dim": 7, "heads": 2}, "sha256": ""}']
)  # fmt: skip
def test_json_that_describes_no_model_is_refused(saved, text):
    _, path = saved
    path.with_suffix(".json").write_text(text)
    with pytest.raises(CheckpointError):
        load_model(path)


def test_missing_files_are_named(saved):
    _, path = saved
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(path.with_name("nowhere"))
    path.unlink()
    with pytest.raises(FileNotFoundError, match=path.name):
        load_model(path)


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'no-such-model'.*random-wall"):
        load_pretrained("no-such-model")


@pytest.mark.parametrize("name", available())
def test_shipped_models_load_and_say_how_good_they_are(name):
    model = load_pretrained(name)
    info = model_info(name)
    assert info["metrics"] and info["training"]["preset"] == name
    with torch.inference_mode():
        empty = model(torch.full((1, 1, 3), -1), torch.tensor([[[0, 0, -1]]]))
    assert empty.end.argmax().item() == model.config.n_states  # knows that it knows nothing


def _claim_hash(path):
    import hashlib

    info = json.loads(path.with_suffix(".json").read_text())
    info["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(info))
