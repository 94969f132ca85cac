"""What README and docs/ say is so: snippets run, commands exist, the site builds."""

import contextlib
import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(<!-- not run -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:python|torchrun\b[^`\n]*?) (-m eswm_gym[\w.]*|benchmarks/\w+(?:\.py)?)((?: +[^`\n&|;#(]+)?)")


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page, less those marked as not run. Each has its lines' numbers as in the page."""
    text = page.read_text()
    return [
        "\n" * text.count("\n", 0, found.start(3)) + found[3]
        for found in BLOCK.finditer(text)
        if found[2] == language and not found[1]
    ]


def commands() -> dict[str, set[str]]:
    """The Python commands that the pages name, each with its options."""
    found: dict[str, set[str]] = {}
    for page in PAGES:
        for program, rest in COMMAND.findall(page.read_text().replace("\\\n", " ")):
            found.setdefault(program, set()).update(re.findall(r"(?<!\S)--[a-z][\w-]*", rest))
    return found


def in_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_code() -> list:
    """The pages with snippets; those about houses draw them."""
    drawing = pytest.mark.camera
    return [pytest.param(p, marks=[drawing] if p.stem == "indoor" else []) for p in PAGES if blocks(p, "python")]


@pytest.mark.parametrize("page", with_code(), ids=in_page)
def test_python_snippets(page, tmp_path, monkeypatch):
    """The snippets of a page run in order, as one program."""
    monkeypatch.chdir(tmp_path)
    # Names that a page may use for any two states.
    names = {"__name__": "__main__", "start": 0, "goal": 1, "state": 0}
    with registries_restored():
        for code in blocks(page, "python"):
            exec(compile(code, page, "exec"), names)


@contextlib.contextmanager
def registries_restored():
    """What a page adds to the tables of models and presets is gone afterwards."""
    from eswm_gym.world_model.presets import PRESETS
    from eswm_gym.world_model.pretrained import ARCHITECTURES

    with patch.dict(PRESETS), patch.dict(ARCHITECTURES):
        yield


def test_pages_name_commands():
    assert "benchmarks/navigate.py" in commands()
    assert "-m eswm_gym.world_model.train" in commands()


@pytest.mark.parametrize(("program", "options"), commands().items(), ids=commands())
def test_commands(program, options, monkeypatch):
    """A command that a page names answers `--help`, which knows the options that the page gives it."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "argv", [program, "--help"])
    monkeypatch.setenv("COLUMNS", "200")
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        if program.startswith("-m "):
            monkeypatch.delitem(sys.modules, program[3:], raising=False)  # or runpy warns of it
            runpy.run_module(program[3:], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(ROOT / program), run_name="__main__")
    assert not ended.value.code
    assert not {option for option in options if option not in out.getvalue()}


def test_make_targets():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        code = "\n".join(blocks(page, "bash")) + "\n".join(re.findall(r"`(make [^`]+)`", page.read_text()))
        assert set(re.findall(r"\bmake ([a-z][\w-]*)", code)) <= targets, page


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs")
def test_site_builds_without_warnings(tmp_path):
    """Broken links, missing anchors, pages that no menu lists and names that the API does not have are errors."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stdout + built.stderr
    for page in ("index", "models/random-wall", "environments/hex-room", "api/agents", "benchmarks"):
        assert (tmp_path / "site" / f"{page}.html").exists()
