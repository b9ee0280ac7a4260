"""A user's files: separators, JSON arrays, Parquet, gzip, folders of `datasets`, usual column names, empty rows."""

import gzip
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from archwright.data.tasks.table_files import read_rows
from archwright.data.tasks.task import Task, load_task
from archwright.errors import BadInput

ROWS = [{"text": f"text; number, {i}", "label": ("bad", "good")[i % 2]} for i in range(20)]


def semicolons(path: Path) -> Path:
    lines = ["text;label", *(f'"{row["text"]}";{row["label"]}' for row in ROWS)]
    path.write_text("\n".join(lines))
    return path


def packed(path: Path) -> Path:
    lines = ["text,label", *(f'"{row["text"]}",{row["label"]}' for row in ROWS)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def array(path: Path) -> Path:
    path.write_text(json.dumps(ROWS))
    return path


def array_inside(path: Path) -> Path:
    path.write_text(json.dumps({"version": "1", "data": ROWS}))
    return path


def objects(path: Path) -> Path:
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def class_numbers() -> datasets.Dataset:
    names = datasets.ClassLabel(names=["bad", "good"])
    features = datasets.Features({"text": datasets.Value("string"), "label": names})
    rows = [{"text": row["text"], "label": names.str2int(row["label"])} for row in ROWS]
    return datasets.Dataset.from_list(rows, features=features)


def parquet(path: Path) -> Path:
    class_numbers().to_parquet(str(path))
    return path


def saved(path: Path) -> Path:
    class_numbers().save_to_disk(str(path))
    return path


FILES: dict[str, Any] = {
    "rows.csv": semicolons,
    "rows.csv.gz": packed,
    "rows.json": array,
    "inside.json": array_inside,
    "lines.json": objects,
    "rows.parquet": parquet,
    "folder": saved,
}


@pytest.mark.parametrize("name", FILES)
def test_every_kind_of_file_has_the_same_rows(name: str, tmp_path: Path) -> None:
    assert [dict(values) for _, values in read_rows(FILES[name](tmp_path / name))] == ROWS


def test_a_separator_other_than_a_comma_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_rows(semicolons(tmp_path / "rows.csv"))
    assert "rows.csv: fields are separated by ';'" in caplog.text


def load(path: Path, rows: list[dict[str, Any]], **options: Any) -> Task:
    path.write_text("\n".join(map(json.dumps, rows)))
    return load_task(train=path, **options)


def test_usual_names_of_columns_are_recognised_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"Review": row["text"], "sentiment": row["label"], "id": str(i)} for i, row in enumerate(ROWS)]
    task = load(tmp_path / "rows.jsonl", rows)
    assert task.labels == ("bad", "good")
    assert "has no column 'text': 'Review' is taken for it" in caplog.text
    assert "has no column 'label': 'sentiment' is taken for it" in caplog.text


def test_two_likely_columns_are_not_guessed(tmp_path: Path) -> None:
    rows = [{"review": row["text"], "comment": row["text"], "label": row["label"]} for row in ROWS]
    with pytest.raises(BadInput, match="no column 'text'; it has 'review', 'comment', 'label'"):
        load(tmp_path / "rows.jsonl", rows)


def test_empty_rows_are_refused_or_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [*ROWS, {"text": "  ", "label": "bad"}, {"text": "a text", "label": None}]
    with pytest.raises(BadInput, match=r"line 21 .* has no text"):
        load(tmp_path / "rows.jsonl", rows)
    task = load(tmp_path / "rows.jsonl", rows, skip_empty=True)
    assert sum(len(split) for split in task.splits.values()) == len(ROWS)
    assert "2 of 22 rows have no text or no label and are left out" in caplog.text


WRONG = {
    "rows.csv.gz": (b"no gzip", "cannot be unpacked"),
    "rows.parquet": (b"no parquet", "is no Parquet file that can be read"),
    "rows.json": (b'["a", "b"]', "must be an array of objects"),
    "rows.xlsx": (b"", "must end in .csv, .tsv, .json, .jsonl, .ndjson, .parquet or be packed with .gz"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_read_is_one_line(name: str, tmp_path: Path) -> None:
    content, words = WRONG[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=words) as caught:
        read_rows(tmp_path / name)
    assert len(str(caught.value).splitlines()) == 1


def test_folders_that_are_no_split_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(BadInput, match="none that `datasets` saved"):
        read_rows(tmp_path / "plain")
    datasets.DatasetDict({"train": class_numbers()}).save_to_disk(str(tmp_path / "both"))
    with pytest.raises(BadInput, match="holds the splits 'train'; name one of them"):
        read_rows(tmp_path / "both")
    assert len(read_rows(tmp_path / "both" / "train")) == len(ROWS)
