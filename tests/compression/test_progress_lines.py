"""Every phase of a run that may take long says how far it is, and test rows are read once by every network."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import archwright as aw
from archwright.training import task_data
from tests.compression.runs import compressed

SEARCH = (
    *("tokenize", "fine-tuning the original", "importance of heads and units", "importance of channels"),
    *("repair of the width", "teacher's answers", "training the super-network", "candidates", "recording layers"),
    *("repair", "training the candidate first-1-layers", "search", "re-score", "test rows", "latency"),
)
SELECT = ("recovery", "errors", "export to compact", "latency")


def titles(capfd: Any) -> set[str]:
    return {line.split(":")[0] for line in capfd.readouterr().err.splitlines()}


def test_every_phase_has_its_line(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr("archwright.progress.DELAY", 0.0)  # as if everything took longer than two seconds
    asked: Counter[tuple[int, int]] = Counter()
    measure = task_data.measure_rows

    def counted(network: Any, rows: Any, spec: Any, **how: Any) -> Any:
        asked[id(rows), len(rows)] += 1
        return measure(network, rows, spec, **how)

    monkeypatch.setattr(task_data, "measure_rows", counted)
    given = {**given, "width": "75%", "trials": 3, "validation_rows": 10}
    run = compressed(tmp_path / "run", **given)
    assert set(SEARCH) - titles(capfd) == set()
    # Of the rows that original, cut, front and super-network all read, the last are the test rows, once for each.
    assert list(asked.values())[-2:] in ([1, len(run.front) + n] for n in (1, 2))
    aw.select(run.folder.path, params="100%", recover_epochs=0.1, to="compact", threads=1)
    assert set(SELECT) - titles(capfd) == set()


@pytest.mark.slow
def test_int8_files_have_their_lines_too(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr("archwright.progress.DELAY", 0.0)
    run = compressed(tmp_path / "run", **given, measure_int8=True, trials=2)
    aw.select(run.folder.path, params="100%", to="onnx", int8=True, threads=1)
    assert {"int8 files", "export to onnx", "test rows of the export", "latency"} - titles(capfd) == set()
