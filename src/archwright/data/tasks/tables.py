"""Labelled texts as they are read, labels still strings and nothing split yet; a user's own files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from archwright.data.files import is_unicode, quote, quote_all
from archwright.data.tasks.table_files import READERS, Line, ending_of, read_rows, stream_rows
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.random_streams import LARGE_FILES

LARGE = 16_000_000
"""Bytes of a file of which not all rows are kept in memory where few are asked for."""
KEPT = 8_000_000
"""Characters of such a file that are kept, more where that is needed for as many rows as are asked for."""
LONGEST_TEXT = 4_000_000
"""Characters of one text."""


@dataclass(frozen=True)
class FewRows:
    """So many rows are wanted of a large file, drawn with this seed."""

    rows: int
    seed: int

    def of_share(self, share: float) -> "FewRows":
        """Of a file of which only this share trains."""
        return FewRows(ceil(1.1 * self.rows / share), self.seed)

    def draw(self, rows: Iterable[tuple[str, ...]], source: str) -> tuple[list[tuple[str, ...]], int]:
        """A random part of the rows in their order, and how many there are.

        Every row draws a number; those with the smallest stay, as many as have KEPT characters, or `self.rows`.
        """
        rng, characters, total = np.random.default_rng((self.seed, LARGE_FILES)), 0, 0
        kept: list[tuple[float, int, tuple[str, ...]]] = []
        labels: set[str] = set()
        for row in rows:
            if len(labels) <= MOST_CLASSES:
                labels.add(row[0])
            heappush(kept, (-rng.random(), total, row))
            total += 1
            characters += sum(len(text) for text in row)
            while characters > KEPT and len(kept) > self.rows:
                characters -= sum(len(text) for text in heappop(kept)[2])
        chosen = [row for _, _, row in sorted(kept, key=lambda entry: entry[1])]
        missing = labels - {row[0] for row in chosen}
        if missing and len(labels) <= MOST_CLASSES:
            logger.warning("%s: no row with %s is among those that were drawn", source, quote_all(sorted(missing)))
        return chosen, total


MOST_CLASSES = 1000
"""Different labels; more are measurements."""


@dataclass(frozen=True)
class Examples:
    """One file's worth of labelled texts."""

    source: str
    """Where they come from, for messages."""
    texts: list[str]
    pairs: list[str] | None
    labels: list[str]
    choices: Mapping[str, list[str]] = field(default_factory=dict)
    """Multiple choice: column -> the choices it holds; none for other tasks."""
    total: int | None = None
    """Rows of the file where these are a random part of it."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class RawTask:
    """What a source of data knows about a task before it is split and its labels are numbered."""

    name: str
    train: Examples
    shares: Mapping[str, float]
    """Which splits are cut from `train`, and how much of it each takes."""
    validation: Examples | None = None
    test: Examples | None = None
    labels: tuple[str, ...] | None = None
    """Official names in id order; none: the sorted labels of `train`."""
    regression: bool | None = None
    """None: decided by the labels."""
    metric: str | None = None
    note: str = ""


USUAL_NAMES = {
    "text": {"sentence", "review", "content", "comment", "body", "document", "tweet", "utterance", "question"},
    "label": {"labels", "sentiment", "category", "class", "target", "stars", "rating", "intent", "score"},
}
"""Names that columns of texts and of labels often have."""


@dataclass(frozen=True)
class Columns:
    """Which column of a file holds what."""

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    choices: tuple[str, ...] = ()
    """Multiple choice: the columns of the choices, in the order in which labels count them."""
    skip_empty: bool = False
    """Whether rows without text or label are left out instead of refused."""
    labels: tuple[str, ...] = ()
    """Multi-label: a column of 0 and 1 for every label."""

    def recognise(
        self, row: Mapping[str, Any], usual_names: Mapping[str, set[str]] = USUAL_NAMES, source: str | None = None
    ) -> "Columns":
        """The same, with the one column of a usual name where the file has no `text` or no `label`.

        A line says so where a source is given.
        """
        found: dict[str, Any] = {}
        for field_name, usual in usual_names.items():
            if getattr(self, field_name) == field_name and field_name not in row:
                taken = {self.text, self.pair, self.label, *self.choices}
                names = [name for name in row if name.casefold() in usual and name not in taken]
                if len(names) == 1:
                    found[field_name] = names[0]
                    if source is not None:
                        logger.warning("%s has no column %r: %r is taken for it", source, field_name, names[0])
        return replace(self, **found)

    def is_empty(self, row: Mapping[str, Any]) -> bool:
        """Whether a text or the label of a row is missing or blank."""
        names = [name for name in (self.text, self.pair, self.label, *self.choices) if name is not None]
        return any(row.get(name, "-") is None or not str(row.get(name, "-")).strip() for name in names)

    def __post_init__(self) -> None:
        columns = [name for name in (self.text, self.pair, *self.choices, *self.labels) if name is not None]
        columns += [] if self.labels else [self.label]
        if len(set(columns)) < len(columns):
            raise BadInput(f"text, text pair, label and choices need a column each, got {quote_all(columns)}.")
        if len(self.choices) == 1:
            raise BadInput(f"--choice-columns needs two columns or more, got only {quote(self.choices[0])}.")
        if self.choices and self.pair is not None:
            rule = "multiple choice has one text and its choices"
            raise BadInput(f"{rule}; leave out --text-pair-column {quote(self.pair)} or --choice-columns.")


@dataclass(frozen=True)
class HeldOut:
    """The files beside the training file, and what is cut from it because one of them is missing."""

    validation: Path | None
    test: Path | None
    shares: Mapping[str, float]
    note: str = ""

    @classmethod
    def of(cls, validation: Path | None, test: Path | None, role: str) -> "HeldOut":
        """A validation file without a test file chooses, or is the test set as in the GLUE protocol (role "test")."""
        if validation is None:
            return cls(None, test, {"validation": 0.3} if test else {"validation": 0.15, "test": 0.15})
        if test is not None:
            return cls(validation, test, {})
        if role == "test":
            return cls(None, validation, {"validation": 0.3}, "the validation file is the test set")
        return cls(validation, None, {"test": 0.15}, "the test rows are of the training file")


def own_files(
    train: Path,
    validation: Path | None,
    test: Path | None,
    *,
    columns: Columns,
    role: str = "choose",
    few: "FewRows | None" = None,
) -> RawTask:
    """The user's files; the role is that of a validation file without a test file.

    Where `few` training rows are wanted of a large file, only a part of it is kept in memory.
    """
    files = HeldOut.of(validation, test, role)
    share = 1 - sum(files.shares.values())
    examples = read_file(train, columns, few and few.of_share(share))
    drawn = f"{len(examples):,} of {examples.total:,} rows of a large file drawn at random" if examples.total else ""
    return RawTask(
        name=train.name,
        train=examples,
        validation=read_file(files.validation, columns) if files.validation else None,
        test=read_file(files.test, columns) if files.test else None,
        shares=files.shares,
        note="; ".join(filter(None, (files.note, drawn))),
    )


def read_file(path: Path, columns: Columns, few: FewRows | None = None) -> Examples:
    """All rows of a file; a row without text or label is an error, or left out where `columns` says so.

    A file that was read to check it is not read again, unless it has changed.
    """
    if not path.is_file():
        return parse_file(path, columns, few)
    stat = path.stat()
    return read_once(path, columns, (stat.st_mtime_ns, stat.st_size), few)


@lru_cache(maxsize=3)
def read_once(path: Path, columns: Columns, stamp: tuple[int, int], few: FewRows | None) -> Examples:
    return parse_file(path, columns, few)


def parse_file(path: Path, columns: Columns, few: FewRows | None = None) -> Examples:
    is_text = not path.is_dir() and ending_of(path) in READERS
    lines = stream_rows(path) if is_text else iter(read_rows(path))
    first = next(lines, None)
    if first is None:
        raise BadInput(f"{path} has a header but no rows; a data file needs at least one row.")
    columns = columns.recognise(first[1], source=str(path))
    lines = chain([first], lines)
    if columns.skip_empty:
        lines = leave_out_empty(lines, columns, path)
    is_large = is_text and path.stat().st_size > LARGE
    return collect(lines, columns, str(path), few if is_large else None)


def leave_out_empty(lines: Iterable[Line], columns: Columns, path: Path) -> Iterator[Line]:
    """The rows with text and label; says how many have none."""
    empty = total = 0
    for line in lines:
        total += 1
        if columns.is_empty(line[1]):
            empty += 1
        else:
            yield line
    if empty:
        logger.warning("%s: %s of %s rows have no text or no label and are left out", path, f"{empty:,}", f"{total:,}")


def collect(lines: Iterable[Line], columns: Columns, source: str, few: FewRows | None = None) -> Examples:
    """Examples from named values; with `few` a random part of them."""
    names = [name for name in (columns.text, columns.pair, *columns.choices) if name is not None]
    read = ((label_of(line, columns.label, source), *(text_of(line, name, source) for name in names)) for line in lines)
    rows, total = (list(read), None) if few is None else few.draw(read, source)
    labels = [row[0] for row in rows]
    by_name = {name: [row[place] for row in rows] for place, name in enumerate(names, start=1)}
    pairs = None if columns.pair is None else by_name[columns.pair]
    choices = {column: by_name[column] for column in columns.choices}
    return Examples(source, by_name[columns.text], pairs, labels, choices, total)


def text_of(line: Line, column: str, source: str) -> str:
    """The text of one row, which must be there and be real Unicode; no network reads more of it than LONGEST_TEXT."""
    text = value_of(line, column, source)
    if not isinstance(text, str):
        raise BadInput(f"line {line[0]} of {source}: {quote(column)} must be a text, got {quote(text)}.")
    text = text[:LONGEST_TEXT]
    if not text.strip():
        raise BadInput(f"line {line[0]} of {source} has no text in {quote(column)}; fill it in or remove the row.")
    if not is_unicode(text):
        raise BadInput(f"line {line[0]} of {source}: {quote(column)} holds a broken Unicode character; remove it.")
    return text


def label_of(line: Line, column: str, source: str) -> str:
    """The label of one row as a string, however the file wrote it."""
    value = value_of(line, column, source)
    if value is not None and not isinstance(value, str | int | float):
        raise BadInput(f"line {line[0]} of {source}: {quote(column)} must be one label, got {quote(value)}.")
    label = "" if value is None else str(value).strip()
    if not label:
        raise BadInput(f"line {line[0]} of {source} has no label in {quote(column)}; fill it in or remove the row.")
    return label


def value_of(line: Line, column: str, source: str) -> Any:
    """What one row holds in a column."""
    number, values = line
    if column not in values:
        raise BadInput(f"line {number} of {source} has no column {quote(column)}; it has {quote_all(values)}.")
    return values[column]
