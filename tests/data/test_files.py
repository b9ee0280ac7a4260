"""One's own files: what is read, how it is split, and one clear line for everything that is wrong."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from archwright.data.tasks.task import Task, load_task
from archwright.errors import BadInput

TEXTS = [f"text number {i}" for i in range(40)]


def rows(labels: list[str], texts: list[str] = TEXTS) -> str:
    return "text,label\n" + "".join(f"{text},{labels[i % len(labels)]}\n" for i, text in enumerate(texts))


def own(folder: Path, content: str | bytes, name: str = "train.csv", **options: object) -> Task:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_task(train=folder / name, **options)


def write_csv(path: Path, table: list[list[str]], delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(table)
    return path


def sizes(task: Task) -> list[int]:
    return [len(rows) for rows in task.splits.values()]


def test_train_alone_is_split_in_three(tmp_path: Path) -> None:
    task = own(tmp_path, rows(["b", "a"]))
    assert sizes(task) == [28, 6, 6] and task.name == "train.csv" and task.labels == ("a", "b")
    assert (
        task.note == "train split 70/15/15 into train, validation, test with seed 0, rows that share text kept together"
    )
    assert sorted(text for part in task.splits.values() for text in part.texts) == sorted(TEXTS)


def test_a_validation_file_alone_chooses_and_the_test_rows_are_of_train(tmp_path: Path) -> None:
    held = tmp_path / "held.csv"
    held.write_text(rows(["a", "b"], ["another text", "and one more"]))
    task = own(tmp_path, rows(["a", "b"]), validation=held)
    assert sizes(task) == [34, 2, 6] and task.splits["validation"].texts == ["another text", "and one more"]
    assert "85/15 into train, test" in task.note and "the test rows are of the training file" in task.note


def test_one_held_out_file_is_the_test_set_of_the_paper(tmp_path: Path) -> None:
    held = tmp_path / "held.csv"
    held.write_text(rows(["a", "b"], TEXTS[:4]))
    by_validation = own(tmp_path, rows(["a", "b"]), validation=held, validation_role="test")
    by_test = own(tmp_path, rows(["a", "b"]), test=held)
    assert sizes(by_validation) == sizes(by_test) == [28, 12, 4]
    assert by_validation.splits["test"].texts == TEXTS[:4]
    assert "the validation file is the test set" in by_validation.note
    assert "test set" not in by_test.note


def test_three_files_are_taken_as_they_are(tmp_path: Path) -> None:
    for name, count in (("v.csv", 4), ("t.csv", 6)):
        (tmp_path / name).write_text(rows(["a", "b"], TEXTS[:count]))
    task = own(tmp_path, rows(["a", "b"]), validation=tmp_path / "v.csv", test=tmp_path / "t.csv")
    inside = "{0} of {0} {1} rows stand word for word inside training rows"
    assert sizes(task) == [40, 4, 6]
    assert task.note == "; ".join((inside.format(4, "validation"), inside.format(6, "test")))
    assert task.splits["train"].texts == TEXTS


def test_formats_agree(tmp_path: Path) -> None:
    table = [[text, f"{text} again", str(i % 3)] for i, text in enumerate(TEXTS)]
    header = ["first", "second", "class"]
    write_csv(tmp_path / "a.csv", [header, *table])
    write_csv(tmp_path / "a.tsv", [header, *table], "\t")
    objects = [dict(zip(header, [*row[:2], int(row[2])], strict=True)) for row in table]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, objects)))
    columns = {"text_column": "first", "text_pair_column": "second", "label_column": "class"}
    tasks = [load_task(train=tmp_path / f"a.{suffix}", **columns) for suffix in ("csv", "tsv", "jsonl")]
    for task in tasks:
        assert task.labels == ("0", "1", "2")
        assert task.splits["train"].texts == tasks[0].splits["train"].texts
        assert task.splits["train"].pairs == [f"{text} again" for text in task.splits["train"].texts]
        assert (task.splits["train"].targets == tasks[0].splits["train"].targets).all()


def test_quotes_line_breaks_and_long_texts_survive_csv(tmp_path: Path) -> None:
    texts = ['said "yes", then\nleft', "x" * 200_000, "zero\u2028width", "naïve 日本 🙂", *TEXTS]
    path = write_csv(tmp_path / "t.csv", [["text", "label"], *[[text, str(i % 2)] for i, text in enumerate(texts)]])
    read = [text for part in load_task(train=path).splits.values() for text in part.texts]
    assert sorted(read) == sorted(texts)
    assert csv.field_size_limit() == 131072  # put back


def test_a_quote_is_a_character_in_tsv(tmp_path: Path) -> None:
    lines = "".join(f'" {text}\t{i % 2}\n' for i, text in enumerate(TEXTS))
    task = own(tmp_path, "text\tlabel\n" + lines, "t.tsv")
    assert all(text.startswith('" text') for text in task.splits["train"].texts)


def test_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    task = own(tmp_path, b"\xef\xbb\xbf" + rows(["a", "b"]).replace("\n", "\r\n").encode())
    assert task.labels == ("a", "b") and all(text in TEXTS for text in task.splits["train"].texts)


def test_labels_are_sorted_as_numbers(tmp_path: Path) -> None:
    assert own(tmp_path, rows(["10", "9", "-1"])).labels == ("-1", "9", "10")
    assert own(tmp_path, rows(["10", "9", "word"])).labels == ("9", "10", "word")
    values = [json.dumps({"text": text, "label": i % 2 == 0}) for i, text in enumerate(TEXTS)]
    assert own(tmp_path, "\n".join(values), "t.jsonl").labels == ("False", "True")


def test_regression_is_recognised_or_chosen(tmp_path: Path) -> None:
    found = own(tmp_path, rows(["0.5", "2", "3"]))
    assert found.regression and found.metric == "spearman" and found.splits["train"].targets.dtype == np.float32
    assert set(found.splits["train"].targets) == {0.5, 2.0, 3.0}
    assert not own(tmp_path, rows(["1", "2", "3"])).regression
    assert not own(tmp_path, rows(["1.0", "2.0"])).regression
    assert own(tmp_path, rows(["1", "2", "3"]), regression=True).regression
    assert own(tmp_path, rows(["0.5", "2"]), regression=False).labels == ("0.5", "2")


def test_numbers_in_the_file_are_ids_of_a_checkpoints_labels(tmp_path: Path) -> None:
    task = own(tmp_path, rows(["0", "1"]), labels=("bad", "good"))
    assert task.labels == ("bad", "good")
    expected = [TEXTS.index(text) % 2 for text in task.splits["train"].texts]
    assert task.splits["train"].targets.tolist() == expected
    assert own(tmp_path, rows(["2", "1"]), labels=("2", "1")).labels == ("2", "1")


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("t.csv", b"", "t.csv is empty"),
        ("t.csv", b" \n\n", "t.csv is empty"),
        ("t.csv", b"text,label\n", "t.csv has a header but no rows"),
        ("t.csv", "text,label\ncaf\xe9,1\n".encode("latin-1"), r"must be UTF-8, .*0xe9 at position 14"),
        ("t.csv", b"words,label\na,1\n", "has no column 'text'; it has 'words', 'label'"),
        ("t.csv", b"text,kind\na,1\n", "has no column 'label'; it has 'text', 'kind'"),
        ("t.csv", b"text,text,label\na,b,1\n", "names a column twice"),
        ("t.csv", b"text,label\na,1\nb\n", "line 3 of .* has 1 fields, the header 2"),
        ("t.csv", b'text,label\n"a,1\nb,2\n', "is broken: unexpected end of data"),
        ("t.csv", b'text,label\n"a"b,1\n', "line 2 of .* is broken"),
        ("t.csv", b"text,label\na,1\n ,2\n", "line 3 of .* has no text in 'text'"),
        ("t.csv", b"text,label\na,1\nb,\n", "line 3 of .* has no label in 'label'"),
        ("t.csv", rows(["a", "b"], TEXTS[:9]).encode(), "has 9 rows; at least 10 are needed"),
        ("t.csv", rows(["a"]).encode(), "has only the class 'a'"),
        ("t.csv", rows(["0.5"]).encode(), "every target of .* is '0.5'"),
        ("t.csv", rows(["0.5", "nan"]).encode(), r"row 2 of .* must be a finite number, got 'nan' \(20 such rows\)"),
        ("t.csv", rows(["0.5", "1e300"]).encode(), "must be a finite number, got '1e300'"),
        ("t.jsonl", b'{"text": "a", "label": 1}\n{"text": \n', "line 2 of .* is not JSON: Expecting value at column"),
        ("t.jsonl", b"[1]\n", "line 1 of .* must be an object"),
        ("t.jsonl", b"[" * 100_000, "nested too deeply"),
        ("t.jsonl", b'{"label": 1}\n', "has no column 'text'; it has 'label'"),
        ("t.jsonl", b'{"text": 5, "label": 1}\n', "'text' must be a text, got 5"),
        ("t.jsonl", b'{"text": "a", "label": [1]}\n', "must have two labels or more, got '1'"),
        ("t.jsonl", b'{"text": "a", "label": null}\n', "has no label"),
        ("t.jsonl", b'{"text": "\\ud800", "label": 1}\n', "broken Unicode character"),
        ("t.xlsx", b"x", "must end in .csv, .tsv, .json, .jsonl, .ndjson, .parquet or be packed with .gz, got "),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, line: str) -> None:
    with pytest.raises(BadInput, match=line) as caught:
        own(tmp_path, content, name)
    assert "\n" not in str(caught.value)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, line in (
        ("no.csv", "there is no file"),
        ("folder.csv", "none that `datasets` saved"),
        ("a\0b.csv", "there is no file"),
    ):
        with pytest.raises(BadInput, match=line):
            load_task(train=tmp_path / name)


def test_labels_unseen_in_training(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(rows(["a", "c", "d"], TEXTS[:10]))
    with pytest.raises(
        BadInput, match=r"v.csv has labels that .*train.csv does not have: 'c', 'd'; known are 'a', 'b'"
    ):
        own(tmp_path, rows(["a", "b"]), validation=tmp_path / "v.csv")


def test_a_word_among_regression_targets(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text(rows(["0.5", "many"], TEXTS[:10]))
    with pytest.raises(BadInput, match="must be a finite number, got 'many'"):
        own(tmp_path, rows(["0.5", "1"]), validation=tmp_path / "v.csv")


def test_a_rare_class_that_training_misses(tmp_path: Path) -> None:
    content = rows(["a", "b"]) + "the only one,c\n"
    lines = []
    for seed in range(20):
        try:
            assert 2 in own(tmp_path, content, seed=seed).splits["train"].targets
        except BadInput as error:
            lines.append(str(error))
    assert 0 < len(lines) < 20
    assert all("no row of class 'c' among the 29 training rows" in line for line in lines)
