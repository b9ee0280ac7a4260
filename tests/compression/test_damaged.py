"""A damaged run folder, a full disk: one line, no traceback, and the way out that the line names works."""

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from archwright.cli.main import main
from tests.compression.runs import QUICK, compressed, ended, front_of, left_over, refusal, words_of

SHAPES = {"half": lambda old: old[: len(old) // 2], "empty": lambda old: b"", "noise": lambda old: b"\xff\x00{" * 30}
VALID = {"a list": b"[]", "an object": b"{}", "a number": b"7"}


@pytest.fixture
def copied(tmp_path: Path, run: Any) -> Path:
    return Path(shutil.copytree(run.folder.path, tmp_path / "run"))


def options_of(run: Path) -> dict[str, Any]:
    """The command that made the run, with more trials so that there is something to do."""
    noted = json.loads((run / "run.json").read_text())["options"]
    asked = {**QUICK, "model": 0, "train": 0, "learning_rate": 0, "original_epochs": 0, "epochs": 0}
    return {name: noted[name] for name in asked} | {"trials": 16}


def damage(path: Path, content: bytes) -> None:
    assert path.exists()
    path.write_bytes(content)


@pytest.mark.parametrize("content", [*SHAPES, *VALID])
@pytest.mark.parametrize("name", ["result.json", "run.json", "order.json"])
def test_select_and_export_of_a_damaged_run(name: str, content: str, copied: Path, capfd: Any) -> None:
    path = copied / name
    damage(path, SHAPES[content](path.read_bytes()) if content in SHAPES else VALID[content])
    code, line = refusal(capfd, ["export", str(copied), "--trial", "0", "--to", "compact", "--out", str(copied / "x")])
    assert code in (1, 2) and name in line
    assert not (copied / "x").exists()


@pytest.mark.parametrize("content", [*SHAPES, *VALID])
@pytest.mark.parametrize("name", ["run.json", "order.json"])
def test_resuming_a_damaged_run(name: str, content: str, copied: Path, capfd: Any) -> None:
    options = options_of(copied)
    path = copied / name
    damage(path, SHAPES[content](path.read_bytes()) if content in SHAPES else VALID[content])
    code, line = refusal(capfd, words_of("compress", **options, out=copied))
    assert code in (1, 2) and name in line


@pytest.mark.parametrize("part", ["original", "supernet"])
@pytest.mark.parametrize("content", SHAPES)
def test_damaged_weights_of_a_run(part: str, content: str, copied: Path, capfd: Any) -> None:
    path = copied / part / "model.safetensors"
    damage(path, SHAPES[content](path.read_bytes()))
    code, line = refusal(capfd, words_of("compress", **options_of(copied), out=copied))
    assert code in (1, 2) and part in line and "delete" in line


def test_the_way_out_works(copied: Path, run: Any, capfd: Any) -> None:
    """After deleting what the line names, the same command makes the same network and the same front again."""
    options = {**options_of(copied), "trials": 14}
    shutil.rmtree(copied / "supernet")
    (copied / "result.json").unlink()
    again = compressed(copied, **options).result
    assert front_of(again) == front_of(run.result)


@pytest.mark.parametrize("content", SHAPES)
def test_a_damaged_training_checkpoint(content: str, copied: Path, run: Any, capfd: Any) -> None:
    options = {**options_of(copied), "trials": 14}
    for name in ("supernet", "original"):
        shutil.rmtree(copied / name)
    (copied / "result.json").unlink()
    checkpoint = copied / "checkpoint-original.safetensors"
    checkpoint.write_bytes(SHAPES[content]((run.folder.original / "model.safetensors").read_bytes()))
    code, line = refusal(capfd, words_of("compress", **options, out=copied, quiet=True))
    assert code == 1 and checkpoint.name in line and "delete" in line
    checkpoint.unlink()
    assert front_of(compressed(copied, **options).result) == front_of(run.result)
    assert left_over(copied) == []


def test_a_journal_whose_last_line_was_cut_short(copied: Path, run: Any) -> None:
    with open(copied / "study.journal", "ab") as journal:
        journal.write(b'{"op_code":4,"worker_id":"x"')
    more = compressed(copied, **options_of(copied)).result
    assert [row["values"] for row in more["trials"]][:14] == [row["values"] for row in run.result["trials"]]
    assert len(more["trials"]) == 16


def test_a_journal_with_a_damaged_middle(copied: Path, capfd: Any) -> None:
    lines = (copied / "study.journal").read_bytes().splitlines(keepends=True)
    (copied / "study.journal").write_bytes(b"".join([*lines[:9], b"\x00\xff half\n", *lines[10:]]))
    code, line = refusal(capfd, words_of("compress", **options_of(copied), out=copied))
    assert code == 1 and "study.journal" in line


def test_not_a_run(tmp_path: Path, capfd: Any) -> None:
    for words in (["select", "--params", "50%"], ["export", "--trial", "0", "--to", "hf"], ["worker"]):
        for folder in (tmp_path, tmp_path / "nowhere", Path(__file__)):
            code, line = refusal(capfd, [words[0], str(folder), *words[1:]])
            assert code == 2 and ("run.json" in line or "there is no such folder" in line)


def test_a_full_disk(tmp_path: Path, given: dict[str, Any]) -> None:
    """No file may grow beyond five megabytes, so the weights cannot be written; later the same command goes on."""
    most = 5_000_000
    words = words_of("compress", **{**QUICK, **given, "out": tmp_path / "run"})
    code, _, err = ended(words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    lines = [line for line in err.splitlines() if line.startswith("archwright: ")]
    assert code == 1 and len(lines) == 1 and "Traceback" not in err, err
    if (tmp_path / "run").exists():
        assert left_over(tmp_path / "run") == []
    assert main([*words, "--quiet"]) == 0
