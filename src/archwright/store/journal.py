"""The journal of a study: Optuna's lines, each with a checksum, so that a flipped bit is noticed."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

from optuna.storages.journal import BaseJournalBackend

from archwright.errors import Failed
from archwright.store.files import naming_file

CRC = "crc32"


class JournalLock:
    """Lets one process at a time append to a journal; ends with the process, so that nobody waits for the dead.

    A last line that was cut short, by a full disk or a power cut, counts as never written and is taken away.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def acquire(self) -> bool:
        self._file = open(self._journal, "a+b")  # noqa: SIM115 - closed by release
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._file.seek(0, os.SEEK_END)
        if size := self._file.tell():
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.truncate(self._journal.read_bytes().rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        self._file.close()


class CheckedJournal(BaseJournalBackend):
    """A journal in a file, as `JournalFileBackend` writes it, with a checksum in every line.

    Lines of earlier versions have none and are believed.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, JournalLock(path)
        self._offsets = [0]
        """Where the lines that were read begin, and where the next one will."""
        if not path.exists():
            path.touch()

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        with open(self._path, "rb") as file:
            first = min(log_number_from, len(self._offsets) - 1)
            file.seek(self._offsets[first])
            for number, line in enumerate(file, start=first):
                if not line.endswith(b"\n"):
                    return  # it is being written, or was cut short
                if number + 1 == len(self._offsets):
                    self._offsets.append(self._offsets[number] + len(line))
                if number >= log_number_from:
                    yield self._parse(line, number)

    def _parse(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            log = json.loads(line)
            written = log.pop(CRC, None)
            if written is not None and written != line_checksum(log):
                raise ValueError("its checksum is another one")
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            damage = f"the trials in {self._path} are damaged (line {number + 1}: {error})"
            raise Failed(f"{damage}; delete it to search from the start.") from error
        return dict(log)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = [json.dumps({**log, CRC: line_checksum(log)}, separators=(",", ":")) + "\n" for log in logs]
        self._lock.acquire()
        try:
            with naming_file(self._path), open(self._path, "ab") as file:
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
        finally:
            self._lock.release()


def line_checksum(log: dict[str, Any]) -> int:
    """Of the line's content, whatever the order of its keys."""
    plain = json.loads(json.dumps(log))  # keys that are numbers are texts in a file
    return crc32(json.dumps(plain, sort_keys=True).encode())
