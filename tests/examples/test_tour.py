"""The notebook runs from top to bottom."""

import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

TOUR = Path(__file__).parents[2] / "examples/tour.ipynb"


@pytest.fixture
def notebook():
    return nbformat.read(TOUR, as_version=4)


def test_committed_without_outputs(notebook):
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.metadata
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None


def test_every_cell_runs(notebook, tmp_path):
    """A cell that fails raises."""
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    printed = {cell.id: "".join(output.get("text", "") for output in cell.outputs) for cell in code}
    pictures = {cell.id for cell in code for output in cell.outputs if "image/png" in output.get("data", ())}
    assert pictures == {"room", "beliefs", "map", "wall", "exploring"}
    assert "arrived" in printed["episode"]
    assert re.search(r"^forgot \[\(.*\)\] and arrived$", printed["wall"], re.M)
    arrived = {name: float(rate) for name, rate in re.findall(r"^(\w+) +(\d\.\d+)", printed["others"], re.M)}
    assert arrived["random"] < arrived["graph"] <= arrived["ESWM"] == 1
    assert "<title>" in (tmp_path / "episode.html").read_text(encoding="utf-8")
