"""Files that appear whole or not at all: written beside, synced, renamed."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from archwright.errors import Failed

WAYS_OUT = {"run.json": "without it the folder is no run any more, begin another one with --out"}
"""What to do about a damaged file, where deleting it is not enough."""
KEYS = {
    "run.json": ("id", "options"),
    "plan.json": ("original",),
    "order.json": ("heads", "units", "layers"),
    "result.json": ("schema",),
}
"""What a file must have to be used."""


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """The file with this content, or as it was before."""
    with atomic_file(path, mode=mode) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o644) -> Iterator[Path]:
    """A file beside `path` to write to: synced and renamed to `path` when the block ends well, else gone."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        yield Path(name)
        with open(name, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_once(path: Path, content: str, *, mode: int = 0o644) -> None:
    """The file with this content, unless another process was faster."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as beside:
        write_atomic(Path(beside) / path.name, content, mode=mode)
        with suppress(FileExistsError):
            os.link(Path(beside) / path.name, path)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes `path` when the block ends well, and leaves nothing when it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                with open(file, "rb") as handle:
                    os.fsync(handle.fileno())
        beside.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        os.replace(beside, path)
    except SafetensorError as error:
        raise Failed(f"{path} could not be written ({error}); make room and run the same command again.") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def read_json(path: Path) -> dict[str, Any]:
    """The object in one of our files."""
    way_out = WAYS_OUT.get(path.name, "delete it and run the same command again")
    try:
        value = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Failed(f"{path} is damaged ({error}); {way_out}.") from error
    if not isinstance(value, dict) or not set(KEYS.get(path.name, ())) <= set(value):
        raise Failed(f"{path} is damaged (not what was written there); {way_out}.")
    return value
