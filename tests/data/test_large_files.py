"""Large files are read row by row, and long texts cut before anything is made of them."""

from pathlib import Path

import numpy as np
import pytest

from archwright.data import encoding
from archwright.data.encoding import text_slices
from archwright.data.tasks import tables
from archwright.data.tasks.table_files import stream_rows
from archwright.data.tasks.tables import Columns, FewRows, parse_file
from archwright.data.tasks.task import load_task
from archwright.errors import BadInput
from tests.compression.runs import table_file


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return table_file(tmp_path / "rows.csv", 400)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LARGE", 5_000)
    monkeypatch.setattr(tables, "KEPT", 3_000)


def test_rows_are_streamed(rows: Path) -> None:
    lines = stream_rows(rows)
    number, first = next(lines)
    assert number == 2 and set(first) == {"text", "other", "label", "score"}
    assert sum(1 for _ in lines) == 399


@pytest.mark.usefixtures("small_limits")
def test_of_a_large_file_a_random_part_is_kept(rows: Path) -> None:
    whole, part = parse_file(rows, Columns()), parse_file(rows, Columns(), FewRows(20, 0))
    assert len(whole) == 400 == part.total and whole.total is None
    assert 20 <= len(part) < 200
    assert sum(map(len, part.texts)) + sum(map(len, part.labels)) <= tables.KEPT
    places = [whole.texts.index(text) for text in part.texts]
    assert places == sorted(places) and set(part.labels) == {"good", "bad"}
    assert parse_file(rows, Columns(), FewRows(20, 0)).texts == part.texts
    assert parse_file(rows, Columns(), FewRows(20, 1)).texts != part.texts
    assert len(parse_file(rows, Columns(), FewRows(300, 0))) == 300  # as many as are asked for, however long they are


@pytest.mark.usefixtures("small_limits")
def test_a_task_of_a_large_file(rows: Path) -> None:
    task = load_task(train=rows, train_rows=30)
    assert len(task.splits["train"]) == 30
    assert "of 400 rows of a large file drawn at random" in task.note
    assert "large file" not in load_task(train=rows).note  # all rows are wanted


@pytest.mark.usefixtures("small_limits")
def test_a_mistake_in_a_row_that_is_not_drawn_is_found(rows: Path) -> None:
    with open(rows, "a") as file:
        file.write(" ,x,good,1\n")
    with pytest.raises(BadInput, match=r"line 402 of .* has no text"):
        parse_file(rows, Columns(), FewRows(20, 0))


def test_a_text_beyond_all_measure_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST_TEXT", 100)
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"{'word ' * size},{size % 2}\n" for size in (3, 2000)))
    assert list(map(len, parse_file(path, Columns()).texts)) == [15, 100]


def test_long_texts_have_the_same_tokens(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(minilm)
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["river", "unbelievably", "x1", "ä", "..."], size=size)) for size in (5, 400, 3000)]
    monkeypatch.setattr(encoding, "CHARACTERS_PER_TOKEN", 10**9)
    expected = encoding.tokenize(texts, texts[::-1], tokenizer, 16)
    monkeypatch.setattr(encoding, "CHARACTERS_PER_TOKEN", 60)
    found = encoding.tokenize(texts, texts[::-1], tokenizer, 16)
    assert (found.ids == expected.ids).all() and (found.lengths == expected.lengths).all()


def test_texts_go_to_the_tokenizer_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CHARACTERS_PER_CALL", 10)
    monkeypatch.setattr(encoding, "TEXTS_PER_CALL", 3)
    texts = ["a", "bb", "ccc", "d" * 50, "e", "f" * 9, "g"]
    parts = list(text_slices(texts, most=8))
    assert [texts[part] for part in parts] == [["a", "bb", "ccc"], ["d" * 50, "e"], ["f" * 9, "g"]]
    assert list(text_slices([], most=8)) == []
