"""Training learns, goes on where it stopped, and survives being stopped; in houses whose views are random."""

import json
import signal
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from eswm_gym.runs import Interrupt
from eswm_gym.world_model.indoor import Reduction, load_indoor, train
from eswm_gym.world_model.indoor.data import Houses
from eswm_gym.world_model.indoor.model import IndoorConfig, Memories
from eswm_gym.world_model.indoor.train import IndoorRun, bank_of, main

CONFIG = IndoorConfig("stand-in", (200,), 192, 32)
NEVER = Interrupt()  # nobody asks it to stop


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    for name, value in {"HOUSES": 2, "N_PAIRS": 64, "N_GLANCES": 24, "N_QUERIES": 12}.items():
        monkeypatch.setattr(train, name, value)


@pytest.fixture
def run_in(pools_folder):
    def make(folder, seed=0):
        reduction = Reduction(CONFIG.groups, CONFIG.kept)
        return IndoorRun(Houses(pools_folder), reduction, folder, seed, compiled=False, config=CONFIG)

    return make


def weights(run):
    return {name: value.clone() for name, value in run.model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def command(pools, out, *more):
    main(["--pools", str(pools), "--out", str(out), "--no-compile", *more])


# The command


def test_the_command_writes_a_model_that_loads(pools_folder, tmp_path, capsys):
    command(pools_folder, tmp_path, "--steps", "2", "--seed", "3")
    said = capsys.readouterr().out
    assert "4 houses" in said and f"saved {tmp_path / 'indoor.safetensors'}" in said
    assert all(f"{part}  step      2" in said for part in train.PARTS)
    model = load_indoor(tmp_path / "indoor.safetensors")
    assert model.config == IndoorConfig()
    training = json.loads((tmp_path / "indoor.json").read_text())["training"]
    assert (training["seed"], training["houses"]) == (3, 4)
    assert training["steps"] == dict.fromkeys(train.PARTS, 2) and set(training["seconds"]) == set(train.PARTS)
    reduction = Reduction((448, 1280))
    reduction.load_state_dict(torch.load(pools_folder / "reduction.pt"))
    tokens = torch.randn(3, 16, 1728)
    torch.testing.assert_close(model.reduction(tokens), reduction(tokens), atol=0.2, rtol=0.01)  # float16
    houses = Houses(pools_folder)
    bank = model.encode(memories(houses, np.array([[0, 1], [2, 1]])))
    assert model.action_between(bank, bank.tokens, bank.tokens)[0].mean.isfinite().all()


def test_the_command_is_stopped_and_goes_on(pools_folder, tmp_path, capsys, monkeypatch):
    """Ctrl-C while it draws a batch leaves a checkpoint and no model; then it is as if nothing had happened."""
    draw, drawn = train.draw_glances, []

    def interrupted(*args):
        drawn.append(1)
        signal.raise_signal(signal.SIGINT)
        return draw(*args)

    monkeypatch.setattr(train, "draw_glances", interrupted)
    command(pools_folder, tmp_path, "--steps", "2")
    assert f"stopped; continue with --resume --out {tmp_path}" in capsys.readouterr().out
    assert len(drawn) == 1 and [file.name for file in tmp_path.iterdir()] == ["checkpoint.pt"]
    monkeypatch.setattr(train, "draw_glances", draw)
    command(pools_folder, tmp_path, "--steps", "2", "--resume")
    command(pools_folder, tmp_path / "whole", "--steps", "2")
    resumed, whole = (
        load_indoor(folder / "indoor.safetensors").state_dict() for folder in (tmp_path, tmp_path / "whole")
    )
    assert same(resumed, whole)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        ([], "--pools"),
        (["--pools", "x", "--steps", "0"], "--steps"),
        (["--pools", "x", "--steps", "-3"], "--steps"),
        (["--pools", "x", "--steps", "many"], "many"),
        (["--pools", "x", "--minutes", "0"], "--minutes"),
        (["--pools", "x", "--minutes", "nan"], "--minutes"),
        (["--pools", "x", "--seed", "-1"], "--seed"),
        (["--pools", "x", "--epochs", "3"], "--epochs"),
    ],
)
def test_wrong_arguments_are_refused(argv, named, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert named in capsys.readouterr().err.splitlines()[-1]


def test_a_folder_without_pools_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no pools"):
        command(tmp_path / "missing", tmp_path)


# Runs


@pytest.mark.parametrize(("part", "fall"), [("poses", 0.03), ("ways", 0.0005), ("views", 0.005)])
def test_it_learns(run_in, tmp_path, part, fall):
    """What is asked again and again is known a little better every time, even in the first steps of a run."""
    run, losses = run_in(tmp_path), []
    loss = run.losses[part]
    run.losses[part] = lambda rng: losses.append(loss(np.random.default_rng(0))) or losses[-1]
    run._train_part(part, 1.0, 10, NEVER)
    assert losses[-1] < losses[0] - fall


def test_a_batch_of_which_nothing_is_known_or_unknown(run_in, tmp_path, monkeypatch):
    """As in few small houses; it teaches nothing of doubt, and nothing wrong."""
    draw = train.draw_glances

    def of_one_kind(kind):
        def drawn(*args):
            glances = draw(*args)
            return glances._replace(
                **{name: torch.full_like(glances.known, name == kind) for name in ("known", "unknown")}
            )

        return drawn

    run = run_in(tmp_path)
    for kind in ("neither", "unknown", "known"):
        monkeypatch.setattr(train, "draw_glances", of_one_kind(kind))
        loss = run.losses["views"](np.random.default_rng(0))
        assert loss.isfinite() and loss > 0
        loss.backward()
        assert all(p.grad.isfinite().all() for p in run.model.reader.parameters() if p.grad is not None)


def test_every_part_trains_its_own_weights(run_in, tmp_path):
    run = run_in(tmp_path)
    parts = {part: list(run._trained(part)) for part in train.PARTS}
    together = [p for some in parts.values() for p in some]
    assert len({id(p) for p in together}) == len(together)
    assert {id(p) for p in together} == {id(p) for p in run.model.parameters()}
    for part in train.PARTS:
        before = weights(run)
        run._train_part(part, 1.0, 3, NEVER)
        changed = {name for name, value in weights(run).items() if not torch.equal(value, before[name])}
        own = {name for name, p in run.model.named_parameters() if any(p is q for q in parts[part])}
        assert changed and changed <= own


def test_same_seed_same_weights_and_another_seed_others(run_in, tmp_path):
    runs = [run_in(tmp_path / str(i), seed) for i, seed in enumerate((1, 1, 2))]
    for run in runs:
        assert run.train(minutes=1, steps=2)
    assert same(weights(runs[0]), weights(runs[1]))
    assert not same(weights(runs[0]), weights(runs[2]))


def test_half_and_half_is_the_same_as_in_one_go(run_in, tmp_path):
    whole = run_in(tmp_path / "whole")
    whole.train(minutes=1, steps=2)
    for part, step in (("poses", 1), ("views", 2), ("trust", 1)):
        first = run_in(tmp_path / part)
        loss, taken = first.losses[part], []

        def stop_after(rng, loss=loss, taken=taken, step=step):
            taken.append(1)
            if len(taken) == step:
                signal.raise_signal(signal.SIGINT)
            return loss(rng)

        first.losses[part] = stop_after
        assert first.train(minutes=1, steps=2) is False and first.steps[part] == step
        second = run_in(tmp_path / part)
        second.resume()
        assert second.train(minutes=1, steps=2) is True
        assert same(weights(whole), weights(second))


def test_a_second_ctrl_c_stops_at_once_and_leaves_the_last_checkpoint(run_in, tmp_path):
    run = run_in(tmp_path)
    run.train(minutes=1, steps=1)
    good = (tmp_path / "checkpoint.pt").read_bytes()

    def impatient(rng):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    run.losses["poses"] = impatient
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run.train(minutes=1, steps=2)
    assert (tmp_path / "checkpoint.pt").read_bytes() == good
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_a_half_written_checkpoint_never_replaces_a_good_one(run_in, tmp_path, fill_disk):
    run = run_in(tmp_path)
    run.train(minutes=1, steps=1)
    good = (tmp_path / "checkpoint.pt").read_bytes()
    fill_disk()
    with pytest.raises(OSError, match="disk full"):
        run.save()
    assert (tmp_path / "checkpoint.pt").read_bytes() == good


def test_it_is_saved_and_looks_for_new_houses_while_it_trains(run_in, tmp_path, monkeypatch):
    monkeypatch.setattr(train, "REPORT_EVERY", 0.0)
    run, looked = run_in(tmp_path), []
    monkeypatch.setattr(run.houses, "read_new", lambda: looked.append((tmp_path / "checkpoint.pt").exists()))
    run.train(minutes=1, steps=1)
    assert looked == [True] * len(train.PARTS)


def test_minutes_are_shared_between_the_parts(run_in, tmp_path):
    run = run_in(tmp_path)
    assert run.train(minutes=0.02)
    shares = {part: seconds / 1.2 for part, seconds in run.seconds.items()}
    for part, share in train.PARTS.items():
        assert run.steps[part] >= 1 and shares[part] >= share
    assert sum(train.PARTS.values()) == pytest.approx(1)
    before = dict(run.steps)
    assert run.train(minutes=0.02) and run.steps == before  # it is complete


def test_resuming_something_else_is_refused(run_in, tmp_path):
    with pytest.raises(FileNotFoundError):
        run_in(tmp_path).resume()
    run_in(tmp_path).train(minutes=1, steps=1)
    with pytest.raises(ValueError, match="seed 0, not 1"):
        run_in(tmp_path, seed=1).resume()


# Banks of training


def memories(houses, rows, house=0):
    tokens, pool = houses.tokens[house].float(), houses.pools[house]
    start, end = rows.T
    return Memories(tokens[start], torch.from_numpy(pool.actions[start, end]).float(), tokens[end])


def test_banks_of_training_are_those_that_are_encoded(run_in, tmp_path, pools_folder):
    """Poses need not be found by walking along transitions where they are known; the frame may begin elsewhere."""
    houses, model = Houses(pools_folder), run_in(tmp_path).model
    rows = train.draw_bank(np.random.default_rng(0), houses.pools[0], 6)
    with torch.no_grad():
        known = bank_of(model, houses.pools[0], houses.tokens[0].float(), rows)
        found = model.encode(memories(houses, rows))
    order = [int((known.tokens == view).flatten(1).all(1).nonzero()) for view in found.tokens]
    assert sorted(order) == list(range(len(known.tokens)))
    assert np.array(order)[found.rows.numpy()].tolist() == known.rows.tolist()
    torch.testing.assert_close(known.look.whole[order], found.look.whole, atol=1e-4, rtol=1e-4)
    pose = known.pose[order]
    torch.testing.assert_close(train.between(pose[:1], pose), found.pose, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("part", ["poses", "ways"])
def test_batches_go_to_the_device_of_the_model(pools_folder, tmp_path, monkeypatch, part):
    """Tensors of torch's "meta" device hold nothing, but they refuse to be mixed with others as those of a GPU do."""
    monkeypatch.setattr(train, "fast", lambda device: nullcontext())  # it knows no autocast
    reduction = Reduction(CONFIG.groups, CONFIG.kept)
    run = IndoorRun(Houses(pools_folder), reduction, tmp_path, 0, compiled=False, config=CONFIG, device="meta")
    assert run.losses[part](np.random.default_rng(0)).device.type == "meta"


def test_a_bank_and_answers_on_the_device_of_the_model(pools_folder, run_in, tmp_path):
    model, houses = run_in(tmp_path).model.to("meta"), Houses(pools_folder)
    tokens = houses.tokens[0].float().to("meta")
    bank = bank_of(model, houses.pools[0], tokens, np.array([[0, 1], [1, 2], [3, 2]]))
    assert {part.device.type for part in (bank.tokens, *bank.look, bank.pose, bank.rows)} == {"meta"}
    actions, unknown = model.action_between(bank, tokens[:5], tokens[5:10])
    assert {part.device.type for part in (*actions, *actions.classes(), unknown)} == {"meta"}
    assert model.view_after(bank, tokens[:5], tokens.new_zeros(5, 3))[0].device.type == "meta"
