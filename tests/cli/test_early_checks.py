"""Wrong files, columns, labels and folders are found before torch is loaded, and files are not read twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from archwright.data.tasks import tables
from archwright.data.tasks.tables import Columns, read_file

SOURCE = Path(__file__).parents[2] / "src"
RUN = """
import json, sys
from archwright.cli.main import main
codes = [main(words) for words in json.loads(sys.argv[1])]
print(json.dumps([codes, [name for name in ("torch", "transformers") if name in sys.modules]]))
"""
ROWS = "text,label,empty\n" + "".join(f"text {n},{'ab'[n % 2]},\n" for n in range(20))
WRONG = {
    "no such file": (["compress", "--train", "none.csv"], "there is no file 'none.csv'"),
    "no such test file": (["compress", "--train", "rows.csv", "--test", "none.csv"], "there is no file 'none.csv'"),
    "no such column": (["compress", "--train", "rows.csv", "--text-column", "body"], "has no column 'body'"),
    "no such label column": (["compress", "--train", "rows.csv", "--label-column", "y"], "has no column 'y'"),
    "a column without labels": (["compress", "--train", "rows.csv", "--label-column", "empty"], "has no label"),
    "labels that are no numbers": (["compress", "--train", "rows.csv", "--regression"], "must be a finite number"),
    "labels that are others": (["compress", "--train", "rows.csv", "--labels", "c,d"], "the model's labels must be"),
    "too few rows": (["compress", "--train", "few.csv"], "at least 10 are needed"),
    "no such task": (["compress", "--task", "glue/SST-3"], "did you mean glue/SST-2"),
    "no such folder": (["compress", "--model", "./none"], "there is no such folder"),
    "a folder without a model": (["compress", "--model", "folder", "--train", "rows.csv"], "it has no config.json"),
    "no such data": (["compress", "--task", "squad", "--data", "none"], "there is no file 'none'"),
    "no such run": (["select", "none", "--params", "50%"], "got none, which has no run.json"),
    "no such run to join": (["worker", "none"], "got none, which has no run.json"),
    "nothing to export": (["export", "none", "--to", "compact"], "there is no such folder"),
}


def test_mistakes_are_found_without_torch(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    (tmp_path / "few.csv").write_text("".join(f"{line}\n" for line in ROWS.splitlines()[:4]))
    (tmp_path / "folder").mkdir()
    words = json.dumps([words for words, _ in WRONG.values()])
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", RUN, words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert json.loads(done.stdout) == [[2] * len(WRONG), []], done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("archwright: ")]
    for (name, (_, rule)), line in zip(WRONG.items(), lines, strict=True):
        assert rule in line, (name, line)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.csv", "folder", "rows.csv"]


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, reads = tmp_path / "rows.csv", []
    file.write_text(ROWS)
    parse = tables.parse_file
    monkeypatch.setattr(tables, "parse_file", lambda *given: (reads.append(given), parse(*given))[1])
    assert read_file(file, Columns()) is read_file(file, Columns())
    assert len(reads) == 1
    read_file(file, Columns(text="label", label="text"))
    assert len(reads) == 2
    file.write_text(ROWS + "one more,a,\n")
    assert len(read_file(file, Columns())) == 21
