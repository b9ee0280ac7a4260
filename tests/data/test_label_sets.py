"""Rows with any number of labels: lists, a|b, columns of 0 and 1."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.data.tasks.label_sets import LabelSets
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

SETS = [["a"], ["a", "b"], [], ["c", "b"]] * 10
LINES = [{"text": f"text number {n} of them", "label": labels} for n, labels in enumerate(SETS)]


def jsonl(path: Path, lines: list[dict[str, Any]] = LINES) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def table(path: Path) -> Path:
    names = ("text", "label", "a", "b", "c")
    rows = [[x["text"], "|".join(x["label"]), *(int(name in x["label"]) for name in "abc")] for x in LINES]
    path.write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    return path


def saved(path: Path) -> Path:
    import datasets

    features = {
        "text": datasets.Value("string"),
        "label": datasets.Sequence(datasets.ClassLabel(names=["c", "b", "a"])),
    }
    data = datasets.Dataset.from_list(LINES, features=datasets.Features(features))
    data.save_to_disk(path)
    return path


WAYS: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "rows.jsonl": (jsonl, {}, ("a", "b", "c")),
    "rows.csv": (table, {"name": "multi-label"}, ("a", "b", "c")),
    "columns.csv": (table, {"label_columns": ("b", "a", "c")}, ("b", "a", "c")),
    "folder": (saved, {}, ("c", "b", "a")),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_them(way: str, tmp_path: Path) -> None:
    write, options, names = WAYS[way]
    task = load_task(train=write(tmp_path / way), split="random", **options)
    assert (task.kind, task.metric, task.labels) == ("multi-label", "micro_f1", names)
    expected = {line["text"]: set(line["label"]) for line in LINES}
    seen = 0
    for rows in task.splits.values():
        assert isinstance(rows, LabelSets) and rows.targets.dtype == np.float32
        for text, switches in zip(rows.texts, rows.targets, strict=True):
            assert {names[label] for label in np.flatnonzero(switches)} == expected[text]
            seen += 1
    assert seen == len(LINES)


def test_a_bar_is_an_ordinary_character_unless_asked_for(tmp_path: Path) -> None:
    lines = [{"text": f"number {n}", "label": ("a|b", "c")[n % 2]} for n in range(30)]
    assert load_task(train=jsonl(tmp_path / "rows.jsonl", lines)).labels == ("a|b", "c")
    assert load_task("multi-label", train=jsonl(tmp_path / "rows.jsonl", lines)).labels == ("a", "b", "c")


def test_a_checkpoint_may_know_more_labels(tmp_path: Path) -> None:
    assert load_task(train=jsonl(tmp_path / "rows.jsonl"), labels=("C", "x", "a", "b")).labels == ("C", "x", "a", "b")
    with pytest.raises(BadInput, match="must be among 'a', 'b', got 'c'"):
        load_task(train=jsonl(tmp_path / "rows.jsonl"), labels=("a", "b"))


def test_a_label_that_no_training_row_has_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    held = jsonl(tmp_path / "test.jsonl", [{"text": "x", "label": ["d"]}, *LINES])
    assert load_task(train=jsonl(tmp_path / "rows.jsonl"), test=held).labels == ("a", "b", "c", "d")
    assert "no training row has 'd'" in caplog.text


def test_tasks_with_labels_of_their_own_take_no_columns() -> None:
    with pytest.raises(BadInput, match="has one label per text; leave out --label-columns a,b"):
        load_task("movie-reviews", label_columns=("a", "b"))


BAD: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "one label": ([{"text": f"t{n}", "label": ["a"]} for n in range(20)], {}, "must have two labels or more, got 'a'"),
    "lists in lists": ([{"text": "t", "label": [["a"]]}], {}, r"must be a list of labels, got \[\['a'\]\]"),
    "no switch": ([{"text": "t", "a": 2, "b": 0}], {"label_columns": ("a", "b")}, "'a' must hold 0 or 1, got 2"),
    "no column": ([{"text": "t", "a": 1}], {"label_columns": ("a", "b")}, "no column 'b'"),
    "few rows": ([{"text": "t", "label": ["a", "b"]}], {}, "1 rows; at least 10"),
    "choices": (LINES, {"choice_columns": ("x", "y")}, "leave out --choice-columns"),
    "regression": (LINES, {"regression": True}, "leave out --regression"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows(name: str, tmp_path: Path) -> None:
    lines, options, message = BAD[name]
    with pytest.raises(BadInput, match=message):
        load_task(train=jsonl(tmp_path / "rows.jsonl", lines), **options)
