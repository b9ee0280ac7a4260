"""GLUE and SQuAD scores of small models as W-PCA prints them (Wang 2025, Tables 2 to 5, 7 and 8), to stand beside ours.

They were not measured here. Those models were pre-trained on Wikipedia and BooksCorpus for days; Tables 2, 7 and 8 are
about the leaderboard's test rows, the others about the development rows. The average of EfficientBERT in Table 7 is not
the mean of its columns (79.0); it stands here as printed.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FILE = "published_scores.csv"
SOURCE = "W-PCA (Wang 2025)"
ABOUT = ("table", "split", "model", "search", "parameters", "gpu_days")
"""Columns that are no scores."""
SQUAD = {False: ("squad1_exact", "squad1_f1"), True: ("squad2_exact", "squad2_f1")}
"""Columns by whether questions may have no answer."""


@dataclass(frozen=True)
class PublishedScores:
    """One row of a table, in per cent."""

    table: int
    split: str
    """dev or test."""
    model: str
    search: str
    """manual, one-shot or zero-shot; empty where the table does not say."""
    parameters: int
    gpu_days: float | None
    """Of the search."""
    scores: dict[str, float]
    """By column of the table; those that are not printed are missing."""


@cache
def read_published_scores() -> tuple[PublishedScores, ...]:
    """All rows, in the order of the tables."""
    text = files("archwright.statistics").joinpath(FILE).read_text("utf-8")
    return tuple(
        PublishedScores(
            int(row["table"]),
            row["split"],
            row["model"],
            row["search"],
            int(row["parameters"]),
            float(row["gpu_days"]) if row["gpu_days"] else None,
            {name: float(value) for name, value in row.items() if name not in ABOUT and value},
        )
        for row in csv.DictReader(text.splitlines())
    )


def similar_models(
    columns: Sequence[str], parameters: int, *, most: int = 5, split: str = "dev"
) -> list[PublishedScores]:
    """Models with a score in one of these columns, those nearest in size first; of equal rows the first."""
    found: dict[str, PublishedScores] = {}
    for row in read_published_scores():
        if row.split == split and any(column in row.scores for column in columns):
            found.setdefault(row.model, row)
    return sorted(found.values(), key=lambda row: abs(math.log(row.parameters / parameters)))[:most]
