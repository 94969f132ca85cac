"""A policy that was saved comes back as it was, frozen; anything else is refused with the reason."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from eswm_gym.agents.baselines import A2CLSTMAgent, EPNAgent
from eswm_gym.agents.baselines.checkpoints import WEIGHTS, available, load_policy, save_policy
from eswm_gym.rooms import Room
from eswm_gym.world_model import CheckpointError

CONFIGS = {
    EPNAgent: {"n_states": 19, "torso": {"dim": 8, "heads": 2, "iterations": 2}, "hidden": 8},
    A2CLSTMAgent: {"room": Room(2, range(19)).to_dict(), "lstm": {"dim": 4, "hidden": 8}},
}


@pytest.fixture(params=CONFIGS, ids=lambda kind: kind.architecture)
def kind(request):
    return request.param


@pytest.fixture
def saved(kind, tmp_path):
    """The path of a good policy; NAME.json and NAME.safetensors lie there."""
    torch.manual_seed(0)
    config = CONFIGS[kind]
    save_policy(kind.build(config), tmp_path / "some.policy", kind.architecture, config, note="größer")
    return tmp_path / "some.policy.safetensors"


def test_round_trip(kind, saved):
    torch.manual_seed(0)
    before = kind.build(CONFIGS[kind])
    after, info = load_policy(saved, kind.architecture, kind.build)
    assert before.state_dict().keys() == after.state_dict().keys()
    assert all(torch.equal(before.state_dict()[key], value) for key, value in after.state_dict().items())
    assert not after.training and not any(parameter.requires_grad for parameter in after.parameters())
    assert info["note"] == "größer" and info["config"] == CONFIGS[kind]
    assert not list(saved.parent.glob("*.tmp"))


@pytest.mark.parametrize("suffix", ["", ".json", ".safetensors"])
def test_an_agent_comes_from_a_path_with_or_without_suffix(kind, saved, suffix):
    agent = kind.from_pretrained(saved.with_suffix(suffix), deterministic=False, seed=3)
    assert agent.config == CONFIGS[kind] and not agent.deterministic


def test_missing_files_are_named(kind, saved):
    with pytest.raises(FileNotFoundError, match="nothing"):
        kind.from_pretrained("nothing")
    saved.unlink()
    with pytest.raises(FileNotFoundError, match="some.policy.safetensors"):
        kind.from_pretrained(saved)


def test_damaged_weights_are_refused(kind, saved, describe):
    whole = saved.read_bytes()
    for damaged in (whole[:-1], b"", whole[:100] + b"\x00" + whole[101:]):
        saved.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="sha256"):
            kind.from_pretrained(saved)
    saved.write_bytes(b"no weights at all")
    describe(saved)
    with pytest.raises(CheckpointError, match="does not fit"):
        kind.from_pretrained(saved)


def test_weights_of_another_shape_are_refused(kind, saved, describe):
    state = load_file(saved)
    for change in ({"action_net.bias": torch.zeros(5)}, {"more": torch.zeros(1)}):
        save_file(state | change, saved)
        describe(saved)
        with pytest.raises(CheckpointError, match="does not fit"):
            kind.from_pretrained(saved)
    state.pop("action_net.bias")
    save_file(state, saved)
    describe(saved)
    with pytest.raises(CheckpointError, match="does not fit"):
        kind.from_pretrained(saved)


@pytest.mark.parametrize(
    "change", [{"architecture": "transformer"}, {"architecture": None}, {"config": {}}, {"config": 3}, {"sha256": None}]
)
def test_foreign_descriptions_are_refused(kind, saved, change, describe):
    describe(saved, **change)
    with pytest.raises(CheckpointError, match="does not describe a policy"):
        kind.from_pretrained(saved)


@pytest.mark.parametrize("text", ["", "[]", "{", "\udcff"])
def test_a_description_that_is_no_json_object_is_refused(kind, saved, text):
    saved.with_suffix(".json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CheckpointError):
        kind.from_pretrained(saved)


def test_the_policy_of_one_baseline_is_not_the_others():
    for kind, other in ((EPNAgent, "a2c-lstm"), (A2CLSTMAgent, "epn")):
        with pytest.raises(CheckpointError, match="architecture"):
            kind.from_pretrained(other)


@pytest.mark.parametrize("kind, settings", [(EPNAgent, 2), (A2CLSTMAgent, 1)])
def test_what_comes_with_the_package_says_where_it_is_from(kind, settings):
    assert available() == ["a2c-lstm", "epn"]
    _, info = load_policy(kind.architecture, kind.architecture, kind.build)
    assert len(info["metrics"]) == settings and all(found["success_rate"] > 0.8 for found in info["metrics"].values())
    assert info["training"].keys() >= {"seed", "steps", "episodes", "minutes", "cores", "core_hours"}
    card = (WEIGHTS / f"{kind.architecture}.md").read_text()
    for found in info["metrics"].values():
        assert f"{found['success_rate']:.3f} | {found['path_optimality']:.3f}" in card
