"""docs/notebooks are executed, and show what they contain (`make docs`).

`pytest tests/test_notebooks.py --accept` writes what they show now.
"""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
Shown = list[dict[str, Any]]


def executed(path: Path) -> Any:
    """A notebook after a run in a kernel of its own, without times and names of this machine."""
    import ipykernel.kernelspec
    import nbformat
    from nbclient import NotebookClient

    assert ipykernel.kernelspec.KERNEL_NAME == "python3"
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(ROOT)}}, record_timing=False).execute()
    return book


def shown(book: Any) -> list[Shown]:
    """The outputs of each cell, with digits that differ from machine to machine left out."""
    return [[rounded(output) for output in cell["outputs"]] for cell in book["cells"] if cell["cell_type"] == "code"]


def rounded(data: Any) -> Any:
    """Data in which fractions have five digits, and lists of lines are texts."""
    if isinstance(data, dict):
        return {key: rounded(value) for key, value in data.items() if key != "execution_count"}
    if isinstance(data, list):
        return rounded("".join(data)) if all(isinstance(each, str) for each in data) else [rounded(each) for each in data]
    if isinstance(data, str):       # a layout of boxes depends on what is installed
        data = re.sub(r"base64,[\w+/=]+", "base64,", data)
        data = re.sub(r"\d\.?\d*e-\d+", "tiny", data)
        return re.sub(r"\d+\.\d{4,}", lambda number: f"{float(number[0]):.3f}", data)
    return data


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_computes(path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    book = executed(path)
    if pytestconfig.getoption("--accept") == "all":
        path.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert shown(json.loads(path.read_text(encoding="utf-8"))) == shown(json.loads(json.dumps(book)))


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["fusion", "gradients", "vmap_of_grad"]
