"""Two processes under torchrun learn what one process learns from both their batches."""

import json
import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("lightning")

from eswm_gym.rooms.transitions import Problems  # noqa: E402
from eswm_gym.world_model import load_model  # noqa: E402
from eswm_gym.world_model.stream import ProblemStream  # noqa: E402
from eswm_gym.world_model.training import Run, fabric_for  # noqa: E402

STEPS = 10
WORKER = """
import json, sys
from pathlib import Path
from eswm_gym.world_model.training import Run, fabric_for

out, steps = Path(sys.argv[1]), int(sys.argv[2])
fabric = fabric_for("cpu", "32-true", out)
fabric.launch()
run, losses = Run("tiny", fabric, out, seed=3, compiled=False), []
step = run._step

def noted(*args):
    loss = step(*args)
    losses.append(fabric.all_reduce(loss, reduce_op="mean").item())
    return loss

run._step = noted
assert run.train(steps=steps)
run.finish(10)
if fabric.is_global_zero:
    (out / "losses.json").write_text(json.dumps([fabric.world_size, losses]))
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without torch.distributed")
def test_two_processes_learn_as_one_with_both_their_batches(tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    found = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(worker), str(tmp_path / "two"), str(STEPS)],
        capture_output=True, text=True, timeout=180, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    processes, losses = json.loads((tmp_path / "two" / "losses.json").read_text())
    assert processes == 2

    fabric = fabric_for("cpu", "32-true", tmp_path / "one")
    fabric.launch()
    run, expected = Run("tiny", fabric, tmp_path / "one", seed=3, compiled=False), []
    preset = run.preset
    streams = [ProblemStream(preset.sources, preset.rooms, preset.queries, 3, rank) for rank in (0, 1)]
    run.forward.train()
    born = {name: value.clone() for name, value in run.model.state_dict().items()}
    for run.step in range(STEPS):
        batches = [stream.batch(run.step) for stream in streams]
        assert not torch.equal(batches[0].truth, batches[1].truth), "each process has rooms of its own"
        joint = Problems(*(torch.cat(parts) for parts in zip(*batches, strict=True)))
        expected.append(run._step(joint, run.step / STEPS).item())
    assert losses == pytest.approx(expected, abs=2e-5)  # 7e-4 apart if the gradients of one process alone are used
    two = load_model(tmp_path / "two" / "tiny").state_dict()
    assert max((two[name] - value).abs().max() for name, value in born.items()) > 5e-4, "nothing was learned"
    training = json.loads((tmp_path / "two" / "tiny.json").read_text())["training"]
    assert training["pairs"] == STEPS * 2 * preset.rooms * preset.queries
