"""Checksums of what was written: a flipped bit is noticed instead of changing a result."""

import json
from collections.abc import Mapping
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from archwright.errors import BadInput

CHECKSUM = "checksum"
"""Key of an object's own checksum in a JSON file."""
FILE = "checksums.json"
"""In a folder with weights: file -> checksum."""
LETTERS = 32


def checksum(content: bytes) -> str:
    return sha256(content).hexdigest()[:LETTERS]


def add_checksum(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its checksum as its last key."""
    return {**value, CHECKSUM: checksum_of(value)}


def has_checksum(value: Mapping[str, Any]) -> bool:
    """Whether the object is what was written; one of an earlier version has no checksum and is believed."""
    return CHECKSUM not in value or value[CHECKSUM] == checksum_of(value)


def checksum_of(value: Mapping[str, Any]) -> str:
    plain = json.loads(json.dumps({key: part for key, part in value.items() if key != CHECKSUM}))
    return checksum(json.dumps(plain, sort_keys=True).encode())


def file_checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return file_digest(file, sha256).hexdigest()[:LETTERS]


def write_checksums(folder: Path, pattern: str = "*") -> None:
    """Notes the checksums of the files of a folder that is being written."""
    files = sorted(path for path in folder.rglob(pattern) if path.is_file() and path.name != FILE)
    sums = {str(path.relative_to(folder)): file_checksum(path) for path in files}
    (folder / FILE).write_text(json.dumps(sums, indent=1) + "\n")


def verify_checksums(folder: Path, *, way_out: str) -> None:
    """BadInput where a file is missing or not what was written; folders of earlier versions have no checksums."""
    noted = folder / FILE
    if not noted.exists():
        return
    try:
        sums = dict(json.loads(noted.read_text()))
    except (ValueError, TypeError, RecursionError):
        raise BadInput(f"{noted} is damaged; {way_out}.") from None
    for name, expected in sums.items():
        path = folder / name
        if not path.is_file():
            raise BadInput(f"{folder} is damaged ({name} is missing); {way_out}.")
        if file_checksum(path) != expected:
            raise BadInput(f"{folder} is damaged (the checksum of {name} is another one); {way_out}.")
