"""The log of a training: a line per step in a CSV file."""

import csv
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from archwright.store.files import naming_file, write_atomic

COLUMNS = ("step", "loss", "learning_rate", "tokens", "seconds")


class TrainingLog:
    """A CSV file that grows line by line."""

    def __init__(self, path: Path):
        self.path = path
        self.file: TextIO | None = None

    def __enter__(self) -> "TrainingLog":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.file is not None:
            self.file.close()

    def __call__(self, record: Sequence[float]) -> None:
        if self.file is None:
            self.file = self.open_at(record[0])
        with naming_file(self.path):
            csv.writer(self.file, lineterminator="\n").writerow([f"{value:.9g}" for value in record])

    def open_at(self, step: float) -> TextIO:
        """The file with the lines of earlier steps alone, open for more."""
        earlier = [row for row in read_log(self.path) if row["step"] < step]
        lines = [",".join(COLUMNS), *(",".join(f"{row[name]:.9g}" for name in COLUMNS) for row in earlier)]
        write_atomic(self.path, "\n".join(lines) + "\n")
        return open(self.path, "a", encoding="utf-8", buffering=1)  # no checkpoint is ahead of its log


def read_log(path: Path) -> list[dict[str, float]]:
    """The whole lines of a log; the last may have been cut short by a kill."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    whole = []
    for row in rows:
        with suppress(TypeError, ValueError, KeyError):
            values = {name: float(row[name]) for name in COLUMNS}
            if all(map(math.isfinite, values.values())):
                whole.append(values)
    return whole
