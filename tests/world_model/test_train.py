"""Training learns, resumes exactly, and survives being stopped."""

import signal
import subprocess
import sys

import pytest
import torch

pytest.importorskip("lightning")

from eswm_gym.world_model import load_model  # noqa: E402
from eswm_gym.world_model.presets import PRESETS  # noqa: E402
from eswm_gym.world_model.train import FINAL_LR, Run, fabric_for, lr_scale, main, parse_args  # noqa: E402


def run_in(folder, seed=0, name="tiny"):
    fabric = fabric_for("cpu", "32-true", folder)
    fabric.launch()
    return Run(name, fabric, folder, seed, compiled=False)


def weights(run):
    return {name: value.clone() for name, value in run.model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_short_run_learns_and_writes_a_model(tmp_path, capsys):
    main(["tiny", "--steps", "500", "--no-compile", "--precision", "32-true", "--device", "cpu",
          "--out", str(tmp_path), "--eval-rooms", "100"])  # fmt: skip
    model = load_model(tmp_path / "tiny")
    import json

    metrics = json.loads((tmp_path / "tiny.json").read_text())["metrics"]["random-wall-7"]
    assert model.config == PRESETS["tiny"].model
    assert metrics["loss"] < 1.3  # untrained about 1.9
    assert metrics["validity/unseen/end"] > 0.35  # chance is one in seven
    assert "validity/unseen/end" in capsys.readouterr().out


def test_same_seed_same_weights_and_another_seed_others(tmp_path):
    runs = [run_in(tmp_path / str(i), seed) for i, seed in enumerate((1, 1, 2))]
    for run in runs:
        run.train(steps=5)
    assert same(weights(runs[0]), weights(runs[1]))
    assert not same(weights(runs[0]), weights(runs[2]))


def test_half_and_half_is_the_same_as_in_one_go(tmp_path):
    whole = run_in(tmp_path / "whole")
    whole.train(steps=8)

    first = run_in(tmp_path / "halves")
    step, taken = first._step, []

    def stop_after_four(*args):
        taken.append(1)
        if len(taken) == 4:
            signal.raise_signal(signal.SIGINT)
        return step(*args)

    first._step = stop_after_four
    assert first.train(steps=8) is False
    assert first.step == 4
    second = run_in(tmp_path / "halves")
    second.resume()
    assert second.train(steps=8) is True
    assert same(weights(whole), weights(second))


def test_a_half_written_checkpoint_never_replaces_a_good_one(tmp_path, monkeypatch):
    run = run_in(tmp_path)
    run.train(steps=2)
    good = run.checkpoint.read_bytes()

    def die(state, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", die)
    with pytest.raises(OSError, match="disk full"):
        run.save()
    assert run.checkpoint.read_bytes() == good


def test_resuming_something_else_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_in(tmp_path).resume()
    run_in(tmp_path).train(steps=1)
    with pytest.raises(ValueError, match="seed 0.*seed 1"):
        run_in(tmp_path, seed=1).resume()


def test_learning_rate_schedule():
    assert lr_scale(0, 0.0, 0.5) == pytest.approx(1 / 50)
    assert lr_scale(49, 0.2, 0.5) == lr_scale(1000, 0.5, 0.5) == 1
    assert lr_scale(1000, 0.75, 0.5) == pytest.approx(0.5)
    assert lr_scale(1000, 1.0, 0.5) == FINAL_LR


@pytest.mark.parametrize("argv", [["no-such-preset"], ["tiny", "--steps", "0"], ["tiny", "--minutes", "-1"],
                                  ["tiny", "--steps", "1", "--minutes", "1"]])  # fmt: skip
def test_wrong_arguments_are_refused(argv):
    with pytest.raises(SystemExit):
        parse_args(argv)


def test_training_needs_no_environment_library():
    code = """
import sys

for name in ("gymnasium", "minigrid", "stable_baselines3", "pygame"):
    sys.modules[name] = None  # as if it were not installed
import eswm_gym.world_model.train
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
