"""Correlations that papers printed about training-free proxies, to stand beside ours.

w-pca: Wang, "W-PCA Based Gradient-Free Proxy for Efficient Search of Lightweight Language Models" (ICLR 2025);
lpzero: Dong et al., "LPZero: Language Model Zero-cost Proxy Search from Zero" (EMNLP Findings 2024);
training-free-nas: Serianni & Kalita, "Training-free Neural Architecture Search for RNNs and Transformers" (ACL 2023).
Papers that contradict each other, or themselves, stand side by side.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike

from archwright.judge.ranks import Order, Values, correlation, kendall, spearman

FILE = "published.csv"


@dataclass(frozen=True)
class Published:
    """One printed number."""

    paper: str
    table: str
    """Where in the paper."""
    benchmark: str
    printed: str
    """The proxy's name in the paper."""
    proxy: str
    """Our proxy that it is about, empty when there is none."""
    statistic: str
    """A name of STATISTICS: what the number is, which is not always what it was called."""
    value: float
    note: str


@cache
def published_numbers() -> tuple[Published, ...]:
    """All printed numbers, in the order of the papers' tables."""
    text = files("archwright.judge").joinpath(FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(Published(**(row | {"value": float(row["value"])})) for row in rows)  # type: ignore[arg-type]


def of_scores(statistic: str, scores: ArrayLike, truth: ArrayLike) -> float | None:
    """Our value of a printed statistic over the rows that have a score; None where a side is constant."""
    one, other = (np.asarray(side, dtype=np.float64) for side in (scores, truth))
    rows = np.isfinite(one) & np.isfinite(other)
    if rows.sum() < 2 or not (np.ptp(one[rows]) > 0 and np.ptp(other[rows]) > 0):
        return None
    return STATISTICS[statistic](one[rows], other[rows])


def _spearman(one: Values, other: Values) -> float:
    return float(spearman(np.ones((1, len(one))), Order.of(one), Order.of(other))[0])


def _kendall(one: Values, other: Values) -> float:
    return float(kendall(np.ones((1, len(one))), Order.of(one), Order.of(other)).b[0])


def _pearson(one: Values, other: Values) -> float:
    left, right = ((side - side.mean()) / np.ptp(side) for side in (one, other))
    return float(correlation(np.ones((1, len(one))), left, right)[0])


STATISTICS: dict[str, Callable[[Values, Values], float]] = {
    "spearman": _spearman,
    "kendall": _kendall,
    "pearson-called-spearman": _pearson,
}
