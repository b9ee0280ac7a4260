"""Generated data sets that a small network can learn: there is no public multiple choice data here."""

import csv
from pathlib import Path

import numpy as np

THINGS = ("apple", "river", "window", "doctor", "engine", "garden", "silver", "winter")
PLACES = ("house", "street", "market", "church", "school", "forest")
COLUMNS = ("a", "b", "c", "d")


def choice_rows(count: int, seed: int = 0) -> list[dict[str, str]]:
    """A text that names a thing, four sentences about different things, and the position of the one that fits."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        things = rng.choice(THINGS, size=len(COLUMNS), replace=False)
        right = int(rng.integers(len(COLUMNS)))
        sentences = [f"the {thing} is in the {rng.choice(PLACES)}" for thing in things]
        rows.append(
            {"text": f"where is the {things[right]}", **dict(zip(COLUMNS, sentences, strict=True)), "label": str(right)}
        )
    return rows


def write_choices(path: Path, count: int, seed: int = 0) -> Path:
    """The same as a CSV file."""
    rows = choice_rows(count, seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
