"""The notebooks of `examples/` run from their first cell to their last, in a folder of their own."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
RUNNER = """
import ast, json, sys
names = {"__name__": "__main__"}
for source in json.loads(open(sys.argv[1]).read()):
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        shown = getattr(value, "_repr_html_", None)
        print("OUT", len((shown() if shown else repr(value)) or ""))
"""
"""Cells in order, and what a notebook would show of the last expression of each."""


def code_cells(notebook: Path) -> list[str]:
    document: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    assert document["nbformat"] == 4 and document["metadata"]["kernelspec"]["name"] == "python3"
    return ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]


def test_there_are_three_and_they_hold_no_outputs() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["decoder", "own_checkpoint_and_csv", "own_proxy"]
    for notebook in NOTEBOOKS:
        assert all(ast.parse(cell).body for cell in code_cells(notebook))
        document = json.loads(notebook.read_text(encoding="utf-8"))
        assert all(not cell.get("outputs") for cell in document["cells"])
        assert document["cells"][0]["cell_type"] == "markdown" and notebook.stat().st_size < 10_000


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    cells = tmp_path / "cells.json"
    cells.write_text(json.dumps(code_cells(notebook)))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", RUNNER, str(cells)]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    shown = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("OUT ")]
    assert shown and all(shown)
