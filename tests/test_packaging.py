"""What is installed is what the folders hold."""

import configparser
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_setup_cfg_lists_every_package():
    """Packages are listed by hand: one that is missing would be missing from everybody's installation."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    listed = config["options"]["packages"].split()
    found = {file.parent.relative_to(ROOT) for top in ("eswm_gym", "agents") for file in (ROOT / top).rglob("*.py")}
    names = [".".join(folder.parts) for folder in found]
    assert sorted(listed) == sorted(f"eswm_gym.{name}" if name.startswith("agents") else name for name in names)


def test_agents_are_installed_inside_the_package(tmp_path):
    """From any folder: `eswm_gym.agents` is there, and no top-level `agents` that could hide another's."""
    code = (
        "import importlib.util, eswm_gym.agents; "
        "assert importlib.util.find_spec('agents') is None; "
        "print(eswm_gym.agents.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.strip() == "eswm_gym.agents", run.stderr
