"""Resampling architectures: one draw of counts shared by everything that is to be compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.ranks import Codes, Counts, RankOrder, Values, resampled_kendall, resampled_spearman

RESAMPLES = 1000
BOUNDS = (0.025, 0.975)
LEAST = 0.5
"""Share of the resamples that must have a value, so that an interval means anything."""


class Estimate(NamedTuple):
    """A value and the bounds of its 95 % bootstrap interval (percentiles); None where there is none."""

    value: float | None
    low: float | None
    high: float | None


def codes(names: ArrayLike) -> Codes:
    """Equal names as equal small integers."""
    _, found = np.unique(np.asarray(names), return_inverse=True)
    return np.asarray(found, dtype=np.int64)


def resamples(groups: Codes, *, rng: np.random.Generator, size: int = RESAMPLES, strata: Codes | None = None) -> Counts:
    """How often each item is drawn: a row of ones (the items as they are), then `size` bootstrap samples.

    Groups are drawn, not items: rows that are the same network trained again are not independent evidence, so they come
    and go together. With `strata`, each stratum draws as many of its groups as it has.
    """
    inside = np.zeros_like(groups) if strata is None else strata
    drawn = np.ones((size + 1, len(groups)))
    taken: set[int] = set()
    for stratum in np.unique(inside):
        here = np.flatnonzero(inside == stratum)
        names, place = np.unique(groups[here], return_inverse=True)
        if taken & set(names.tolist()):
            raise BadInput("rows of one network must lie in one cell, got a network in two; check groups and cells.")
        taken |= set(names.tolist())
        drawn[1:, here] = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=size)[:, place]
    return drawn


def estimate(values: Values, *, least: float = LEAST) -> Estimate:
    """The first value, with the interval of the others, where at least this share of them exists."""
    value, others = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not np.isfinite(value):
        return Estimate(None, None, None)
    if len(others) < max(1, least * (len(values) - 1)):
        return Estimate(value, None, None)
    low, high = np.quantile(others, BOUNDS)
    return Estimate(value, float(low), float(high))


SURE = 0.95


def mean_over_seeds(values: Sequence[float | None]) -> dict[str, float | None]:
    """`value` with the `low` and `high` of its 95 % interval by Student's t; no interval for a single seed."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return {"value": None, "low": None, "high": None}
    value = float(known.mean())
    if len(known) < 2:
        return {"value": value, "low": None, "high": None}
    half = float(stats.t.ppf((1 + SURE) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return {"value": value, "low": value - half, "high": value + half}


Statistic = Callable[[Counts, RankOrder, RankOrder], Values]
"""Two columns of numbers -> one value per resample."""
CORRELATIONS: dict[str, Statistic] = {
    "kendall": lambda counts, one, other: resampled_kendall(counts, one, other).b,
    "spearman": resampled_spearman,
}


def bootstrap_correlation(
    one: ArrayLike, other: ArrayLike, statistic: Statistic, *, rng: np.random.Generator
) -> Estimate | None:
    """The statistic with its interval over resampled pairs; None when either side is constant, which has no ranks."""
    left, right = (np.asarray(side, dtype=np.float64) for side in (one, other))
    if left.shape != right.shape or left.ndim != 1 or not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise BadInput(f"a correlation needs two equally long rows of finite numbers, got {one!r} and {other!r}.")
    if len(left) < 2 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return None
    drawn = rng.integers(len(left), size=(RESAMPLES, len(left)))
    counts = np.stack([np.ones(len(left)), *(np.bincount(row, minlength=len(left)) for row in drawn)])
    return estimate(statistic(counts, RankOrder.of(left), RankOrder.of(right)), least=0.0)  # of those that vary
