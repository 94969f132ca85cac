"""What all tests share."""

import hashlib
import json
import os
import signal

import pytest
import torch
from hypothesis import settings

# Models here are small, and a process that is forked while PyTorch has threads of its own can hang.
torch.set_num_threads(1)
# Commands that tests run have one thread as well: several would wait for each other on busy cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine may be slow; it is not wrong for that.
settings.register_profile("unhurried", settings(deadline=None))
settings.load_profile("unhurried")


def pytest_configure(config):
    config.addinivalue_line("markers", "camera: draws houses; skipped where that cannot be done")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell; some tests press Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    if item.get_closest_marker("camera"):
        from eswm_gym.envs.indoor_camera import missing  # not before it is needed: looking opens a display

        if reason := missing():
            pytest.skip(reason)


@pytest.fixture
def describe():
    """Rewrite the JSON beside weights so that their sha256 is right again; None takes an entry out."""

    def rewrite(weights, **changes):
        path = weights.with_suffix(".json")
        info = json.loads(path.read_text())
        info.pop("checksum", None)
        info |= {"sha256": hashlib.sha256(weights.read_bytes()).hexdigest(), **changes}
        path.write_text(json.dumps({key: value for key, value in info.items() if value is not None}))

    return rewrite
