"""What is installed is what the folders hold."""

import configparser
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import eswm_gym

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


def test_wheel_holds_every_file(tmp_path):
    """Code, weights and model cards, `py.typed`, and whatever else lies in the packages' folders."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("eswm_gym", "agents"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    files = {
        re.sub("^agents/", "eswm_gym/agents/", str(file.relative_to(source)))
        for top in ("eswm_gym", "agents")
        for file in (source / top).rglob("*")
        if file.is_file()
    }
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    built = subprocess.run([*command, "--wheel-dir", tmp_path], cwd=source, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == files


def test_sdist_leaves_out_the_weights_of_benchmarks(tmp_path):
    """They are most of what the repository holds. Their JSON stays, and so do the weights of the package."""
    source = tmp_path / "source"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "runs", "*.egg-info", "__pycache__")
    )
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    built = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    weights = {name for name in packed if name.endswith(".safetensors")}
    world_model = "eswm_gym/world_model"
    folders = {f"{world_model}/weights", f"{world_model}/indoor/weights", "agents/baselines/weights"}
    assert {str(Path(name).parent) for name in weights} == folders
    described = {str(file.relative_to(ROOT)) for file in (ROOT / "benchmarks/weights").glob("*.json")}
    assert described | {"Makefile", "SECURITY.md", "tests/test_packaging.py"} <= packed


def test_one_version():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert config["metadata"]["version"] == eswm_gym.__version__
    assert f"\nversion: {eswm_gym.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
