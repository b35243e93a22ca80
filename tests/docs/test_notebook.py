"""The notebook runs from top to bottom, and is committed without what it shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
# nbclient's kernels talk over sockets and event loops that warn in their own ways, so it runs by itself.
RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[3])
"""


def executed(path: Path, folder: Path) -> dict[str, Any]:
    out = folder / path.name
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(path.parent), str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    notebook: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return notebook


def test_there_is_a_notebook() -> None:
    """So the tests below look at something."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, tmp_path: Path) -> None:
    """Every cell runs without a word on stderr, results show themselves as HTML, and charts as SVG."""
    cells = [cell for cell in executed(path, tmp_path)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in cells)
    shown = [output for cell in cells for output in cell["outputs"]]
    assert [output for output in shown if output.get("name") == "stderr"] == []
    kinds = [kind for output in shown for kind in output.get("data", {})]
    assert kinds.count("image/svg+xml") >= 5
    pages = ["".join(output["data"]["text/html"]) for output in shown if "text/html" in output.get("data", {})]
    assert any('class="docrecall' in page and "148 of 173 units scored" in page for page in pages)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_stripped(path: Path) -> None:
    """Outputs and counts of runs would change with each run, and hide what changed in a diff."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
        assert cell["metadata"] == {}
