"""The small table of the tests of scoring, and a search of seconds on it."""

from pathlib import Path
from typing import Any

import pytest

from tests.scoring.conftest import table, text

__all__ = ["options", "table", "text"]


@pytest.fixture
def options(table: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("ARCHWRIGHT_PROXIES", str(tmp_path / "proxies"))
    return {
        "benchmark": "nas-bert", "data": table, "text": text, "out": tmp_path / "scores", "batch_rows": 2,
        "length": 16, "workers": 1, "samples": 50,
    }  # fmt: skip
