"""GLUE's official metrics of every task (Wang et al. 2019), and the averages that papers print."""

from collections.abc import Mapping
from dataclasses import dataclass

OFFICIAL: dict[str, tuple[str, ...]] = {
    "CoLA": ("matthews",),
    "SST-2": ("accuracy",),
    "MRPC": ("f1", "accuracy"),
    "STS-B": ("pearson", "spearman"),
    "QQP": ("f1", "accuracy"),
    "MNLI-m": ("accuracy",),
    "MNLI-mm": ("accuracy",),
    "QNLI": ("accuracy",),
    "RTE": ("accuracy",),
    "WNLI": ("accuracy",),
}
"""Column of the leaderboard -> its metrics."""
DEV = {
    "QNLI": "accuracy",
    "MRPC": "f1",
    "SST-2": "accuracy",
    "CoLA": "matthews",
    "STS-B": "spearman",
    "MNLI-m": "accuracy",
    "RTE": "accuracy",
    "QQP": "accuracy",
}


@dataclass(frozen=True)
class Average:
    """One number for all tasks."""

    about: str
    columns: Mapping[str, str]
    """Column -> its metric."""


AVERAGES: dict[str, Average] = {
    "test_columns": Average(
        "W-PCA, Table 2: nine columns as on the test set, F1 for MRPC and QQP, both MNLI columns, no WNLI",
        {**DEV, "MNLI-mm": "accuracy", "QQP": "f1"},
    ),
    "dev_columns": Average("W-PCA, Table 3: eight columns as on the dev set, MNLI-m alone, no WNLI", DEV),
    "glue_score": Average(
        "FlexiBERT benchmark: eight dev tasks, Matthews for CoLA, Spearman for STS-B, accuracy elsewhere",
        {**DEV, "MRPC": "accuracy"},
    ),
}


@dataclass(frozen=True)
class Averaged:
    """An average over the columns that are there."""

    mean: float | None
    """None while a column is missing: the mean of some columns is not comparable with the mean of all."""
    mean_of_present: float
    missing: tuple[str, ...]


Scores = Mapping[str, Mapping[str, float]]
"""Column -> metric -> value."""


def averaged(scores: Scores, average: Average) -> Averaged | None:
    """The average of these scores; None when none of its columns is there."""
    present = [scores[column][metric] for column, metric in average.columns.items() if column in scores]
    if not present:
        return None
    missing = tuple(column for column in average.columns if column not in scores)
    mean = sum(present) / len(present)
    return Averaged(None if missing else mean, mean, missing)
