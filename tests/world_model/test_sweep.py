"""A sweep trains each preset with each seed once, goes on where it was interrupted, and adds up what was found."""

import json
import sys
from types import SimpleNamespace

import pytest

from eswm_gym.world_model import sweep
from eswm_gym.world_model.pretrained import CheckpointError, read_info

QUICK = ["--", "--device", "cpu", "--precision", "32-true", "--no-compile", "--eval-rooms", "10"]


class StubRay:
    """Runs tasks at once, in this process."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self):
        self.given = []

    def init(self, address, **options):
        self.given.append((address, options))

    def shutdown(self):
        self.given.append("shutdown")

    def remote(self, **options):
        self.given.append(options)

        def task(function):
            def submit(*args):
                try:
                    result = function(*args)
                except RuntimeError as error:
                    result = error
                return f"task {id(args)}", result

            return SimpleNamespace(remote=submit)

        return task

    def wait(self, tasks):
        return tasks[-1:], tasks[:-1]  # whichever is done first

    def get(self, task):
        if isinstance(task[1], Exception):
            raise task[1]
        return task[1]


@pytest.fixture
def trainings(monkeypatch):
    """Trials train in this process; gives the list of those that did, as the training's arguments."""
    train = pytest.importorskip("eswm_gym.world_model.train", exc_type=ImportError)
    done = []

    def in_process(arguments, log):
        assert list(arguments[:2]) == ["-m", "eswm_gym.world_model.train"]
        done.append(list(arguments[2:]))
        log.parent.mkdir(parents=True, exist_ok=True)
        train.main(list(arguments[2:]))
        return 0

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray", StubRay())
    monkeypatch.setattr(sweep, "run_trial", in_process)
    return done


def test_every_trial_is_trained_once_and_more_if_there_is_more_time(trainings, tmp_path, capsys):
    argv = ["tiny", "--seeds", "0", "3", "--out", str(tmp_path)]
    sweep.main([*argv, "--steps", "2", *QUICK])
    assert sys.modules["ray"].given == [
        ("local", {"log_to_driver": False, "include_dashboard": False}),
        {"num_cpus": 1, "num_gpus": 0, "max_retries": 0},
        "shutdown",
    ]
    found = {seed: read_info(tmp_path / "tiny" / f"seed-{seed}" / "tiny") for seed in (0, 3)}
    assert [(i["training"]["seed"], i["training"]["steps"]) for i in found.values()] == [(0, 2), (3, 2)]
    losses = [info["metrics"]["random-wall-7"]["loss"] for info in found.values()]
    told = json.loads((tmp_path / "summary.json").read_text())["tiny"]
    assert told["seeds"] == [0, 3]
    assert told["metrics"]["random-wall-7"]["loss"]["mean"] == pytest.approx(sum(losses) / 2)
    assert told["metrics"]["random-wall-7"]["loss"]["std"] == pytest.approx(abs(losses[0] - losses[1]) / 2**0.5)

    sweep.main([*argv, "--steps", "2", *QUICK])
    assert len(trainings) == 2 and "2 trials, 2 of them finished before" in capsys.readouterr().out
    sweep.main(["tiny", "--seeds", "3", "--out", str(tmp_path), "--steps", "4", *QUICK])
    assert len(trainings) == 3 and "--resume" in trainings[2] and "--resume" not in trainings[0] + trainings[1]
    assert read_info(tmp_path / "tiny" / "seed-3" / "tiny")["training"]["steps"] == 4


def test_what_fails_does_not_stop_the_others(trainings, tmp_path, monkeypatch, capsys):
    def fails(arguments, log):
        if log.parent.name == "seed-1":
            raise RuntimeError("node died")
        return 1 if log.parent.name == "seed-2" else trained(arguments, log)

    trained = sweep.run_trial
    monkeypatch.setattr(sweep, "run_trial", fails)
    with pytest.raises(SystemExit, match="2 trials failed: .*seed-2.*seed-1"):
        sweep.main(["tiny", "--seeds", "0", "1", "2", "--out", str(tmp_path), "--steps", "1", *QUICK])
    assert "seed-1: failed (node died)" in capsys.readouterr().out
    told = json.loads((tmp_path / "summary.json").read_text())["tiny"]
    assert told["seeds"] == [0] and told["metrics"]["random-wall-7"]["loss"]["std"] is None


def test_a_process_of_its_own_and_its_output(tmp_path):
    log = tmp_path / "deep" / "log"
    code = "import os, sys; print(os.environ['MALLOC_TOP_PAD_']); print('oops', file=sys.stderr); sys.exit(3)"
    assert sweep.run_trial(["-c", code], log) == 3
    assert sweep.run_trial(["-c", "print('again')"], log) == 0
    assert sorted(log.read_text().split()) == ["500000000", "again", "oops"]


def test_summary_by_hand(tmp_path):
    for seed, accuracy in ((0, 0.2), (1, 0.4), (2, 0.9)):
        folder = tmp_path / "tiny" / f"seed-{seed}"
        folder.mkdir(parents=True)
        metrics = {"room": {"accuracy/unseen/end": accuracy, "n/unseen/end": 48}}
        (folder / "tiny.json").write_text(json.dumps({"metrics": metrics}))
    told = sweep.summarize(tmp_path, ["tiny", "rw-t"], [0, 1, 2, 3])
    expected = {"mean": pytest.approx(0.5), "std": pytest.approx(0.36055513)}  # (.09 + .01 + .16) / 2, its root
    assert told == {
        "tiny": {"seeds": [0, 1, 2], "metrics": {"room": {"accuracy/unseen/end": expected}}},
        "rw-t": {"seeds": [], "metrics": {}},
    }
    line = sweep.table(told).splitlines()[1].split()
    assert line == ["tiny", "room", "accuracy/unseen/end", "0.5000", "0.3606", "3"]
    (folder / "tiny.json").write_text("{")
    with pytest.raises(CheckpointError, match="tiny.json"):
        sweep.summarize(tmp_path, ["tiny"], [2])


@pytest.mark.parametrize(
    ("training", "steps", "minutes", "finished"),
    [
        ({"steps": 10, "hours": 0.0}, 10, 60, True),
        ({"steps": 9, "hours": 5.0}, 10, 60, False),
        ({"steps": 9, "hours": 1.0}, None, 60, True),
        ({"steps": 9, "hours": 0.017}, None, 1, True),  # a minute
        ({"steps": 9, "hours": 0.983}, None, 60, False),
    ],
)
def test_when_a_trial_is_finished(training, steps, minutes, finished):
    assert sweep.is_finished({"training": training}, steps, minutes) is finished
    assert not sweep.is_finished(None, steps, minutes)


def test_without_ray_it_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit, match=r"pip install 'eswm-gym\[ray\]'"):
        sweep.main(["tiny", "--out", str(tmp_path)])


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["tiny"], "--out"),
        (["nosuch", "--out", "x"], "nosuch"),
        (["tiny", "--out", "x", "--seeds", "-1"], "--seeds"),
        (["tiny", "--out", "x", "--seeds", "1", "1"], "--seeds"),
        (["tiny", "--out", "x", "--minutes", "nan"], "--minutes"),
        (["tiny", "--out", "x", "--steps", "0"], "--steps"),
        (["tiny", "--out", "x", "--steps", "1", "--minutes", "1"], "not allowed with"),
        (["tiny", "--out", "x", "--cpus", "0"], "--cpus"),
    ],
)
def test_wrong_arguments_are_refused(argv, named, capsys):
    with pytest.raises(SystemExit) as caught:
        sweep.parse_args(argv)
    assert caught.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]


def test_on_ray_itself(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    pytest.importorskip("lightning")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    sweep.main(["tiny", "--seeds", "0", "1", "--steps", "3", "--out", str(tmp_path), *QUICK])
    assert json.loads((tmp_path / "summary.json").read_text())["tiny"]["seeds"] == [0, 1]
    assert "saved" in (tmp_path / "tiny" / "seed-1" / "train.log").read_text()
