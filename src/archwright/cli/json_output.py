"""The file of `--json`: known to be writable before hours of work, and whole or not there at all."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archwright.errors import BadInput, Failed


def check_writable(path: Path) -> None:
    """Raises BadInput unless `write_json` can put a file there; leaves nothing behind."""
    if path.is_dir():
        raise BadInput(f"--json must name a file, got the folder {path}; add a file name.")
    if not path.parent.is_dir():
        raise BadInput(f"--json needs an existing folder, got {path}; create {path.parent} first.")
    if not _is_device(path):
        try:
            tempfile.TemporaryFile(dir=path.parent).close()
        except OSError as error:
            raise BadInput(f"--json needs a folder one may write to, got {path} ({error.strerror}).") from error


def write_json(path: Path, result: Mapping[str, Any]) -> None:
    """Writes beside the file, then renames; a link keeps pointing, a device such as /dev/stdout is written to."""
    text = _as_text(result)
    if _is_device(path):
        path.write_text(text)
        return
    target = path.resolve()
    handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(0o666 & ~_umask())
        Path(beside).replace(target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _as_text(result: Mapping[str, Any]) -> str:
    try:
        return json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    except ValueError as error:
        raise Failed(f"the result cannot be written as JSON: {error}.") from error


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _umask() -> int:
    """What new files may not allow; reading it means setting it, so it is put back at once."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
