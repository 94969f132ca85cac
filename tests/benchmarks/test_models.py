"""Where the models of the benchmarks come from."""

import shutil

import pytest
from common import models


def test_weights_that_were_left_out_are_asked_for(tmp_path, monkeypatch):
    """As in a source distribution: the JSON is there, and says what it always says."""
    info = models.find_info("rw-t")
    shutil.copy(models.WEIGHTS / "rw-t.json", tmp_path)
    monkeypatch.setattr(models, "WEIGHTS", tmp_path)
    assert models.find_info("rw-t") == info
    with pytest.raises(SystemExit, match="weights of rw-t are not here.*clone the repository, or train them"):
        models.find_model("rw-t")


def test_other_models_are_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="nobody.json"):
        models.find_model(str(tmp_path / "nobody"))
