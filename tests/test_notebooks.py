"""The notebooks in examples/ run from top to bottom, without network, and draw what they promise."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore")  # Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # for %%bash
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    untyped: Any = nbformat
    notebook = untyped.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "committed without outputs, which would age"
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in shown)


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["label", "reward_model", "verify"]
