"""Scores of predictions, higher is better. Predictions and labels are class ids, or numbers for correlations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.ranks import spearman as rank_correlation

Metric = Callable[[ArrayLike, ArrayLike], float]


def accuracy(predictions: ArrayLike, labels: ArrayLike) -> float:
    """The share of correct predictions, 0 to 1."""
    guess, truth = _pair(predictions, labels)
    return float((guess == truth).mean())


def f1(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Harmonic mean of precision and recall of class 1, 0 to 1; 0 when class 1 neither occurs nor is predicted."""
    guess, truth = _pair(predictions, labels)
    hits = int(((guess == 1) & (truth == 1)).sum())
    total = int((guess == 1).sum() + (truth == 1).sum())
    return 2 * hits / total if total else 0.0


def matthews(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Matthews correlation of two or more classes, -1 to 1 (Gorodkin 2004).

    0 when either side is constant: its variance is 0, the quotient undefined, and such a classifier knows nothing.
    """
    guess, truth = _pair(predictions, labels)
    if np.ptp(guess) == 0 or np.ptp(truth) == 0:
        return 0.0
    classes = np.union1d(guess, truth)
    guesses = (guess[:, None] == classes).astype(float)  # rows x classes
    truths = (truth[:, None] == classes).astype(float)
    spread = _covariance(guesses, guesses) * _covariance(truths, truths)
    return _covariance(guesses, truths) / float(np.sqrt(spread))


def pearson(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Linear correlation, -1 to 1; 0 when either side is constant, where it is undefined and nothing was learnt."""
    guess, truth = _pair(predictions, labels)
    if np.ptp(guess) == 0 or np.ptp(truth) == 0:
        return 0.0
    return float(stats.pearsonr(guess, truth).statistic)


def spearman(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Rank correlation, -1 to 1, ties get the mean rank; 0 when either side is constant, as for `pearson`."""
    guess, truth = _pair(predictions, labels)
    rho = rank_correlation(guess, truth)
    return rho if np.isfinite(rho) else 0.0


def macro_f1(predictions: ArrayLike, labels: ArrayLike) -> float:
    """The mean of the F1 of every class that occurs or is predicted; of rows x labels (0 or 1), of every label."""
    from sklearn.metrics import f1_score

    guess, truth = _arrays(predictions, labels)
    return float(f1_score(truth.astype(int), guess.astype(int), average="macro", zero_division=0))


def roc_auc(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Area under the ROC curve: how often a right one has the higher score; 0.5 knows nothing, or is undefined.

    Scores of rows with labels 0 and 1; or rows x classes with class ids, or rows x labels with as many 0 and 1: the
    mean over the classes or labels (one against the rest) that some rows have and others have not.
    """
    from sklearn.metrics import roc_auc_score

    scores, truth = np.asarray(predictions, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if scores.ndim == 2 and truth.ndim == 1:
        truth = (truth[:, None] == np.arange(scores.shape[1])).astype(np.float64)
    _arrays(scores, truth)
    columns = zip(np.atleast_2d(scores.T), np.atleast_2d(truth.T), strict=True)
    areas = [roc_auc_score(wanted, column) for column, wanted in columns if 0 < wanted.sum() < len(wanted)]
    return float(np.mean(areas)) if areas else 0.5


LARGEST_LOSS = 100.0
"""Nats per token; a mean loss above it counts as this, so that a perplexity is at most 2.7e43 and always a number."""


def perplexity(loss: float) -> float:
    """exp of the mean loss of a token in nats; lower is better: 1 is perfect, the size of the vocabulary guessing."""
    if not np.isfinite(loss):
        raise BadInput(f"a perplexity needs a finite loss, got {loss}; the network is damaged.")
    return float(np.exp(min(loss, LARGEST_LOSS)))


METRICS: dict[str, Metric] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "spearman": spearman,
    "pearson": pearson,
    "macro_f1": macro_f1,
    "roc_auc": roc_auc,
}


RATIOS = ("entity_f1", "token_accuracy", "micro_f1")
"""Metrics that are a sum over rows by another one: F1 of spans or of the labels of texts (twice what is right by what
is answered and wanted together), and the share of words whose tag is right, which is the micro F1 of tags."""


def ratio(parts: NDArray[np.generic], wholes: NDArray[np.generic]) -> float:
    """The sum of the parts by that of the wholes, 0 when there is nothing."""
    total = float(wholes.sum())
    return float(parts.sum()) / total if total else 0.0


def _pair(predictions: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    guess, truth = _arrays(predictions, labels)
    if guess.ndim != 1:
        raise BadInput(f"a metric needs one prediction per label, got shapes {guess.shape} and {truth.shape}.")
    return guess, truth


def _arrays(predictions: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Finite numbers, as many of both."""
    guess, truth = np.asarray(predictions, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if guess.shape != truth.shape or not guess.size:
        raise BadInput(f"a metric needs one prediction per label, got shapes {guess.shape} and {truth.shape}.")
    if not (np.isfinite(guess).all() and np.isfinite(truth).all()):
        raise BadInput("a metric needs finite numbers, got NaN or infinity; the network or the labels are damaged.")
    return guess, truth


def _covariance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Summed over classes: mean of products minus product of means."""
    return float((one * other).mean(axis=0).sum() - (one.mean(axis=0) * other.mean(axis=0)).sum())


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
class AverageDefinition:
    """One number for all tasks."""

    about: str
    columns: Mapping[str, str]
    """Column -> its metric."""


AVERAGES: dict[str, AverageDefinition] = {
    "test_columns": AverageDefinition(
        "W-PCA, Table 2: nine columns as on the test set, F1 for MRPC and QQP, both MNLI columns, no WNLI",
        {**DEV, "MNLI-mm": "accuracy", "QQP": "f1"},
    ),
    "dev_columns": AverageDefinition("W-PCA, Table 3: eight columns as on the dev set, MNLI-m alone, no WNLI", DEV),
    "glue_score": AverageDefinition(
        "FlexiBERT benchmark: eight dev tasks, Matthews for CoLA, Spearman for STS-B, accuracy elsewhere",
        {**DEV, "MRPC": "accuracy"},
    ),
}


@dataclass(frozen=True)
class GlueAverage:
    """An average over the columns that are there."""

    mean: float | None
    """None while a column is missing: the mean of some columns is not comparable with the mean of all."""
    mean_of_present: float
    missing: tuple[str, ...]


Scores = Mapping[str, Mapping[str, float]]
"""Column -> metric -> value."""


def average_columns(scores: Scores, average: AverageDefinition) -> GlueAverage | None:
    """The average of these scores; None when none of its columns is there."""
    present = [scores[column][metric] for column, metric in average.columns.items() if column in scores]
    if not present:
        return None
    missing = tuple(column for column in average.columns if column not in scores)
    mean = sum(present) / len(present)
    return GlueAverage(None if missing else mean, mean, missing)
