"""Labelled texts as they are read, labels still strings and nothing split yet; a user's own files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from archwright.data.files import is_unicode, quote, quote_all
from archwright.data.tasks.table_files import Line, Lines, read_rows
from archwright.errors import BadInput
from archwright.logs import logger


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
    train: Path, validation: Path | None, test: Path | None, *, columns: Columns, role: str = "choose"
) -> RawTask:
    """The user's files; the role is that of a validation file without a test file."""
    files = HeldOut.of(validation, test, role)
    return RawTask(
        name=train.name,
        train=read_file(train, columns),
        validation=read_file(files.validation, columns) if files.validation else None,
        test=read_file(files.test, columns) if files.test else None,
        shares=files.shares,
        note=files.note,
    )


def read_file(path: Path, columns: Columns) -> Examples:
    """All rows of a file; a row without text or label is an error, or left out where `columns` says so.

    A file that was read to check it is not read again, unless it has changed.
    """
    if not path.is_file():
        return parse_file(path, columns)
    stat = path.stat()
    return read_once(path, columns, (stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=3)
def read_once(path: Path, columns: Columns, stamp: tuple[int, int]) -> Examples:
    return parse_file(path, columns)


def parse_file(path: Path, columns: Columns) -> Examples:
    lines = read_rows(path)
    if not lines:
        raise BadInput(f"{path} has a header but no rows; a data file needs at least one row.")
    columns = columns.recognise(lines[0][1], source=str(path))
    if columns.skip_empty:
        full = Lines(line for line in lines if not columns.is_empty(line[1]))
        if len(full) < len(lines):
            logger.warning("%s: %s of %s rows have no text or no label and are left out", path, *counts(lines, full))
        lines = full
    return collect(lines, columns, str(path))


def counts(lines: list[Line], full: list[Line]) -> tuple[str, str]:
    return f"{len(lines) - len(full):,}", f"{len(lines):,}"


def collect(lines: list[Line], columns: Columns, source: str) -> Examples:
    """Examples from named values."""
    pairs = [text_of(line, columns.pair, source) for line in lines] if columns.pair is not None else None
    texts = [text_of(line, columns.text, source) for line in lines]
    choices = {column: [text_of(line, column, source) for line in lines] for column in columns.choices}
    return Examples(source, texts, pairs, [label_of(line, columns.label, source) for line in lines], choices)


def text_of(line: Line, column: str, source: str) -> str:
    """The text of one row, which must be there and be real Unicode."""
    text = value_of(line, column, source)
    if not isinstance(text, str):
        raise BadInput(f"line {line[0]} of {source}: {quote(column)} must be a text, got {quote(text)}.")
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
