"""Whatever is in a file: a task, or one line of BadInput, and nothing else."""

import csv
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from archwright.data.tasks.rows import sample_rows, split_rows
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

TEXT = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECT = st.fixed_dictionaries({}, optional={"text": JSON, "label": JSON, "more": JSON})
BITS = ['"', ",", "\t", "\n", "\r", "\r\n", "text", "label", "0", "1.5", "nan", "{", "}", ":", "[", "\x00", "\ufeff"]
SOUP = st.lists(st.sampled_from(BITS) | TEXT, max_size=60).map("".join)
HEADERS = st.sampled_from([b"", b"text,label\n", b"text\tlabel\n", b'{"text": "a", "label": 1}\n'])


def check(content: bytes, suffix: str) -> None:
    """Loads the content as a training file and checks what may come out."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"train{suffix}"
        path.write_bytes(content)
        try:
            task = load_task(train=path)
        except BadInput as error:
            assert "\n" not in str(error) and "\r" not in str(error) and len(str(error)) < 2000
            return
    rows = task.splits.values()
    assert all(text.strip() for part in rows for text in part.texts)
    assert all(np.isfinite(part.targets).all() and len(part.targets) == len(part) for part in rows)
    assert len(set(task.labels)) == len(task.labels) != 1


@settings(deadline=None, max_examples=150)
@given(HEADERS, st.binary(max_size=200) | SOUP.map(lambda text: text.encode("utf-8", "ignore")), st.data())
def test_any_bytes(header: bytes, body: bytes, data: st.DataObject) -> None:
    check(header + body, data.draw(st.sampled_from([".csv", ".tsv", ".jsonl"])))


@settings(deadline=None)
@given(st.lists(OBJECT | JSON, max_size=20))
def test_any_json(objects: list[object]) -> None:
    check("\n".join(map(json.dumps, objects)).encode(), ".jsonl")


LABELS = st.sampled_from(["a", "b", "0", "1", "0.5", "nan", "", "1e999", "x_1"])


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, LABELS), min_size=8, max_size=20))
def test_any_table(rows: list[tuple[str, str]]) -> None:
    file = io.StringIO()
    csv.writer(file).writerows([("text", "label"), *rows])
    check(file.getvalue().encode("utf-8", "ignore"), ".csv")


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=9), st.sampled_from("ab")), min_size=10, max_size=40),
    st.integers(0, 9),
)
def test_json_texts_come_back_unchanged(rows: list[tuple[str, str]], seed: int) -> None:
    rows = [(text.encode("utf-8", "ignore").decode() + "x", label) for text, label in rows] + [("p", "a"), ("q", "b")]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "train.jsonl"
        path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in rows))
        try:
            task = load_task(train=path, seed=seed)
        except BadInput as error:
            assert "no row of class" in str(error)
            return
    read = [
        (text, task.labels[target])
        for part in task.splits.values()
        for text, target in zip(part.texts, part.targets, strict=True)
    ]
    assert sorted(read) == sorted(rows)


@given(st.integers(10, 500), st.integers(0, 2**32), st.sampled_from([(0.3,), (0.15, 0.15), (0.1, 0.1), ()]))
def test_cuts_are_disjoint_and_complete(total: int, seed: int, shares: tuple[float, ...]) -> None:
    named = dict(zip(("validation", "test"), shares, strict=False))
    parts = split_rows(total, named, seed)
    assert sorted(np.concatenate(list(parts.values()))) == list(range(total))
    assert all(abs(len(parts[name]) - share * total) <= 0.5 or len(parts[name]) == 1 for name, share in named.items())
    assert all((np.diff(positions) > 0).all() for positions in parts.values())


@given(st.integers(1, 200), st.integers(0, 99), st.data())
def test_a_larger_part_contains_the_smaller(total: int, seed: int, data: st.DataObject) -> None:
    larger = data.draw(st.integers(1, total))
    smaller = data.draw(st.integers(1, larger))
    chosen = [set(sample_rows(total, wanted, (seed,))) for wanted in (smaller, larger)]
    assert chosen[0] <= chosen[1] and [len(rows) for rows in chosen] == [smaller, larger]
