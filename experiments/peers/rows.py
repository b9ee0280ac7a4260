"""The rows that all methods read: training, validation and test rows of a task and seed as CSV files.

The test rows are the same for every seed. They are the task's dev set, and where that is small (SST-2) or missing
(movie reviews) rows of the training file beside it. In tasks about one text, no text of one file overlaps with a text
of another: none of them shares four words in a row with it, is a text of three words inside of it, or equals it. In
tasks about two texts no pair stands in two files.
"""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:  # the peers' processes only read the files, without archwright
    from archwright.data.tasks.tables import Examples, RawTask

TEST_ROWS = 2072
"""SST-2's 872 dev rows and 1,200 more."""
FEWEST_WORDS = 5
"""Of a row of the training file that becomes a test row: most of SST-2's are fragments that no dev row looks like."""
TEST_SEED = 13
FILES = ("train", "validation", "test")


@dataclass(frozen=True)
class Row:
    """One example; the label is a class name, or a number as text."""

    text: str
    pair: str | None
    label: str


@dataclass
class TextIndex:
    """Texts that others must not overlap with."""

    pairs: bool
    """Whether a row is two texts; then only equal rows overlap."""
    wholes: set[tuple[str, ...]] = field(default_factory=set)
    """What must not stand inside another text: runs of four words, or a shorter text as a whole."""
    parts: set[tuple[str, ...]] = field(default_factory=set)
    """All that stands inside the texts."""

    def add(self, row: Row) -> None:
        self.wholes |= self.whole_phrases(row)
        self.parts |= self.all_phrases(row)

    def overlaps(self, row: Row) -> bool:
        return not (self.parts.isdisjoint(self.whole_phrases(row)) and self.wholes.isdisjoint(self.all_phrases(row)))

    def whole_phrases(self, row: Row) -> set[tuple[str, ...]]:
        words = tuple(row.text.lower().split())
        if self.pairs:
            return {(*words, "|", *(row.pair or "").lower().split())}
        return {words} if len(words) < 4 else set(runs(words, 4))

    def all_phrases(self, row: Row) -> set[tuple[str, ...]]:
        words = tuple(row.text.lower().split())
        shorter = set() if self.pairs else set(runs(words, 3))
        return self.whole_phrases(row) | shorter


def runs(words: tuple[str, ...], length: int) -> Iterator[tuple[str, ...]]:
    return (words[start : start + length] for start in range(len(words) - length + 1))


def write_rows(
    task: str, seed: int, folder: Path, *, data: Path | None, train_rows: int = 4000, validation_rows: int = 800
) -> Path:
    """The folder with train.csv, validation.csv, test.csv and rows.json (labels, metric, counts); written once."""
    from archwright.data.tasks.labelled import load_named_task
    from archwright.data.tasks.tables import Columns
    from archwright.store import atomic_folder

    if folder.exists():
        return folder
    where = data / task.removeprefix("glue/") if data and task.startswith("glue/") else None
    raw = load_named_task(task, where, Columns())
    files = split_task_rows(raw, seed, train_rows=train_rows, validation_rows=validation_rows)
    facts = {
        "task": task,
        "seed": seed,
        "metric": raw.metric,
        "pairs": raw.train.pairs is not None,
        "labels": None if raw.regression else sorted(raw.labels or {row.label for row in files["train"]}),
        "positive": raw.labels[1] if raw.labels and len(raw.labels) == 2 else None,
        "rows": {name: len(rows) for name, rows in files.items()},
    }
    with atomic_folder(folder) as beside:
        for name, rows in files.items():
            write_csv(beside / f"{name}.csv", rows)
        (beside / "rows.json").write_text(json.dumps(facts, indent=1))
    return folder


def split_task_rows(raw: "RawTask", seed: int, *, train_rows: int, validation_rows: int) -> dict[str, list[Row]]:
    """Test rows first, the same for every seed; then validation rows, then training rows, each beside the others."""
    pairs, official = raw.train.pairs is not None, raw.test or raw.validation
    pool = list(list_rows(raw.train))
    test, rng = TextIndex(pairs), np.random.default_rng(TEST_SEED)
    test_rows = shuffle(list_rows(official), rng)[:TEST_ROWS] if official else []
    for row in test_rows:
        test.add(row)
    if not pairs:
        long_rows = [row for row in shuffle(pool, rng) if len(row.text.split()) >= FEWEST_WORDS]
        test_rows += take(long_rows, TEST_ROWS - len(test_rows), index=test)
    clean = [row for row in pool if not test.overlaps(row)]
    rng = np.random.default_rng((seed, TEST_SEED))
    shuffled, validation = shuffle(clean, rng), TextIndex(pairs)
    chosen = shuffled[:validation_rows]
    for row in chosen:
        validation.add(row)
    training = [row for row in shuffled[validation_rows:] if not validation.overlaps(row)]
    return {"train": training[:train_rows], "validation": chosen, "test": test_rows}


def list_rows(examples: "Examples") -> Iterator[Row]:
    pairs = examples.pairs or [None] * len(examples)
    return (Row(*values) for values in zip(examples.texts, pairs, examples.labels, strict=True))


def shuffle(rows: Iterable[Row], rng: np.random.Generator) -> list[Row]:
    """The rows in a new order, equal texts only once."""
    unique = list({(row.text, row.pair): row for row in rows}.values())
    return [unique[i] for i in rng.permutation(len(unique))]


def take(rows: Iterable[Row], number: int, *, index: TextIndex) -> list[Row]:
    """The first rows that overlap neither with the index nor with each other; they are added to it."""
    chosen: list[Row] = []
    for row in rows:
        if len(chosen) >= number:
            break
        if not index.overlaps(row):
            index.add(row)
            chosen.append(row)
    return chosen


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    pairs = any(row.pair is not None for row in rows)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", *(["pair"] if pairs else []), "label"])
        writer.writerows([row.text, *([row.pair] if pairs else []), row.label] for row in rows)


def read_csv(path: Path) -> list[Row]:
    with open(path, newline="", encoding="utf-8") as file:
        return [Row(row["text"], row.get("pair"), row["label"]) for row in csv.DictReader(file)]
