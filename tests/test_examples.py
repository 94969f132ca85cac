"""Each example runs as a user would run it."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script, tmp_path):
    picture = tmp_path / "room.png"
    found = subprocess.run([sys.executable, script, picture], capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "lost" not in found.stdout
    assert picture.exists() == (script.stem == "your_own_room")
