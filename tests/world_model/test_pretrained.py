"""A model that was saved comes back as it was, frozen; anything else is refused with the reason."""

import hashlib
import json
import multiprocessing
import os
import pickle
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from eswm_gym.world_model import (
    CheckpointError,
    ModelConfig,
    Transformer,
    TransformerConfig,
    ViewModel,
    available,
    load_model,
    load_pretrained,
    pretrained,
    save_model,
)
from eswm_gym.world_model.pretrained import model_info, read_info

CONFIG = TransformerConfig(n_states=9, dim=8, layers=2, heads=2, loops=2, query_attention="joint")
BANK = torch.tensor([[[0, 1, 2], [2, 3, 4], [-1, -1, -1]]])
QUERY = torch.tensor([[[0, 1, -1], [-1, 1, 2], [3, -1, 4]]])


def fresh(config=CONFIG, seed=0) -> Transformer:
    torch.manual_seed(seed)
    model = Transformer(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.5)
    return model


@pytest.fixture
def saved(tmp_path):
    """The path of a good model; NAME.json and NAME.safetensors lie there."""
    save_model(fresh(), tmp_path / "model", metrics={"loss": 0.5}, note="größer")
    return tmp_path / "model.safetensors"


def test_round_trip(saved):
    """Bit for bit the same weights, and so the same answers."""
    before, after = fresh().eval(), load_model(saved)
    assert type(after) is Transformer and after.config == CONFIG
    assert before.state_dict().keys() == after.state_dict().keys()
    assert all(torch.equal(before.state_dict()[key], value) for key, value in after.state_dict().items())
    for mine, loaded in zip(before(BANK, QUERY), after(BANK, QUERY), strict=True):
        torch.testing.assert_close(mine, loaded)


def test_a_loaded_model_is_frozen(saved):
    model = load_model(saved)
    assert not any(module.training for module in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not any(head.requires_grad for head in model(BANK, QUERY))


def test_the_description_tells_what_the_model_is(saved):
    info = json.loads(saved.with_suffix(".json").read_text())
    assert info["architecture"] == "transformer" and info["config"] == CONFIG.to_dict()
    assert info["sha256"] == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert info["metrics"] == {"loss": 0.5} and info["note"] == "größer"


@pytest.mark.parametrize("suffix", ["", ".safetensors", ".json"])
def test_a_path_may_have_a_suffix_or_none(tmp_path, suffix):
    path = tmp_path / "deep" / f"model{suffix}"  # folders are made
    save_model(fresh(), path)
    assert {file.name for file in path.parent.iterdir()} == {"model.safetensors", "model.json"}
    assert load_model(str(path)).config == CONFIG


def test_a_dot_in_a_name_is_no_suffix(tmp_path):
    for seed, name in enumerate(["v1.0", "v1.1"]):
        save_model(fresh(seed=seed), tmp_path / name)
    for seed, name in enumerate(["v1.0", "v1.1"]):
        expected = fresh(seed=seed).state_dict()
        found = load_model(tmp_path / name).state_dict()
        assert all(torch.equal(expected[key], value) for key, value in found.items())


def test_any_precision_is_written_as_float32(tmp_path):
    save_model(fresh().to(torch.bfloat16), tmp_path / "model")
    assert {value.dtype for value in load_file(tmp_path / "model.safetensors").values()} == {torch.float32}
    loaded, expected = load_model(tmp_path / "model").state_dict(), fresh().to(torch.bfloat16).state_dict()
    assert all(torch.equal(loaded[key], value.float()) for key, value in expected.items())


def test_a_model_in_half_precision_takes_half_the_room_and_is_loaded_in_full(tmp_path, saved):
    save_model(fresh(), tmp_path / "half", torch.float16)
    sizes = [path.with_suffix(".safetensors").stat().st_size for path in (tmp_path / "half", saved)]
    saves = 2 * sum(value.numel() for value in fresh().state_dict().values())
    assert sizes[1] - sizes[0] == pytest.approx(saves, abs=64)
    loaded, expected = load_model(tmp_path / "half").state_dict(), fresh().state_dict()
    for key, value in expected.items():
        assert loaded[key].dtype == torch.float32
        torch.testing.assert_close(loaded[key], value, rtol=2**-11, atol=1e-7)


def test_saving_over_a_model_replaces_it(saved):
    other = fresh(seed=1)
    save_model(other, saved)
    assert torch.equal(load_model(saved).action_head.weight, other.action_head.weight)


def test_a_save_that_fails_leaves_the_old_model(saved, monkeypatch):
    write_bytes = Path.write_bytes

    def half_written(path, content):
        write_bytes(path, content[:100])
        raise OSError("disk full")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="disk full"):
        patch.setattr(Path, "write_bytes", half_written)
        save_model(fresh(seed=1), saved)
    assert sorted(file.name for file in saved.parent.iterdir()) == ["model.json", "model.safetensors"]
    assert torch.equal(load_model(saved).action_head.weight, fresh().action_head.weight)


@pytest.mark.skipif(os.name != "posix", reason="asks for permissions")
def test_others_may_read_a_model_if_the_umask_lets_them(tmp_path):
    before = os.umask(0o022)
    try:
        save_model(fresh(), tmp_path / "model")
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o644}


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_missing_file(saved, suffix):
    missing = saved.with_suffix(suffix)
    missing.unlink()
    with pytest.raises(FileNotFoundError, match=str(missing)):
        load_model(saved)


def test_one_changed_byte(saved):
    data = bytearray(saved.read_bytes())
    data[-1] ^= 1
    saved.write_bytes(data)
    expected = json.loads(saved.with_suffix(".json").read_text())["sha256"]
    with pytest.raises(CheckpointError) as caught:
        load_model(saved)
    for part in (str(saved), expected, hashlib.sha256(data).hexdigest()):
        assert part in str(caught.value)


@pytest.mark.parametrize("size", [0, 4, 100, -4])
@pytest.mark.parametrize("sha256_fits", [False, True])
def test_truncated_weights(saved, size, sha256_fits, describe):
    saved.write_bytes(saved.read_bytes()[:size])
    if sha256_fits:
        describe(saved)
    with pytest.raises(CheckpointError, match=str(saved)):
        load_model(saved)


@pytest.mark.parametrize(
    "config",
    [
        TransformerConfig(n_states=9, dim=16, layers=2, heads=2),  # other shapes
        TransformerConfig(n_states=9, dim=8, layers=3, heads=2),  # more of them
        TransformerConfig(n_states=9, dim=8, layers=1, heads=2),  # fewer
        TransformerConfig(n_states=9, dim=8, layers=2, heads=2, readout="classes"),  # another read-out
    ],
)
def test_weights_of_another_model(saved, config, describe):
    save_file({key: value.contiguous() for key, value in fresh(config).state_dict().items()}, saved)
    with pytest.raises(CheckpointError, match="sha256"):
        load_model(saved)
    describe(saved)
    with pytest.raises(CheckpointError, match=f"{saved} does not fit its JSON"):
        load_model(saved)


def test_weights_of_something_else_altogether(saved, describe):
    save_file({"linear.weight": torch.zeros(3, 3)}, saved)
    describe(saved)
    with pytest.raises(CheckpointError, match="linear.weight"):
        load_model(saved)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_pickle_is_refused_and_never_run(saved, tmp_path, describe):
    saved.write_bytes(pickle.dumps(Bomb(str(tmp_path / "exploded"))))
    describe(saved)
    with pytest.raises(CheckpointError, match=str(saved)):
        load_model(saved)
    torch.save(fresh().state_dict(), saved)
    describe(saved)
    with pytest.raises(CheckpointError, match=str(saved)):
        load_model(saved)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe\x00", b"not JSON", b"[]", b"3", b"null", b'"model"', b"{}"])
def test_garbage_for_a_description(saved, text):
    saved.with_suffix(".json").write_bytes(text)
    with pytest.raises(CheckpointError, match=str(saved.with_suffix(".json"))):
        load_model(saved)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"architecture": None}, "architecture"),
        ({"architecture": "rnn"}, "rnn"),
        ({"architecture": ["transformer"]}, "list"),
        ({"config": None}, "config"),
        ({"config": [1, 2]}, "list"),
        ({"config": {"dim": 8, "depth": 3}}, "depth"),
        ({"config": {"dim": 10, "heads": 4}}, "dim 10"),
        ({"config": {"dim": "wide"}}, "str"),
        ({"config": {"n_states": -5}}, "negative dimension"),
        ({"config": {"heads": 0}}, "zero"),
        ({"sha256": None}, "sha256"),
    ],
)
def test_a_description_that_does_not_describe_a_model(saved, changes, named, describe):
    describe(saved, **changes)
    with pytest.raises(CheckpointError) as caught:
        load_model(saved)
    assert str(saved.with_suffix(".json")) in str(caught.value) and named in str(caught.value)


def test_a_description_has_a_hash_of_its_own_which_one_written_by_hand_may_lack(saved):
    file = saved.with_suffix(".json")
    written = file.read_text()
    file.write_text(written.replace("0.5", "0.6"))
    with pytest.raises(CheckpointError, match=f"{file} is damaged"):
        load_model(saved)
    described = json.loads(written)
    del described["checksum"]
    file.write_text(json.dumps(described))
    assert load_model(saved).config == CONFIG and pretrained.read_info(saved) == described
    pretrained.write_info(saved, described | {"latent_radius": 2.0})
    assert load_model(saved).latent_radius == 2.0 and "checksum" in file.read_text()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_neither_saved_nor_loaded(saved, value, describe):
    model = fresh(seed=1)
    with torch.no_grad():
        model.action_head.weight[0, 0] = value
    with pytest.raises(ValueError, match="action_head.weight has weights that are not finite"):
        save_model(model, saved)
    assert torch.equal(load_model(saved).action_head.weight, fresh().action_head.weight)
    save_file({key: weight.contiguous() for key, weight in model.state_dict().items()}, saved)
    describe(saved)
    with pytest.raises(CheckpointError, match=f"{saved}: action_head.weight"):
        load_model(saved)


def test_errors_are_value_errors():
    """So that code which only knows built-in exceptions can catch them."""
    assert issubclass(CheckpointError, ValueError)


@pytest.fixture
def shipped(saved, monkeypatch):
    """A package that comes with two models, `model` and `other`."""
    save_model(fresh(seed=1), saved.with_name("other"))
    monkeypatch.setattr(pretrained, "WEIGHTS", saved.parent)


def test_models_that_come_with_the_package(shipped):
    assert available() == ["model", "other"]
    assert torch.equal(load_pretrained("other").action_head.weight, fresh(seed=1).action_head.weight)
    assert model_info("model")["metrics"] == {"loss": 0.5}


@pytest.mark.parametrize("name", ["nosuch", "", "../model", "model.safetensors"])
def test_unknown_name(shipped, name):
    with pytest.raises(ValueError) as caught:
        load_pretrained(name)
    assert repr(name) in str(caught.value) and "model, other" in str(caught.value)


def test_unknown_name_when_there_are_no_models(tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "WEIGHTS", tmp_path)
    with pytest.raises(ValueError, match="no pretrained model 'random-wall'; there are none"):
        load_pretrained("random-wall")


@pytest.mark.parametrize("name", available())
def test_every_shipped_model_loads_without_a_network(name, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    model, info = load_pretrained(name), model_info(name)
    assert model.config == type(model.config)(**info["config"])
    assert info["metrics"] and info["training"]["preset"] == name
    assert not any(parameter.requires_grad for parameter in model.parameters()) and not model.training
    if isinstance(model, ViewModel):
        view = torch.full((1, 1, 25), 2)  # nothing but plain floor
        left = torch.cat([view, torch.zeros(1, 1, 1, dtype=torch.int64), torch.full((1, 1, 25), -1)], 2)
        knows_nothing = model(torch.full((1, 1, 51), -1), left).unknown[0, 0, 1] > 0
    else:
        empty = model(torch.full((1, 1, 3), -1), torch.tensor([[[0, 0, -1]]]))
        knows_nothing = empty.end.argmax() == model.config.n_states
    assert knows_nothing
    files = [pretrained.WEIGHTS / f"{name}{suffix}" for suffix in (".safetensors", ".json")]
    assert sum(file.stat().st_size for file in files) <= 16 * 2**20


def test_a_compiled_model_is_saved_as_what_it_is(tmp_path):
    model = Transformer(TransformerConfig(n_states=7, dim=16, layers=1, heads=2))
    save_model(torch.compile(model), tmp_path / "compiled")
    assert load_model(tmp_path / "compiled").config == model.config


def test_a_model_of_no_known_architecture_is_named(tmp_path):
    class Mine(Transformer):
        """Not in ARCHITECTURES."""

    with pytest.raises(ValueError, match="no architecture in ARCHITECTURES is a Mine"):
        save_model(Mine(TransformerConfig(n_states=7, dim=16, layers=1, heads=2)), tmp_path / "mine")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="no architecture in ARCHITECTURES has a ModelConfig"):
        pretrained.build_model(ModelConfig())


# Several writers, and JSON that says what it should not


@pytest.mark.skipif(os.name != "posix", reason="forks")
def test_processes_that_save_to_one_path_leave_one_of_their_models(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_save_often, args=(tmp_path / "model", seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    found = load_model(tmp_path / "model").state_dict()
    models = [fresh(seed=seed).state_dict() for seed in range(3)]
    assert any(all(torch.equal(found[name], value) for name, value in model.items()) for model in models)
    assert read_info(tmp_path / "model")["seed"] in range(3)


def _save_often(path, seed):
    model = fresh(seed=seed)
    for _ in range(20):
        save_model(model, path, seed=seed)


def test_a_model_of_another_version_is_refused(saved, describe):
    describe(saved, version=2)
    with pytest.raises(CheckpointError, match="version 2.*version 1"):
        load_model(saved)


@pytest.mark.parametrize("radius", ["x", -3, 0, True, float("nan"), float("inf")])
def test_a_latent_radius_that_is_none_is_refused_at_once(saved, describe, radius):
    describe(saved, latent_radius=radius)
    with pytest.raises(CheckpointError, match=r"latent_radius must be a number greater than 0"):
        load_model(saved)


def test_a_folder_in_place_of_a_model_is_named_with_the_models_in_it(saved):
    with pytest.raises(CheckpointError, match=r"is a folder.*model\.safetensors"):
        load_model(saved.parent)


def test_nan_is_never_written(tmp_path):
    save_model(fresh(), tmp_path / "model", metrics={"loss": float("nan"), "worst": [float("inf"), 1.5]})
    assert "NaN" not in (tmp_path / "model.json").read_text()
    assert read_info(tmp_path / "model")["metrics"] == {"loss": None, "worst": [None, 1.5]}
