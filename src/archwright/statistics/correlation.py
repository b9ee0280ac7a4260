"""Rank correlations with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from archwright.errors import BadInput

RESAMPLES = 1000
"""Bootstrap samples behind an interval."""

Values = NDArray[np.float64]
Statistic = Callable[[Values, Values], float]


class Correlation(NamedTuple):
    """A correlation, -1 to 1, and the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def kendall(one: Values, other: Values) -> float:
    """Tau-b: agreeing minus disagreeing pairs, over all pairs but for ties (Kendall 1945)."""
    left, right = (np.sign(side[:, None] - side) for side in (one, other))
    return float((left * right).sum() / np.sqrt(np.count_nonzero(left) * np.count_nonzero(right)))


def spearman(one: Values, other: Values) -> float:
    """Correlation of the ranks; ties get the mean rank."""
    return float(np.corrcoef(stats.rankdata(one), stats.rankdata(other))[0, 1])


CORRELATIONS: dict[str, Statistic] = {"kendall": kendall, "spearman": spearman}


def correlation(
    one: ArrayLike, other: ArrayLike, statistic: Statistic, *, rng: np.random.Generator
) -> Correlation | None:
    """The statistic with its interval over resampled pairs; None when either side is constant, which has no ranks."""
    sides = [np.asarray(side, dtype=np.float64) for side in (one, other)]
    if sides[0].shape != sides[1].shape or sides[0].ndim != 1 or not np.isfinite(sides).all():
        raise BadInput(f"a correlation needs two equally long rows of finite numbers, got {one!r} and {other!r}.")
    pairs = np.stack(sides, axis=1)
    if len(pairs) < 2 or not varies(pairs):
        return None
    samples = pairs[rng.integers(len(pairs), size=(RESAMPLES, len(pairs)))]
    values = [statistic(*sample.T) for sample in samples if varies(sample)]
    low, high = np.quantile(values, (0.025, 0.975))
    return Correlation(statistic(*pairs.T), float(low), float(high))


def varies(pairs: Values) -> bool:
    """Whether neither side is constant."""
    return bool((np.ptp(pairs, axis=0) > 0).all())
