"""A text of one's own, and options of a search of a few seconds."""

from pathlib import Path
from typing import Any

import pytest

from archwright.designing import limits
from archwright.designing.prefix_cache import CACHES

SENTENCES = ("The river rose and the old bridge was closed.", "He wrote three books about birds , maps and tea .")


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "some.txt"
    lines = [f"{one} Page {number} of {2 * number + 3} ." for number in range(60) for one in SENTENCES]
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def options(text: Path, tmp_path: Path) -> dict[str, Any]:
    return {
        "space": "nlu-tiny", "text": text, "out": tmp_path / "design", "batch_rows": 2, "length": 8, "workers": 1,
        "population": 4, "generations": 3,
    }  # fmt: skip


@pytest.fixture(autouse=True)
def no_cache_before() -> None:
    CACHES.clear()


@pytest.fixture(autouse=True)
def short_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    for rounds in ("QUICK", "CAREFUL"):
        monkeypatch.setattr(limits, rounds, 1)
