"""What MkDocs needs besides the pages: the package in one folder and pages that lie elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "build" / "docs-package"
CARDS = tuple(
    ROOT / folder
    for folder in ("eswm_gym/world_model/weights", "eswm_gym/world_model/indoor/weights", "agents/baselines/weights")
)
ELSEWHERE = {
    "changes.md": ROOT / "CHANGELOG.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "tour.ipynb": ROOT / "examples/tour.ipynb",  # to download
}


def cards() -> dict[str, Path]:
    """The page of each model card, and where the card lies in the package."""
    return {f"models/{card.stem}.md": card for folder in CARDS for card in sorted(folder.glob("*.md"))}


def on_startup(**_: Any) -> None:
    """Lay the package out as it is installed, where agents/ is eswm_gym.agents.

    Before the configuration is read: mkdocstrings drops a search path that does not exist by then.
    """
    shutil.rmtree(PACKAGE, ignore_errors=True)
    python_only = shutil.ignore_patterns("weights", "__pycache__")
    shutil.copytree(ROOT / "eswm_gym", PACKAGE / "eswm_gym", ignore=python_only)
    shutil.copytree(ROOT / "agents", PACKAGE / "eswm_gym/agents", ignore=python_only)


def on_config(config: Any) -> Any:
    """List the model cards in the menu."""
    for entry in config.nav:
        if "Model cards" in entry:
            entry["Model cards"] = [{Path(page).stem: page} for page in cards()]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/."""
    for page, source in {**cards(), **ELSEWHERE}.items():
        files.append(File.generated(config, page, abs_src_path=str(source)))
    return files
