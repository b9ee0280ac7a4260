"""GLUE beside train and dev: mismatched rows, test files, the zip, and how much of train is held out."""

import io
import zipfile
from pathlib import Path

import pytest

from archwright.data.tasks.glue import GLUE
from archwright.data.tasks.glue_submission import (
    SUBMISSION_FILES,
    extra_dev_rows,
    format_answers,
    leaderboard_rows,
    present_tasks,
    zip_submission,
)
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

HEADERS = {
    "CoLA": "index\tsentence",
    "SST-2": "index\tsentence",
    "MRPC": "index\t#1 ID\t#2 ID\t#1 String\t#2 String",
    "STS-B": "index\tgenre\tsentence1\tsentence2",
    "QQP": "id\tquestion1\tquestion2",
    "MNLI": "index\tpromptID\tsentence1\tsentence2",
    "QNLI": "index\tquestion\tsentence",
    "RTE": "index\tsentence1\tsentence2",
    "WNLI": "index\tsentence1\tsentence2",
}
"""Those of the official test files."""


@pytest.mark.parametrize("task", GLUE)
def test_test_files_of_every_task(task: str, tmp_path: Path) -> None:
    folder = tmp_path / task
    folder.mkdir()
    header = HEADERS[task]
    row = [f"{name} text" for name in header.split("\t")]
    content = header + "\n" + "\n".join("\t".join([str(n), *row[1:]]) for n in range(3)) + "\n"
    for column, test in SUBMISSION_FILES.items():
        if test.task == task:
            path = folder / test.files[0]
            path.write_text(("\ufeff" if task == "MRPC" else "") + content, encoding="utf-8")
            assert column in {asked.column for asked in leaderboard_rows(task, tmp_path)}
    found = leaderboard_rows(task, tmp_path)
    assert {asked.column for asked in found} == {
        column for column, test in SUBMISSION_FILES.items() if test.task == task
    }
    for asked in found:
        assert asked.index == ["0", "1", "2"]
        assert asked.rows.texts == [f"{GLUE[task].text} text"] * 3
        assert asked.rows.pairs == (None if GLUE[task].pair is None else [f"{GLUE[task].pair} text"] * 3)


def test_a_damaged_test_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / "test.tsv").write_text("index\tsentence1\tsentence2\n0\tonly one\n")
    with pytest.raises(BadInput, match="damaged"):
        leaderboard_rows("RTE", tmp_path)
    assert leaderboard_rows("CoLA", tmp_path) == []


def test_answers_are_written_as_the_leaderboard_wants() -> None:
    assert format_answers("RTE", [0, 1], ("entailment", "not_entailment")) == ["entailment", "not_entailment"]
    assert format_answers("RTE", [0, 1], ("not_entailment", "entailment")) == ["not_entailment", "entailment"]
    assert format_answers("WNLI", [0, 1], ("entailment", "not_entailment")) == ["1", "0"]
    assert format_answers("SST-2", [1], ("negative", "positive")) == ["1"]
    assert format_answers("STS-B", [-1.0, 2.34567, 9.0], ()) == ["0.000", "2.346", "5.000"]
    assert format_answers("AX", [2], GLUE["MNLI"].labels) == ["contradiction"]


def test_the_zip() -> None:
    files = {"CoLA": (["0", "1"], ["1", "0"]), "MNLI-mm": (["7"], ["neutral"])}
    raw = zip_submission(files)
    assert raw == zip_submission(files)
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        assert archive.namelist() == ["CoLA.tsv", "MNLI-mm.tsv"]
        assert archive.read("CoLA.tsv").decode() == "index\tprediction\n0\t1\n1\t0\n"


def test_mismatched_rows(tmp_path: Path) -> None:
    folder = tmp_path / "MNLI"
    folder.mkdir()
    lines = ["index\tsentence1\tsentence2\tgold_label", "0\ta\tb\tneutral", "1\tc\td\tentailment"]
    (folder / "dev_mismatched.tsv").write_text("\n".join(lines))
    found = extra_dev_rows("MNLI", tmp_path, ("neutral", "entailment", "contradiction"))
    assert found["MNLI-mm"].targets.tolist() == [0, 1]
    assert extra_dev_rows("RTE", tmp_path, ()) == {}


def test_present_tasks(data_dir: Path, tmp_path: Path) -> None:
    assert set(present_tasks(data_dir / "glue")) == set(GLUE)
    with pytest.raises(BadInput, match="--glue must have a folder per task"):
        present_tasks(tmp_path)
    with pytest.raises(BadInput, match="--glue must be a folder"):
        present_tasks(tmp_path / "none")


def test_how_much_of_train_is_held_out(data_dir: Path, tmp_path: Path) -> None:
    sizes = {
        share: {
            name: len(split)
            for name, split in load_task("glue/RTE", data=data_dir / "glue", held_out=share).splits.items()
        }
        for share in (None, 0.0, 0.1)
    }
    assert sizes[None] == {"train": 1743, "validation": 747, "test": 277}
    assert sizes[0.0] == {"train": 2490, "validation": 277, "test": 277}
    assert sizes[0.1] == {"train": 2241, "validation": 249, "test": 277}
    own = tmp_path / "own.csv"
    own.write_text("text,label\n" + "".join(f"row {n},{n % 2}\n" for n in range(40)))
    assert {name: len(split) for name, split in load_task(train=own, held_out=0.0).splits.items()} == {
        "train": 28, "validation": 6, "test": 6,
    }  # fmt: skip
