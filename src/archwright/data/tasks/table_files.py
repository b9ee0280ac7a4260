"""Files of rows by the end of their name: CSV, TSV, JSON, JSONL, Parquet, packed or not, and folders of `datasets`."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from archwright.data.files import decode_utf8, quote, quote_all, read_bytes
from archwright.errors import BadInput
from archwright.logs import logger

Line = tuple[int, Mapping[str, Any]]
"""Line number in the file, and column name -> value."""
PACKED = ".gz"
PARQUET = ".parquet"


class Lines(list[Line]):
    """Rows, and the names of classes that the data declares."""

    def __init__(self, lines: Iterable[Line], classes: Mapping[str, list[str]] | None = None):
        super().__init__(lines)
        self.classes: dict[str, list[str]] = dict(classes or {})
        """Column -> names in the order of their numbers."""


def ending_of(path: Path) -> str:
    """How the name of a file ends, before .gz."""
    return (Path(path.stem) if path.suffix.lower() == PACKED else path).suffix.lower()


def holds_rows(path: Path) -> bool:
    """Whether `read_rows` knows such files by their name."""
    return path.is_dir() or ending_of(path) in (*READERS, PARQUET)


def first_row(path: Path) -> Mapping[str, Any] | None:
    """The first row of data that can hold lists, read without the others where that is possible; None of others."""
    ending = ending_of(path)
    if not path.is_dir() and ending not in (PARQUET, ".json", ".jsonl", ".ndjson"):
        return None
    if ending in (".jsonl", ".ndjson") and path.suffix.lower() != PACKED:
        try:
            with open(path, encoding="utf-8-sig") as lines:
                row = json.loads(next(filter(str.strip, lines), "null"))
        except (OSError, ValueError, RecursionError):
            return None
        return row if isinstance(row, dict) else None
    try:
        rows = read_rows(path)
    except BadInput:
        return None  # whoever reads all of it says what is wrong
    return rows[0][1] if rows else None


def read_rows(path: Path) -> Lines:
    """All rows of a file, or of a folder that `datasets` saved."""
    if path.is_dir():
        return saved_rows(path)
    packed, ending = path.suffix.lower() == PACKED, ending_of(path)
    if ending == PARQUET and not packed:
        return parquet_rows(path)
    if ending not in READERS:
        rule = f"a data file must end in {', '.join([*READERS, PARQUET])} or be packed with {PACKED}, got {str(path)!r}"
        raise BadInput(f"{rule}; plain text is for --task lm and embeddings.")
    return Lines(stream_rows(path))


def stream_rows(path: Path) -> Iterator[Line]:
    """The rows of a text file one after another: no more than one of them is in memory, but for .json."""
    ending, source = ending_of(path), str(path)
    read_bytes(path, most=1)  # one clear line where it cannot be read
    with open_text(path) as file:
        try:
            lines = skip_blank(file)
            first = next(lines, None)
            if first is None:
                raise BadInput(f"{path} is empty; a data file needs at least one row.")
            yield from READERS[ending](chain([first], lines), source)
        except UnicodeDecodeError:
            decode_utf8(unpack(path) if path.suffix.lower() == PACKED else read_bytes(path), source)
            raise
        except (gzip.BadGzipFile, EOFError, zlib.error):
            unpack(path)
            raise


def open_text(path: Path) -> TextIO:
    """The file with all ends of lines as \\n, without byte order mark."""
    open_file: Any = gzip.open if path.suffix.lower() == PACKED else open
    file: TextIO = open_file(path, "rt", encoding="utf-8-sig")
    return file


def skip_blank(lines: Iterable[str]) -> Iterator[str]:
    """The lines with their ends from the first that is not blank on; the blank ones before keep their numbers."""
    blank: list[str] = []
    rest = iter(lines)
    for line in rest:
        if line.strip():
            yield from blank
            yield line
            yield from rest
            return
        blank.append(line)


def unpack(path: Path) -> bytes:
    """The content of a file that gzip packed."""
    try:
        return gzip.decompress(read_bytes(path))
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path} cannot be unpacked: {error}; pack it again with gzip.") from None


def parquet_rows(path: Path) -> Lines:
    """The rows of a Parquet file; class numbers that `datasets` wrote become their names."""
    parquet = import_module("pyarrow.parquet")
    read_bytes(path)
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are both
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise BadInput(f"{path} is no Parquet file that can be read: {reason[:200]}") from None
    noted = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    features = noted.get("info", {}).get("features", {})
    names = {
        column: values.get("names") or (values.get("feature") or {}).get("names") for column, values in features.items()
    }
    return name_classes(table.to_pylist(), names)


def saved_rows(folder: Path) -> Lines:
    """The rows of a folder of `Dataset.save_to_disk`."""
    datasets = import_module("datasets")
    try:
        saved = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError):
        raise BadInput(f"{folder} is a folder, but none that `datasets` saved; name a file in it.") from None
    if isinstance(saved, datasets.DatasetDict):
        raise BadInput(f"{folder} holds the splits {quote_all(saved)}; name one of them, such as {folder / 'train'}.")
    return name_classes(saved, feature_names(saved.features))


def feature_names(features: Mapping[str, Any]) -> dict[str, list[str] | None]:
    """The names of classes in columns of `datasets`: of labels, or of lists of labels."""
    inner = {column: getattr(kind, "feature", kind) for column, kind in features.items()}
    return {column: getattr(kind, "names", None) for column, kind in inner.items()}


def name_classes(rows: Iterable[Mapping[str, Any]], classes: Mapping[str, list[str] | None]) -> Lines:
    """Numbered rows, with the names of classes where numbers stand for them, also in lists."""
    named = {column: names for column, names in classes.items() if names}

    def name(value: Any, names: list[str]) -> Any:
        if isinstance(value, list):
            return [name(each, names) for each in value]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else value

    lines = Lines((), named)
    for number, row in enumerate(rows, start=1):
        values = dict(row)
        values |= {column: name(values[column], names) for column, names in named.items() if column in values}
        lines.append((number, values))
    return lines


def split_lines(content: str) -> list[str]:
    """Lines with their ends; `str.splitlines` would also break at characters that are text, such as U+2028."""
    return [f"{line}\n" for line in content.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def table_lines(lines: Iterable[str], source: str, **dialect: Any) -> Iterator[Line]:
    """Rows under a header, each with as many fields as the header."""
    reader = csv.reader(lines, **dialect)
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
SEPARATORS = ",;\t|"
"""What stands between the fields of a CSV file, the usual one first."""


def csv_lines(lines: Iterable[str], source: str) -> Iterator[Line]:
    """Rows whose fields are separated as those of the header are; quotes may enclose separators and line breaks."""
    rest = iter(lines)
    before: list[str] = []
    header = ""
    while not header.strip() and (line := next(rest, None)) is not None:
        before.append(line)
        header = line
    outside = "".join(header.split('"')[::2])
    separator = max(SEPARATORS, key=outside.count)  # of equal ones the first
    if separator != SEPARATORS[0]:
        logger.warning("%s: fields are separated by %r", source, separator)
    return table_lines(chain(before, rest), source, strict=True, delimiter=separator)


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


def jsonl_lines(lines: Iterable[str], source: str) -> Iterator[Line]:
    """One JSON object per line; blank lines are skipped."""
    for number, line in enumerate(lines, start=1):
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


def json_lines(lines: Iterable[str], source: str) -> Iterator[Line]:
    """The objects of a JSON array, or of the only array in an object; otherwise one object per line."""
    content = "".join(lines)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return jsonl_lines(split_lines(content), source)
    if isinstance(value, dict):
        arrays = [part for part in value.values() if isinstance(part, list)]
        value = arrays[0] if len(arrays) == 1 else [value]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        rule = 'must be an array of objects such as [{"text": "...", "label": "..."}]'
        raise BadInput(f"{source} {rule}, got {quote(value)}.")
    return iter(list(enumerate(value, start=1)))


READERS: dict[str, Callable[[Iterable[str], str], Iterator[Line]]] = {
    ".csv": csv_lines,
    ".tsv": tsv_lines,
    ".json": json_lines,
    ".jsonl": jsonl_lines,
    ".ndjson": jsonl_lines,
}
"""Readers of text files: lines and name -> rows."""
