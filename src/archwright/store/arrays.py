"""Arrays by name in one file: zip, whose own checksums tell a damaged file from a whole one."""

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from archwright.errors import Failed
from archwright.store.files import atomic_file

UNREADABLE = (
    *(OSError, ValueError, LookupError, EOFError, RuntimeError, TypeError, SyntaxError, MemoryError, OverflowError),
    *(BadZipFile, zlib.error, struct.error),
)
"""What reading raises, depending on the bit that was flipped."""


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], *, packed: bool = False) -> None:
    """All of them, or the file as it was."""
    save: Any = np.savez_compressed if packed else np.savez
    with atomic_file(path) as beside, open(beside, "wb") as file:
        save(file, **arrays)


def read_arrays(path: Path, *, way_out: str = "delete it and run the same command again") -> dict[str, NDArray[Any]]:
    """What `write_arrays` wrote, or one line when it is damaged."""
    try:
        with ZipFile(path) as file:
            broken = file.testzip()
        if broken is not None:
            raise BadZipFile(f"the checksum of {broken} is another one")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except FileNotFoundError:
        raise
    except UNREADABLE as error:
        raise Failed(f"{path} is damaged ({error or type(error).__name__}); {way_out}.") from error
