"""Files of rows by the end of their name: CSV, TSV, JSON, JSONL, Parquet, packed or not, and folders of `datasets`."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from archwright.data.files import decode_utf8, quote, quote_all, read_bytes
from archwright.errors import BadInput
from archwright.logs import logger

Line = tuple[int, Mapping[str, Any]]
"""Line number in the file, and column name -> value."""
PACKED = ".gz"
PARQUET = ".parquet"


def read_rows(path: Path) -> list[Line]:
    """All rows of a file, or of a folder that `datasets` saved."""
    if path.is_dir():
        return saved_rows(path)
    packed = path.suffix.lower() == PACKED
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    if ending == PARQUET and not packed:
        return parquet_rows(path)
    if ending not in READERS:
        rule = f"a data file must end in {', '.join([*READERS, PARQUET])} or be packed with {PACKED}, got {str(path)!r}"
        raise BadInput(f"{rule}; plain text is for --task lm.")
    raw = unpack(path) if packed else read_bytes(path)
    content = decode_utf8(raw, str(path))
    if not content.strip():
        raise BadInput(f"{path} is empty; a data file needs at least one row.")
    return list(READERS[ending](content, str(path)))


def unpack(path: Path) -> bytes:
    """The content of a file that gzip packed."""
    try:
        return gzip.decompress(read_bytes(path))
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path} cannot be unpacked: {error}; pack it again with gzip.") from None


def parquet_rows(path: Path) -> list[Line]:
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
    return name_classes(table.to_pylist(), {column: values.get("names") for column, values in features.items()})


def saved_rows(folder: Path) -> list[Line]:
    """The rows of a folder of `Dataset.save_to_disk`."""
    datasets = import_module("datasets")
    try:
        saved = datasets.load_from_disk(str(folder))
    except (OSError, ValueError, KeyError):
        raise BadInput(f"{folder} is a folder, but none that `datasets` saved; name a file in it.") from None
    if isinstance(saved, datasets.DatasetDict):
        raise BadInput(f"{folder} holds the splits {quote_all(saved)}; name one of them, such as {folder / 'train'}.")
    return name_classes(saved, {column: getattr(kind, "names", None) for column, kind in saved.features.items()})


def name_classes(rows: Iterable[Mapping[str, Any]], classes: Mapping[str, list[str] | None]) -> list[Line]:
    """Numbered rows, with the names of classes where numbers stand for them."""
    named = {column: names for column, names in classes.items() if names}
    lines: list[Line] = []
    for number, row in enumerate(rows, start=1):
        values = dict(row)
        for column, names in named.items():
            if isinstance(values.get(column), int) and 0 <= values[column] < len(names):
                values[column] = names[values[column]]
        lines.append((number, values))
    return lines


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
SEPARATORS = ",;\t|"
"""What stands between the fields of a CSV file, the usual one first."""


def csv_lines(content: str, source: str) -> Iterator[Line]:
    """Rows whose fields are separated as those of the header are; quotes may enclose separators and line breaks."""
    header = next(filter(str.strip, split_lines(content)), "")
    outside = "".join(header.split('"')[::2])
    separator = max(SEPARATORS, key=outside.count)  # of equal ones the first
    if separator != SEPARATORS[0]:
        logger.warning("%s: fields are separated by %r", source, separator)
    return table_lines(content, source, strict=True, delimiter=separator)


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


def json_lines(content: str, source: str) -> Iterator[Line]:
    """The objects of a JSON array, or of the only array in an object; otherwise one object per line."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return jsonl_lines(content, source)
    if isinstance(value, dict):
        arrays = [part for part in value.values() if isinstance(part, list)]
        value = arrays[0] if len(arrays) == 1 else [value]
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        rule = 'must be an array of objects such as [{"text": "...", "label": "..."}]'
        raise BadInput(f"{source} {rule}, got {quote(value)}.")
    return iter(list(enumerate(value, start=1)))


READERS: dict[str, Callable[[str, str], Iterator[Line]]] = {
    ".csv": csv_lines,
    ".tsv": tsv_lines,
    ".json": json_lines,
    ".jsonl": jsonl_lines,
    ".ndjson": jsonl_lines,
}
"""Readers of text files: content and name -> rows."""
