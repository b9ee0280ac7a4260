"""Arrays of every training row in files that are mapped into memory: what a teacher has said of the row.

A row counts as kept once its checksum stands in the file of checksums, which is written last, and only as long as its
numbers have that checksum. So a row that a kill has cut in half, or that was damaged later, is missing and is worked
out again; nothing else has to be repaired. Several processes may share a folder: a row that two of them write at once
has the numbers of one of them, or is missing.

All room is taken when the files are made, because a mapped file that grows on a full disk ends the process.
"""

import errno
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from archwright.errors import BadInput
from archwright.store import atomic_folder
from archwright.store.files import read_json, write_json

NOTE = "answers.json"
SUMS = "checksums.bin"
SUM_BYTES = 4
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Arrays = dict[str, NDArray[Any]]
"""Of one row, by name."""


class Part(NamedTuple):
    """One kind of numbers that is kept of every row."""

    numbers: int
    """Of a token or of a row."""
    per_token: bool
    dtype: str

    @property
    def size(self) -> int:
        """Bytes per token or row."""
        return self.numbers * np.dtype(self.dtype).itemsize


Parts = Mapping[str, Part]


def bytes_of_rows(parts: Parts, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bytes that the first 0, 1, ... rows need; row i has the tokens `starts[i]` to `starts[i + 1]`."""
    per_token = sum(part.size for part in parts.values() if part.per_token)
    per_row = SUM_BYTES + sum(part.size for part in parts.values() if not part.per_token)
    return starts * per_token + np.arange(len(starts)) * per_row


class AnswerCache:
    """The answers to the first rows of a training, as many as fit."""

    def __init__(self, folder: Path, parts: Parts, starts: NDArray[np.int64]):
        """`starts` of the rows that are kept, and the end of the last."""
        self.folder, self.parts, self.starts = folder, parts, starts
        self.damaged = 0
        self.tables = {
            name: np.memmap(folder / f"{name}.bin", part.dtype, "r+", shape=(self.units(part), part.numbers))
            for name, part in parts.items()
        }
        self.sums = np.memmap(folder / SUMS, np.uint32, "r+", shape=(len(self),))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def units(self, part: Part) -> int:
        """How often a part is there: once per token or per row."""
        return int(self.starts[-1]) if part.per_token else len(self)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return int(bytes_of_rows(self.parts, self.starts)[-1])

    def place(self, name: str, row: int) -> slice:
        if self.parts[name].per_token:
            return slice(int(self.starts[row]), int(self.starts[row + 1]))
        return slice(row, row + 1)

    def read(self, row: int) -> Arrays | None:
        """What was kept of this row, not to be changed; None: nothing whole is there."""
        noted = int(self.sums[row])
        if noted == 0:
            return None
        arrays: Arrays = {name: table[self.place(name, row)] for name, table in self.tables.items()}
        if checksum(arrays) != noted:
            self.sums[row] = 0
            self.damaged += 1
            return None
        return arrays

    def write(self, row: int, arrays: Arrays) -> None:
        for name, table in self.tables.items():
            table[self.place(name, row)] = arrays[name]
        self.sums[row] = checksum(arrays)


def checksum(arrays: Arrays) -> int:
    """CRC-32 of all numbers, never 0, which means that there are none."""
    total = 0
    for _, array in sorted(arrays.items()):
        total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return total or 1


def open_cache(folder: Path, parts: Parts, starts: NDArray[np.int64], way_out: str) -> AnswerCache:
    """The cache in this folder, made where there is none whole; BadInput with the `way_out` where the disk is too full.

    What the numbers are answers to must follow from the name of the folder.
    """
    shape = {"rows": len(starts) - 1, "tokens": int(starts[-1]), "parts": {name: list(p) for name, p in parts.items()}}
    if not is_whole(folder, shape):
        make_files(folder, parts, starts, shape, way_out)
    return AnswerCache(folder, parts, starts)


def is_whole(folder: Path, shape: Mapping[str, Any]) -> bool:
    """Whether the files are there, of this shape and as long as they were made."""
    if not (folder / NOTE).is_file() or read_json(folder / NOTE)["shape"] != shape:
        return False
    sizes = read_json(folder / NOTE)["sizes"]
    return all((folder / name).is_file() and (folder / name).stat().st_size == size for name, size in sizes.items())


def make_files(folder: Path, parts: Parts, starts: NDArray[np.int64], shape: Mapping[str, Any], way_out: str) -> None:
    """Empty files with all the room they will need, in place of what is there."""
    rows, tokens = len(starts) - 1, int(starts[-1])
    sizes = {f"{name}.bin": part.size * (tokens if part.per_token else rows) for name, part in parts.items()}
    sizes[SUMS] = SUM_BYTES * rows
    needed = sum(sizes.values())
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free
    if needed > free:
        raise BadInput(no_room(folder, needed, f"{free / 1e9:.2f} GB are free", way_out))
    try:
        with atomic_folder(folder) as beside:
            for name, size in sizes.items():
                with open(beside / name, "wb") as file:
                    os.posix_fallocate(file.fileno(), 0, size)
            write_json(beside / NOTE, {"shape": dict(shape), "sizes": sizes})
    except OSError as error:
        if error.errno in NO_ROOM:
            raise BadInput(no_room(folder, needed, str(error.strerror), way_out)) from error
        raise


def no_room(folder: Path, needed: int, found: str, way_out: str) -> str:
    return f"the teacher's answers need {needed / 1e9:.2f} GB in {folder.parent}, {found}; {way_out}."
