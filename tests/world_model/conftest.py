"""What tests of training runs share."""

import pytest
import torch


@pytest.fixture
def fill_disk(monkeypatch):
    """Once called, the disk is full: `torch.save` writes a half and fails."""

    def die(state, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    return lambda: monkeypatch.setattr(torch, "save", die)
