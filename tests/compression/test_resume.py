"""The same command again: finished runs stay as they are, unfinished ones go on, other options are refused."""

import fcntl
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from archwright.cli.main import main
from archwright.compression import finetuning
from archwright.store import RunFolder
from tests.compression.runs import (
    QUICK,
    compressed,
    front_of,
    left_over,
    refusal,
    study_of,
    words_of,
)


@pytest.fixture
def copied(tmp_path: Path, run: Any) -> Path:
    """A finished run that may be changed."""
    return Path(shutil.copytree(run.folder.path, tmp_path / "run"))


@pytest.fixture(scope="session")
def options(given: dict[str, Any]) -> dict[str, Any]:
    """Those of the finished run."""
    return {**QUICK, **given, "epochs": 6.0, "original_epochs": 6.0, "learning_rate": 3e-3, "trials": 14}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_finished_run_does_nothing_again(copied: Path, options: dict[str, Any], run: Any) -> None:
    before = contents(copied)
    again = compressed(copied, **options)
    assert again.result == run.result
    assert contents(copied) == before


def test_other_threads_and_checkpoints_are_no_other_run(copied: Path, options: dict[str, Any], run: Any) -> None:
    again = compressed(copied, **{**options, "threads": 2, "checkpoint_seconds": 5.0, "workers": 2})
    assert again.result == run.result


def test_more_trials_go_on_where_it_ended(
    copied: Path, options: dict[str, Any], run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finetuning, "train_network", None)  # nothing is trained again
    more = compressed(copied, **{**options, "trials": 20}).result
    assert [row["values"] for row in more["trials"]][:14] == [row["values"] for row in run.result["trials"]]
    assert len(more["trials"]) == len(study_of(copied).trials) == 20
    assert more["hypervolume"] >= run.result["hypervolume"]
    assert json.loads((copied / "run.json").read_text())["options"]["trials"] == 20  # for workers that join


def test_more_trials_are_those_of_a_longer_run(tmp_path: Path, given: dict[str, Any]) -> None:
    long = compressed(tmp_path / "long", **given, trials=12)
    short = compressed(tmp_path / "short", **given, trials=5)
    assert len(short.result["trials"]) == 5
    assert front_of(compressed(tmp_path / "short", **given, trials=12).result) == front_of(long.result)


def test_a_missing_result_is_made_again(copied: Path, options: dict[str, Any], run: Any) -> None:
    (copied / "result.json").unlink()
    (copied / "report.html").unlink()
    again = compressed(copied, **options).result
    assert front_of(again) == front_of(run.result)
    assert again["hypervolume"] == run.result["hypervolume"]
    assert (copied / "report.html").stat().st_size > 100_000


OTHER = {
    "seed": 3,
    "space": "medium",
    "learning_rate": 1e-3,
    "params": "50%",
    "objectives": ("flops",),
    "train_rows": 20,
}


@pytest.mark.parametrize(("name", "value"), OTHER.items(), ids=OTHER)
def test_other_options_are_refused(name: str, value: Any, copied: Path, options: dict[str, Any], capfd: Any) -> None:
    before = contents(copied)
    code, line = refusal(capfd, words_of("compress", **{**options, "out": copied, name: value}))
    assert code == 2 and name in line and "--out" in line
    assert contents(copied) == before


def test_a_folder_in_use_is_refused(copied: Path, options: dict[str, Any], capfd: Any) -> None:
    words = words_of("compress", **{**options, "out": copied, "trials": 16})
    with open(copied / ".lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, line = refusal(capfd, words)
    assert code == 2 and "archwright worker" in line
    assert main([*words, "--quiet"]) == 0


def test_left_overs_are_swept_away(copied: Path, options: dict[str, Any]) -> None:
    for name in (".result.json.abcd1234", ".original.x_2y4z6a/model.safetensors", "checkpoint-original.safetensors"):
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_bytes(b"half")
    compressed(copied, **{**options, "trials": 15})
    assert left_over(copied) == []


def test_a_command_killed_before_its_first_file_can_be_repeated(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".run.json.abcdefgh").write_text("{")
    compressed(tmp_path / "run", **given)
    assert left_over(tmp_path / "run") == []


def test_a_run_means_the_same_from_every_folder(
    tmp_path: Path, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = Path(given["model"]), Path(given["train"])
    store = "sqlite:///trials.db"
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    shutil.copytree(model, here / "model")
    shutil.copy(rows, here / "rows.csv")
    monkeypatch.chdir(here)
    names = {"model": "model", "train": "rows.csv", "store": store}
    compressed(Path("run"), **names)
    monkeypatch.chdir(there)
    assert main(["select", "../here/run", "--params", "100%", "--threads", "1", "--quiet"]) == 0
    RunFolder(here / "run").renew({"trials": 8})
    assert main(["worker", "../here/run", "--quiet"]) == 0
    assert list(there.iterdir()) == []
    monkeypatch.chdir(here)
    assert len(compressed(Path("run"), **names, trials=8).result["trials"]) == 8
