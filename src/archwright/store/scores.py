"""Scores by what they were made from: an append-only file that survives being killed at any moment."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archwright.store.files import naming_file, sweep_folder

FILE = "scores.jsonl"


class ScoreStore:
    """What is known about each key; every addition is on disk before `add` returns."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        sweep_folder(folder)
        self._known: dict[str, dict[str, Any]] = {}
        for line in self.path.read_bytes().splitlines() if self.path.exists() else []:
            if (entry := read_entry(line)) is not None:
                self._merge(entry["key"], entry["seen"])

    def of(self, key: str) -> dict[str, Any]:
        """Everything added under the key so far, later additions over earlier ones."""
        return self._known.get(key, {})

    def add(self, key: str, seen: Mapping[str, Any]) -> None:
        line = json.dumps({"key": key, "seen": seen}, sort_keys=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            size = os.fstat(handle).st_size
            if size and os.pread(handle, 1, size - 1) != b"\n":  # a killed process left half a line
                line = "\n" + line
            with naming_file(self.path):
                os.write(handle, line.encode())  # one write: other processes append to the same file
                os.fsync(handle)
        finally:
            os.close(handle)
        self._merge(key, seen)

    def _merge(self, key: str, seen: Mapping[str, Any]) -> None:
        known = self._known.setdefault(key, {})
        for name, part in seen.items():
            known[name] = {**known.get(name, {}), **part}


def read_entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None for half a line."""
    try:
        entry = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    good = isinstance(entry, dict) and isinstance(entry.get("key"), str) and isinstance(entry.get("seen"), dict)
    return entry if good and all(isinstance(part, dict) for part in entry["seen"].values()) else None


def digest(*parts: bytes | str) -> str:
    """Name of a content: equal parts give equal names."""
    found = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        found.update(len(raw).to_bytes(8, "big") + raw)
    return found.hexdigest()[:32]
