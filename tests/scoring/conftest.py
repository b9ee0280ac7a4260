"""A small copy of the FlexiBERT table, which tests may spoil, and a text of their own."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

ROWS = 24


@pytest.fixture(scope="session")
def table(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rows of nas-bert in the original layout."""
    folder = tmp_path_factory.mktemp("nas-bert")
    entries = json.loads((data_dir / "nas-bert" / "BERT_benchmark.json").read_text())[:ROWS]
    (folder / "BERT_benchmark.json").write_text(json.dumps(entries))
    ids = {str(entry["id"]) for entry in entries}
    with open(data_dir / "nas-bert" / "published_metrics.csv", newline="") as file:
        head, *rows = csv.reader(file)
    with open(folder / "published_metrics.csv", "w", newline="") as file:
        csv.writer(file).writerows([head, *(row for row in rows if row[0] in ids)])
    return folder


@pytest.fixture(scope="session")
def text(data_dir: Path) -> Path:
    return data_dir / "wikitext-2" / "valid.txt"


@pytest.fixture
def options(table: Path, text: Path, tmp_path: Path) -> dict[str, Any]:
    """A ranking of a few seconds."""
    return {
        "benchmark": "nas-bert", "data": table, "text": text, "out": tmp_path / "scores", "batch_rows": 2,
        "length": 16, "workers": 1, "proxies": ("w_pca", "v_pca", "snip"), "samples": 50, "ablation": False,
    }  # fmt: skip
