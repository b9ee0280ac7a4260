"""`archwright report` on folders and files, and what it says about others."""

import json
from pathlib import Path
from typing import Any

import pytest

from archwright.cli.main import main
from tests.compression.documents import BAD, GOOD, comparison, run


def folder(path: Path, document: dict[str, Any]) -> Path:
    path.mkdir()
    (path / "result.json").write_text(json.dumps(document))
    return path


def test_runs_and_comparisons_become_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = folder(tmp_path / "one", run(*GOOD, sampler="local"))
    two = folder(tmp_path / "two", comparison({"weight-sharing": GOOD, "random": BAD}))
    file = tmp_path / "three.json"
    file.write_text(json.dumps(run(*BAD)))
    words = ["report", *map(str, (one, two, file)), "--out", str(tmp_path / "page"), "--json", str(tmp_path / "p.json")]
    assert main(words) == 0
    written = json.loads((tmp_path / "p.json").read_text())
    assert written["schema"] == "archwright/protocol/1" and len(written["groups"][0]["runs"]) == 4
    page = (tmp_path / "page" / "protocol.html").read_text()
    assert "70/30" in page and "figure-12" in page
    shown = capsys.readouterr().out
    assert "weight-sharing has the smallest regret on t." in shown and "protocol.html" in shown


def test_the_same_folder_twice_is_one_run(tmp_path: Path) -> None:
    one = folder(tmp_path / "one", run(*GOOD))
    assert (
        main(["report", str(one), str(one / "result.json"), "--out", str(tmp_path), "--json", str(tmp_path / "p")]) == 0
    )
    assert json.loads((tmp_path / "p").read_text())["groups"][0]["repeated"] == 0


def test_a_real_run_can_be_reported(run: Any, tmp_path: Path) -> None:
    assert main(["report", str(run.folder.path), "--out", str(tmp_path), "--json", str(tmp_path / "p.json")]) == 0
    (group,) = json.loads((tmp_path / "p.json").read_text())["groups"]
    assert len(group["runs"][0]["front"]) == len(run.front)
    assert 0 < group["comparisons"]["samplers"]["names"][run.result["sampler"]]["mean"] <= 4


UNUSABLE = {
    "nothing there": (None, "must be a finished run"),
    "not json": ("{", "must be JSON"),
    "a list": ("[]", "must have one of the schemas"),
    "another schema": ('{"schema": "archwright/parity/1"}', "must have one of the schemas"),
    "half a document": ('{"schema": "archwright/compress/1", "task": "t"}', "has no 'model'"),
}


@pytest.mark.parametrize(("text", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_result_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    path = tmp_path / "result.json"
    if text is not None:
        path.write_text(text)
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 2
    complaint = capsys.readouterr().err
    assert words in complaint and complaint.count("\n") == 1
    assert not (tmp_path / "page").exists()


def test_a_report_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 2
    assert "run" in capsys.readouterr().err.lower()
