"""Labelled texts as they are read, labels still strings and nothing split yet; a user's own CSV, TSV and JSONL."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from archwright.data.files import decode_utf8, is_unicode, quote, quote_all, read_bytes
from archwright.errors import BadInput

Line = tuple[int, Mapping[str, Any]]
"""Line number in the file, and column name -> value."""


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


@dataclass(frozen=True)
class Columns:
    """Which column of a file holds what."""

    text: str = "text"
    pair: str | None = None
    label: str = "label"
    choices: tuple[str, ...] = ()
    """Multiple choice: the columns of the choices, in the order in which labels count them."""

    def __post_init__(self) -> None:
        columns = [name for name in (self.text, self.pair, self.label, *self.choices) if name is not None]
        if len(set(columns)) < len(columns):
            raise BadInput(f"text, text pair, label and choices need a column each, got {quote_all(columns)}.")
        if len(self.choices) == 1:
            raise BadInput(f"--choice-columns needs two columns or more, got only {quote(self.choices[0])}.")
        if self.choices and self.pair is not None:
            rule = "multiple choice has one text and its choices"
            raise BadInput(f"{rule}; leave out --text-pair-column {quote(self.pair)} or --choice-columns.")


def own_files(train: Path, validation: Path | None, test: Path | None, *, columns: Columns) -> RawTask:
    """The user's files; a validation file without a test file is the test set, as in the GLUE protocol."""
    held_out = test or validation
    return RawTask(
        name=train.name,
        train=read_file(train, columns),
        validation=read_file(validation, columns) if validation and test else None,
        test=read_file(held_out, columns) if held_out else None,
        shares=SHARES[bool(validation) + bool(test)],
        note="the validation file is the test set" if validation and not test else "",
    )


SHARES: tuple[dict[str, float], ...] = ({"validation": 0.15, "test": 0.15}, {"validation": 0.3}, {})
"""What is cut from train when nothing, one file or two files are held out."""


def read_file(path: Path, columns: Columns) -> Examples:
    """All rows of a file; a row without text or label is an error."""
    if path.suffix.lower() not in READERS:
        rule = f"a data file must end in {', '.join(READERS)}, got {str(path)!r}"
        raise BadInput(f"{rule}; plain text is for --task lm.")
    content = decode_utf8(read_bytes(path), str(path))
    if not content.strip():
        raise BadInput(f"{path} is empty; a data file needs at least one row.")
    lines = list(READERS[path.suffix.lower()](content, str(path)))
    if not lines:
        raise BadInput(f"{path} has a header but no rows; a data file needs at least one row.")
    return collect(lines, columns, str(path))


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


def split_lines(content: str) -> list[str]:
    """Lines with their ends; `str.splitlines` would also break at characters that are text, such as U+2028."""
    return [f"{line}\n" for line in content.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def table_lines(content: str, source: str, **dialect: Any) -> Iterator[Line]:
    """Rows under a header, each with as many fields as the header."""
    reader = csv.reader(split_lines(content), **dialect)
    with long_fields():
        try:
            header = [name.strip() for name in next(filter(None, reader), [])]
            if len(set(header)) < len(header):
                raise BadInput(f"{source} names a column twice: {quote_all(header)}; rename one.")
            for fields in filter(None, reader):
                if len(fields) != len(header):
                    counts = f"has {len(fields)} fields, the header {len(header)}"
                    raise BadInput(f"line {reader.line_num} of {source} {counts}; {ROW_ADVICE}.")
                yield reader.line_num, dict(zip(header, fields, strict=True))
        except csv.Error as error:
            raise BadInput(f"line {reader.line_num} of {source} is broken: {error}; {ROW_ADVICE}.") from None


ROW_ADVICE = "quote texts with separators (CSV; a TSV file has no quotes, its texts neither tabs nor line breaks)"
csv_lines = partial(table_lines, strict=True)
"""Rows of comma-separated values; quotes may enclose commas and line breaks."""
tsv_lines = partial(table_lines, delimiter="\t", quoting=csv.QUOTE_NONE)
"""Rows of tab-separated values; a quote is an ordinary character there, as in GLUE's files."""


@contextmanager
def long_fields() -> Iterator[None]:
    """The csv module's limit of 128 KB per field lifted, and put back after."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def jsonl_lines(content: str, source: str) -> Iterator[Line]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in enumerate(split_lines(content), start=1):
        if line.strip():
            yield number, json_object(line, f"line {number} of {source}")


def json_object(line: str, where: str) -> Mapping[str, Any]:
    """The object on one line."""
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInput(f"{where} is not JSON: {error.msg} at column {error.colno}.") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{where} is not JSON that can be read: nested too deeply, or a number too long.") from None
    if not isinstance(value, dict):
        raise BadInput(f'{where} must be an object such as {{"text": "...", "label": "..."}}, got {quote(value)}.')
    return value


READERS: dict[str, Callable[[str, str], Iterator[Line]]] = {
    ".csv": csv_lines,
    ".tsv": tsv_lines,
    ".jsonl": jsonl_lines,
    ".ndjson": jsonl_lines,
}
