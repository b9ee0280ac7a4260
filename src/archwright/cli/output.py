"""Files that a command line names: known to be writable before hours of work, and whole or not there at all."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archwright.errors import BadInput, Failed

STDOUT = Path("/dev/stdout")
"""What `--json -` means."""


def check_writable(path: Path, option: str = "--json") -> None:
    """Raises BadInput unless a file can be written there; leaves nothing behind."""
    if path.is_dir():
        raise BadInput(f"{option} must name a file, got the folder {path}; add a file name.")
    if not path.parent.is_dir():
        raise BadInput(f"{option} needs an existing folder, got {path}; create {path.parent} first.")
    if not is_device(path):
        try:
            tempfile.TemporaryFile(dir=path.parent).close()
        except OSError as error:
            raise BadInput(f"{option} needs a folder one may write to, got {path} ({error.strerror}).") from error


def write_json(path: Path, result: Mapping[str, Any]) -> None:
    """The result with ordinary rights; a link keeps pointing, a device such as /dev/stdout is written to."""
    try:
        text = json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as error:
        raise Failed(f"the result cannot be written as JSON: {error}.") from error
    mask = os.umask(0)  # reading it means setting it, so it is put back at once
    os.umask(mask)
    write_text(path, text, mode=0o666 & ~mask)


def write_text(path: Path, text: str, *, mode: int) -> None:
    from archwright.store import write_atomic

    if path == STDOUT:  # it may be a file, which must not be replaced
        sys.stdout.write(text)
        sys.stdout.flush()
    elif is_device(path):
        path.write_text(text, encoding="utf-8")
    else:
        write_atomic(path.resolve(), text, mode=mode)


def is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
