"""A folder that is there whole or not at all."""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from archwright.errors import BadInput
from archwright.store.files import EARLIER, flush_folder, replace_folder

SCHEMA = "archwright/parity/1"
"""What the report of an export says of itself; by it a folder is known to be ours."""
REPORT = "parity.json"
CARD = "README.md"


@contextmanager
def write_whole_folder(folder: Path) -> Iterator[Path]:
    """A place to write to that becomes `folder` when the block ends well, and vanishes otherwise.

    What is left of an export that was killed lies hidden beside the folder and goes with the next export.
    """
    folder = folder.resolve()
    check_free(folder)
    with hidden_folder(folder) as place:
        inside = place / folder.name  # the name of the folder to be, because loaders name modules after it
        inside.mkdir()
        yield inside
        flush_folder(inside)
        replace_folder(inside, folder)


def check_free(folder: Path) -> None:
    """Raises BadInput unless the folder is new, empty, or an export of ours and nothing else."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"an export needs a folder, got the file {folder}; choose another name.")
    ours = export_files(folder)
    if not folder.exists():
        return
    for path in folder.rglob("*") if ours else folder.iterdir():  # looks deeper only where there is an export
        name = str(path.relative_to(folder))
        if name not in ours and not (ours and path.is_dir()):
            raise BadInput(
                f"an export needs a new or empty folder or an earlier export, got {folder} with {name}; "
                "choose another folder."
            )


def export_files(folder: Path) -> set[str]:
    """The files that the parity report in the folder names, with itself; none without a report of ours."""
    try:
        report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    ours = isinstance(report, dict) and report.get("schema") == SCHEMA
    return {REPORT, CARD, *report.get("files", ())} if ours else set()


@contextmanager
def hidden_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder beside the other that one export at a time has for itself; gone after the block."""
    missing = [path for path in folder.parents if not path.exists()]  # innermost first
    place = folder.parent / f".{folder.name}.partial"
    try:
        lock = lock_folder(place, folder)
        try:
            if (place / EARLIER).exists() and not folder.exists():  # a kill came while names were exchanged
                os.rename(place / EARLIER, folder)
            for left in place.iterdir():
                shutil.rmtree(left)
            try:
                yield place
            finally:
                shutil.rmtree(place)
        finally:
            os.close(lock)
    except BaseException:
        for path in missing:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise


def lock_folder(place: Path, folder: Path) -> int:
    """A handle of the hidden folder, made if need be with the folders above it, that no other export has."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise BadInput(f"an export needs a folder one may write to, got {folder} ({error.strerror}).") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise BadInput(f"another export is writing {folder}; wait for it or choose another folder.") from error
    return handle
