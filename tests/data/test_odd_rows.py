"""Rows with which an error says less than it seems: one line about each, and a refusal where labels are misspelt."""

from pathlib import Path

import pytest

from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

GOOD, BAD = "this one was quite {} good and funny", "that one was rather {} bad and dull"


def write_rows(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return path


def usual_rows(count: int = 40, *, first: int = 0) -> list[tuple[str, str]]:
    numbers = range(first, first + count)
    return [((GOOD, BAD)[i % 2].format(f"n{i} " * 8), ("yes", "no")[i % 2]) for i in numbers]


def test_ordinary_rows_are_not_talked_about(tmp_path: Path) -> None:
    files = {"train": usual_rows(), "test": usual_rows(20, first=100)}
    task = load_task(**{name: write_rows(tmp_path / f"{name}.csv", rows) for name, rows in files.items()})
    assert task.warnings == ()


def test_a_test_file_of_training_rows(tmp_path: Path) -> None:
    train = write_rows(tmp_path / "train.csv", usual_rows())
    test = write_rows(tmp_path / "test.csv", usual_rows(10))
    task = load_task(train=train, test=test)
    known = sum(text in task.splits["train"].texts for text in task.splits["test"].texts)
    assert known > 1
    (line,) = task.warnings
    assert line == (
        f"{known} of 10 test rows stand word for word inside training rows: their errors flatter every network"
    )


def test_a_text_with_several_labels(tmp_path: Path) -> None:
    rows = [*usual_rows(), ("the same again", "yes"), ("the same again", "no"), ("the same again", "no")]
    assert load_task(train=write_rows(tmp_path / "rows.csv", rows)).warnings == (
        "3 of 43 training rows have a text that stands there with another label too",
    )
    few = [*usual_rows(100), ("the same again", "yes"), ("the same again", "no")]
    assert load_task(train=write_rows(tmp_path / "few.csv", few)).warnings == ()


def test_labels_that_are_several(tmp_path: Path) -> None:
    rows = [(text, f"{label}|short") for text, label in usual_rows()]
    (line,) = load_task(train=write_rows(tmp_path / "rows.csv", rows)).warnings
    assert line == "labels such as 'no|short' are one class each; --task multi-label takes them apart"


def test_labels_that_differ_only_in_case(tmp_path: Path) -> None:
    rows = [(text, label.upper() if i % 4 == 1 else label) for i, (text, label) in enumerate(usual_rows())]
    with pytest.raises(BadInput, match=r"rows.csv has labels that differ only in upper and lower case, .*; write them"):
        load_task(train=write_rows(tmp_path / "rows.csv", rows))
