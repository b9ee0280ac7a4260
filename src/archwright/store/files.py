"""Files and folders that appear, and are replaced, whole or not at all: written beside, synced, renamed.

What is written lies in a hidden folder beside its target, which its writer holds locked. A writer that was killed
leaves that folder unlocked: whoever writes the same target next, or sweeps the folder, deletes it; those of live
processes stay.
"""

import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import escape
from pathlib import Path
from secrets import token_hex
from typing import Any

from safetensors import SafetensorError

from archwright.checksums import CHECKSUM, add_checksum, has_checksum
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
BESIDE = ".*.????????"
"""What the hidden folder is called; earlier versions wrote files of such names."""
HALF_WRITTEN = ".tmp??????"
"""What safetensors calls a file while it writes it."""
EARLIER = "earlier"
"""Where what stood at the target waits while names cannot be exchanged."""
AT_FDCWD, RENAME_EXCHANGE = -100, 2
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o666) -> None:
    """The file with this content, or as it was before."""
    with atomic_file(path, mode=mode) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def write_json(path: Path, value: dict[str, Any], *, mode: int = 0o666) -> None:
    """The object with a checksum of itself, as `read_json` reads it."""
    write_atomic(path, json.dumps(add_checksum(value), indent=1), mode=mode)


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o666) -> Iterator[Path]:
    """A file to write to that becomes `path` when the block ends well, with this mode but for the umask."""
    with hidden_place(path) as place:
        yield place / path.name
        flush_file(place, path.name, mode)
        os.replace(place / path.name, path)
        flush_entry(path.parent)


def write_once(path: Path, content: str, *, mode: int = 0o666) -> None:
    """The file with this content, unless another process was faster."""
    with hidden_place(path) as place:
        (place / path.name).write_text(content)
        flush_file(place, path.name, mode)
        with suppress(FileExistsError):
            os.link(place / path.name, path)
        flush_entry(path.parent)


def flush_file(place: Path, name: str, mode: int = 0o666) -> None:
    """The file is on the disk, as readable as its folder is."""
    os.chmod(place / name, mode & place.stat().st_mode)
    flush_entry(place / name)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder that becomes `path`, in place of what is there, when the block ends well; else nothing changes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with hidden_place(path) as place:
        inside = place / path.name
        inside.mkdir()
        yield inside
        flush_folder(inside)
        replace_folder(inside, path)


@contextmanager
def hidden_place(path: Path) -> Iterator[Path]:
    """A hidden, locked folder beside `path`, gone after the block; an error of the disk names `path`."""
    try:
        sweep_beside(path)
        place, lock = make_place(path)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            os.close(lock)
    except SafetensorError as error:
        raise Failed(f"{path} could not be written ({error}); make room and run the same command again.") from error
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(path.parent / f".{path.name}.")):
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """An error of the disk inside names this file: what writing to an open one raises names none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def make_place(path: Path) -> tuple[Path, int]:
    """The folder, and the handle that locks it; made again where a sweep came between the two."""
    while True:
        place = path.parent / f".{path.name}.{token_hex(4)}"
        place.mkdir()
        with suppress(FileNotFoundError):
            lock = os.open(place, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if place.stat().st_ino == os.fstat(lock).st_ino:
                    return place, lock
            os.close(lock)


def replace_folder(new: Path, folder: Path) -> None:
    """Renames `new` to `folder`; what stood there is in the place of `new` then.

    Where names cannot be exchanged at once it waits in EARLIER beside `new`, from where `sweep_beside` puts it back.
    """
    if not folder.exists():
        os.rename(new, folder)
    elif not exchange_names(new, folder):
        earlier = new.parent / EARLIER
        os.rename(folder, earlier)
        try:
            os.rename(new, folder)
        except OSError:
            os.rename(earlier, folder)
            raise
    flush_entry(folder.parent)


def exchange_names(one: Path, other: Path) -> bool:
    """Each gets the name of the other in one step; False where the system cannot do that."""
    rename = find_renameat2()
    if rename is None:
        return False
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@cache
def find_renameat2() -> Any:
    """The function of the C library; None where there is none."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def sweep_beside(path: Path) -> None:
    """Deletes what killed writers of this file or folder left, and puts back what one of them had moved away."""
    for left in find_left(path.parent, f".{escape(path.name)}.????????"):
        sweep_place(left)


def sweep_folder(folder: Path) -> None:
    """Deletes what killed writers left in this folder, but nothing of processes that are at work."""
    for left in (*find_left(folder, BESIDE), *find_left(folder, HALF_WRITTEN)):
        sweep_place(left)


def find_left(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def sweep_place(left: Path) -> None:
    """Deletes a hidden folder unless its writer is alive, or a hidden file of an earlier version."""
    if not left.is_dir() or left.is_symlink():
        left.unlink(missing_ok=True)
        return
    try:
        lock = os.open(left, os.O_RDONLY)
    except FileNotFoundError:  # its writer was faster
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        target = left.parent / left.name[1:].rpartition(".")[0]
        if (left / EARLIER).exists() and not target.exists():
            os.rename(left / EARLIER, target)
        shutil.rmtree(left, ignore_errors=True)
    except OSError:  # it is locked, or nobody can tell
        pass
    finally:
        os.close(lock)


def flush_folder(folder: Path) -> None:
    """Every file inside is on the disk, not only in memory, and as readable as the folder itself."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
        flush_entry(path)
    flush_entry(folder)


def flush_entry(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path) -> dict[str, Any]:
    """The object in one of our files, without its checksum."""
    way_out = WAYS_OUT.get(path.name, "delete it and run the same command again")
    try:
        value = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed(f"{path} is damaged ({error}); {way_out}.") from error
    if not isinstance(value, dict) or not set(KEYS.get(path.name, ())) <= set(value):
        raise Failed(f"{path} is damaged (not what was written there); {way_out}.")
    if not has_checksum(value):
        raise Failed(f"{path} is damaged (its checksum is another one); {way_out}.")
    return {key: part for key, part in value.items() if key != CHECKSUM}
