"""Each training script at a tiny size: it writes a policy, resumes, repeats itself, and survives being stopped."""

import json
import os
import signal

import numpy as np
import pytest
import torch

from eswm_gym.agents.baselines import A2CLSTMAgent, EPNAgent, train_a2c_lstm, train_epn
from eswm_gym.agents.baselines.training import Training

SCRIPTS = {
    "epn": (train_epn, EPNAgent, ["--n-envs", "2", "--eval-rooms", "1"], "--steps", (40, 100)),
    "a2c-lstm": (train_a2c_lstm, A2CLSTMAgent, [], "--episodes", (4, 8)),
}
pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")


@pytest.fixture(params=SCRIPTS)
def script(request, monkeypatch):
    """Name, agent, and a function that runs the script up to its first or its second budget."""
    module, agent, options, budget, sizes = SCRIPTS[request.param]
    monkeypatch.setattr(train_epn, "EPISODE_STEPS", 30)  # for the evaluation

    def run(out, size=0, *more):
        module.main(["--out", str(out), budget, str(sizes[size]), *options, *more])

    return request.param, agent, run


def weights(out):
    parameters = torch.load(out / "checkpoint.pt", weights_only=True)["parameters"]["policy"]
    return torch.cat([value.flatten() for value in parameters.values()])


def test_it_writes_a_policy_and_resumes(script, tmp_path, capsys):
    name, agent, run = script
    run(tmp_path)
    first = weights(tmp_path)
    assert "saved" in capsys.readouterr().out
    run(tmp_path, 1, "--resume")
    info = json.loads((tmp_path / f"{name}.json").read_text())
    assert info["architecture"] == name and set(info["metrics"]) <= {"random-wall-19", "random-wall-37"}
    assert info["training"]["episodes" if name == "a2c-lstm" else "steps"] >= 8
    assert info["training"]["core_hours"] >= 0 and info["training"]["seed"] == 0
    assert not torch.equal(first, weights(tmp_path))
    loaded = agent.from_pretrained(tmp_path / name)
    loaded.reset({"state": 1}, {})
    assert loaded.act({"state": 1, "goal": 2}, {}) in range(6)


def test_same_seed_same_weights_and_another_seed_others(script, tmp_path):
    _, _, run = script
    for i, seed in enumerate("001"):
        run(tmp_path / str(i), 0, "--seed", seed)
    assert torch.equal(weights(tmp_path / "0"), weights(tmp_path / "1"))
    assert not torch.equal(weights(tmp_path / "0"), weights(tmp_path / "2"))
    with pytest.raises(ValueError, match="of seed 1, not 0"):
        run(tmp_path / "2", 1, "--resume")
    with pytest.raises(FileNotFoundError):
        run(tmp_path / "nowhere", 1, "--resume")


def test_ctrl_c_leaves_a_checkpoint_to_resume_from(script, tmp_path, capsys, monkeypatch):
    name, _, run = script
    on_step = Training._on_step

    def interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        return on_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "_on_step", interrupted)
        run(tmp_path)
    assert "continue with --resume" in capsys.readouterr().out
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not (tmp_path / f"{name}.json").exists()
    run(tmp_path, 0, "--resume")
    assert (tmp_path / f"{name}.json").exists()


def test_plain_lines_and_checkpoints_on_the_way(tmp_path, capsys):
    train_a2c_lstm.main(["--out", str(tmp_path), "--episodes", "6", "--report-every", "0"])
    captured = capsys.readouterr()
    assert captured.out.count(" episodes ") > 1 and captured.err == ""


@pytest.mark.parametrize(
    "module, wrong",
    [(train_epn, w) for w in (["--minutes", "nan"], ["--steps", "0"], ["--n-envs", "0"], ["--seed", "-1"])]
    + [(train_a2c_lstm, w) for w in (["--episodes", "0"], ["--seed", "-1"])],
)
def test_impossible_budgets_are_refused(module, wrong):
    with pytest.raises(SystemExit):
        module.parse_args(wrong)


def test_only_the_goals_of_the_last_third_count():
    goal = {"success": True, "steps": 4, "shortest": 3, "began": 200}
    assert train_epn.late_goals({"goal_result": goal}, False) == {"success_rate": 1.0, "path_optimality": 0.75}
    assert train_epn.late_goals({"goal_result": {**goal, "success": False}}, False) == {"success_rate": 0.0}
    assert train_epn.late_goals({"goal_result": {**goal, "began": 199}}, False) is None
    assert train_epn.late_goals({}, True) is None
    assert train_a2c_lstm.arrived({"is_success": True}, False) is None
    assert train_a2c_lstm.arrived({"is_success": np.bool_(False)}, True) == {"success_rate": 0.0}
