"""Texts for sentence embeddings: plain text, tables, pairs and scores, and what is refused."""

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archwright.data.batching import batch_of
from archwright.data.tasks.embedding_texts import SentenceRows, read_sentences
from archwright.data.tasks.rows import Rows
from archwright.data.tasks.tables import Columns
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput


class Words:
    """A tokenizer of one token per word."""

    model_max_length, pad_token_id = 100, 0

    def num_special_tokens_to_add(self, pair: bool) -> int:
        return 0

    def __call__(self, texts: list[str], pairs: None, **options: Any) -> dict[str, list[list[int]]]:
        assert pairs is None
        return {"input_ids": [[len(word) for word in text.split()] for text in texts]}


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pairs(number: int, **more: Any) -> list[dict[str, Any]]:
    return [{"sentence1": f"left {'a' * i}", "sentence2": f"right {'b' * i}", **more} for i in range(1, number + 1)]


def test_plain_text_has_a_text_per_line(tmp_path: Path) -> None:
    lines = [f"text {i}" for i in range(20)]
    file = tmp_path / "texts.txt"
    file.write_text("\n".join([*lines[:5], "", "  ", *lines[5:]]) + "\n")
    packed = tmp_path / "texts.txt.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    for path in (file, packed):
        rows = read_sentences(path, Columns())
        assert rows.texts == lines
        assert rows.pairs is None
        assert rows.targets.shape == (20, 0)


def test_texts_count_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("b\na\nb\nc\na\n")
    with caplog.at_level(logging.WARNING):
        assert read_sentences(file, Columns()).texts == ["b", "a", "c"]
    assert "2 of 5 rows repeat another one" in caplog.text


def test_pairs_and_scores_are_recognised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"genre": "x", **row, "score": i / 4} for i, row in enumerate(pairs(12))]
    with caplog.at_level(logging.WARNING):
        found = read_sentences(table(tmp_path / "rows.jsonl", rows), Columns())
    assert found.texts[0] == "left a"
    assert found.pairs is not None and found.pairs[1] == "right bb"
    assert found.targets.tolist() == [i / 4 for i in range(12)]
    assert "text is 'sentence1', second text is 'sentence2', score is 'score'" in caplog.text


def test_columns_can_be_said(tmp_path: Path) -> None:
    rows = [{"a": f"x{i}", "b": f"y{i}", "like": i} for i in range(12)]
    columns = Columns(text="a", pair="b", label="like")
    assert read_sentences(table(tmp_path / "rows.jsonl", rows), columns).targets.tolist() == list(range(12))
    with pytest.raises(BadInput, match="no column 'score'"):
        read_sentences(tmp_path / "rows.jsonl", Columns(text="a", pair="b", label="score"))


def test_labels_that_are_no_numbers_are_no_scores(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = read_sentences(table(tmp_path / "rows.jsonl", pairs(12, label="neutral")), Columns())
    assert found.targets.shape == (12, 0)
    assert "no numbers" in caplog.text


def test_a_table_of_texts(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("sentence,label\n" + "".join(f"text {i},{i}\n" for i in range(12)))
    found = read_sentences(tmp_path / "rows.csv", Columns())
    assert found.texts[3] == "text 3"
    assert found.pairs is None
    assert found.targets.shape == (12, 0)  # without pairs there is nothing that a number could score


def test_each_text_of_a_pair_is_read_by_itself() -> None:
    rows = SentenceRows(["one two", "three"], ["four five six", "a b"], np.array([1.0, 2.0], dtype=np.float32))
    encoded = rows.encode(Words(), 10)
    assert (len(encoded), encoded.choices) == (2, 2)
    batch = batch_of(encoded, np.arange(2))
    assert batch.inputs["input_ids"].tolist() == [[[3, 3, 0], [4, 4, 3]], [[5, 0, 0], [1, 1, 0]]]
    assert isinstance(rows.take(np.array([1])), SentenceRows)
    assert type(Rows(["a"], None, np.array([0])).take(np.array([0]))) is Rows


def test_the_task_says_what_it_is_judged_by(tmp_path: Path) -> None:
    scored = table(tmp_path / "scored.jsonl", [{**row, "score": i} for i, row in enumerate(pairs(100))])
    task = load_task("embeddings", train=scored)
    assert (task.kind, task.metric, task.labels) == ("embeddings", "cosine_spearman", ())
    assert load_task("embeddings", train=table(tmp_path / "plain.jsonl", pairs(100))).metric == "neighbour_recall"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "needs texts with --train"),
        ({"train": "scored.jsonl", "data": "."}, "takes no --data"),
        ({"train": "scored.jsonl", "regression": True}, "neither classes nor choices"),
        ({"train": "scored.jsonl", "test": "plain.jsonl"}, "pairs with scores in .* and pairs without scores in"),
        ({"train": "texts.txt", "text_column": "body"}, "plain text has no columns"),
        ({"train": "few.txt"}, "has 2 rows; at least 10"),
        ({"train": "empty.txt"}, "needs a text per line"),
        ({"train": "wrong.jsonl"}, "line 2 of .*finite number, got 'high' \\(1 such rows\\)"),
        ({"train": "equal.jsonl"}, "every score of .* is 3"),
        ({"train": "blank.jsonl"}, "line 1 of .* has no text in 'sentence1'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], rule: str, tmp_path: Path) -> None:
    table(tmp_path / "scored.jsonl", [{**row, "score": i} for i, row in enumerate(pairs(12))])
    table(tmp_path / "plain.jsonl", pairs(12))
    table(tmp_path / "equal.jsonl", pairs(12, score=3))
    table(tmp_path / "wrong.jsonl", [{**row, "score": "high" if i == 1 else i} for i, row in enumerate(pairs(12))])
    table(tmp_path / "blank.jsonl", [{**pairs(1)[0], "sentence1": " ", "score": 1}, *pairs(3, score=2)])
    (tmp_path / "texts.txt").write_text("".join(f"text {i}\n" for i in range(20)))
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    (tmp_path / "empty.txt").write_text("\n")
    paths = {
        name: tmp_path / value for name, value in options.items() if isinstance(value, str) and name != "text_column"
    }
    with pytest.raises(BadInput, match=rule) as caught:
        load_task("embeddings", **{**options, **paths})
    assert "\n" not in str(caught.value)
