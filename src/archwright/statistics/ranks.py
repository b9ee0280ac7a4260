"""Rank correlations of many resamples at once.

A resample is a row of counts: how often each item was drawn (resamples x items). Every statistic takes all of them
and gives one value per row; a row of ones gives the statistic of the items themselves. NaN where a side is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values = NDArray[np.float64]
Counts = NDArray[np.float64]  # resamples x items
Codes = NDArray[np.int64]

BLOCK = 1024
"""Columns of the pair matrix that are held in memory together."""


@dataclass(frozen=True)
class RankOrder:
    """The order of one column of numbers, found once for all resamples; equal numbers share a level."""

    level: Codes
    """Of each item, 0 for the smallest number."""
    sorting: Codes
    starts: Codes
    """Where each level begins after sorting."""

    @classmethod
    def of(cls, values: ArrayLike) -> RankOrder:
        _, level = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
        sorting = np.argsort(level, kind="stable")
        return cls(level, sorting, np.flatnonzero(np.diff(level[sorting], prepend=-1)))

    def level_counts(self, counts: Counts) -> Counts:
        """How many drawn items each level has, resamples x levels."""
        return np.add.reduceat(counts[:, self.sorting], self.starts, axis=1)

    def ranks(self, counts: Counts) -> Values:
        """Mean rank of every item among the drawn ones, from 1 for the smallest."""
        drawn = self.level_counts(counts)  # resamples x levels
        return np.asarray((np.cumsum(drawn, axis=1) - (drawn - 1) / 2)[:, self.level])

    def centred_ranks(self, counts: Counts) -> Values:
        """The ranks minus their mean."""
        return np.asarray(self.ranks(counts) - (counts.sum(axis=1, keepdims=True) + 1) / 2)

    def other_counts(self, counts: Counts) -> Values:
        """For every item, how many drawn items have another value."""
        return np.asarray(counts.sum(axis=1, keepdims=True) - self.level_counts(counts)[:, self.level])


def resampled_spearman(counts: Counts, one: RankOrder, other: RankOrder) -> Values:
    """Correlation of the ranks; ties have their mean rank (Spearman 1904)."""
    return resampled_correlation(counts, one.centred_ranks(counts), other.centred_ranks(counts))


def resampled_correlation(counts: Counts, one: Values, other: Values) -> Values:
    """Cosine of two centred columns, as `RankOrder.centred_ranks` gives them, each item as often as it was drawn."""
    left, right = counts * one, counts * other
    spread = np.einsum("ri,ri->r", left, one) * np.einsum("ri,ri->r", right, other)
    with np.errstate(all="ignore"):
        return np.where(spread > 0, np.einsum("ri,ri->r", left, other) / np.sqrt(spread), np.nan)


def pearson(one: Values, other: Values) -> float:
    """Correlation of the numbers themselves; NaN where a side is constant."""
    if not (np.ptp(one) > 0 and np.ptp(other) > 0):
        return np.nan
    left, right = (side / np.abs(side).max() for side in (one, other))  # huge numbers would overflow when squared
    return float(np.corrcoef(left, right)[0, 1])


def partial(both: Values, first: Values, second: Values) -> Values:
    """Correlation of two sides after a straight line on a third is taken away from each.

    `both` is theirs, `first` and `second` those of each side with the third; NaN when the third explains a side fully.
    """
    left_over = (1 - first**2) * (1 - second**2)
    with np.errstate(all="ignore"):
        return np.where(left_over > 1e-9, (both - first * second) / np.sqrt(left_over), np.nan)


@dataclass(frozen=True)
class Taus:
    """Three ways to count agreeing and disagreeing pairs of one resample each."""

    b: Values
    """Over the pairs without a tie (Kendall 1945): flatters a coarse score, which ties the pairs it cannot tell."""
    a: Values
    """Over all pairs (Kendall 1938): a tie earns nothing."""
    weighted: Values
    """As b, pairs with high ranks count more: 1/rank + 1/rank, mean of ranking by either side (Vigna 2015)."""


def resampled_kendall(counts: Counts, one: RankOrder, other: RankOrder) -> Taus:
    """All three taus of every resample; the pair matrix is multiplied once."""
    balance = agreement(counts, one, other)
    total, left, right = counts.sum(axis=1), one.other_counts(counts), other.other_counts(counts)
    orders = [np.lexsort((second.level, first.level))[::-1] for first, second in ((one, other), (other, one))]
    with np.errstate(all="ignore"):
        weighted = [tau(weights_of_ranks(counts, order), balance, left, right) for order in orders]
        untied, all_pairs = tau(counts, balance, left, right), (counts * balance).sum(axis=1) / (total * (total - 1))
        return Taus(untied, np.where(np.isnan(untied), np.nan, all_pairs), np.mean(weighted, axis=0))


def tau(weights: Values, balance: Values, left: Values, right: Values) -> Values:
    """Weighted agreement over the weighted number of untied pairs; `left`, `right` of `RankOrder.other_counts`."""
    most = (weights * left).sum(axis=1) * (weights * right).sum(axis=1)
    return np.asarray(np.where(most > 0, (weights * balance).sum(axis=1) / np.sqrt(most), np.nan))


def agreement(counts: Counts, one: RankOrder, other: RankOrder) -> Values:
    """For every item: drawn items it agrees with in order, minus those it disagrees with.

    Whole numbers below 2^24 throughout, so single precision is exact.
    """
    drawn = counts.astype(np.float32)
    parts = []
    for start in range(0, len(one.level), BLOCK):
        columns = slice(start, start + BLOCK)
        signs = [np.sign(side.level[:, None] - side.level[columns]).astype(np.float32) for side in (one, other)]
        parts.append(drawn @ (signs[0] * signs[1]))
    return np.concatenate(parts, axis=1).astype(np.float64)


def weights_of_ranks(counts: Counts, order: Codes) -> Values:
    """Sum of 1/rank over the copies of every item, when the drawn items stand in this order, the best first."""
    last = np.cumsum(counts[:, order], axis=1).astype(np.int64)
    most = int(last.max(initial=0))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, most + 1))])
    weights = np.empty_like(counts)
    weights[:, order] = np.diff(harmonic[last], axis=1, prepend=0.0)
    return weights


def spearman(one: ArrayLike, other: ArrayLike) -> float:
    """Correlation of the ranks, -1 to 1; ties get the mean rank; NaN where a side is constant."""
    return float(resampled_spearman(np.ones((1, np.size(one))), RankOrder.of(one), RankOrder.of(other))[0])


def kendall(one: ArrayLike, other: ArrayLike) -> float:
    """Tau-b: agreeing minus disagreeing pairs, over all pairs but for ties; NaN where a side is constant."""
    return float(resampled_kendall(np.ones((1, np.size(one))), RankOrder.of(one), RankOrder.of(other)).b[0])


SETTLED = 0.9
"""Rank correlation with the end from which on a ranking counts as settled."""


@dataclass(frozen=True)
class RankAgreement:
    """Scores after so many steps, against those at the end."""

    steps: int
    mean: float
    spearman: float | None
    """None where all scores are equal, so that there is no ranking."""
    kendall: float | None
    best_kept: bool
    """Whether the best one is that of the end."""


@dataclass(frozen=True)
class RankStability:
    moments: tuple[RankAgreement, ...]
    settled_at: int | None
    """The first number of steps from which on the rank correlation never falls below 0.9; None for only the end."""


def rank_stability(scores: Mapping[int, Sequence[float]]) -> RankStability:
    """Steps -> scores of the architectures, always in the same order, higher is better."""
    steps = sorted(scores)
    end = np.asarray(scores[steps[-1]], dtype=np.float64)
    moments = []
    for step in steps:
        now = np.asarray(scores[step], dtype=np.float64)
        varied = np.ptp(now) > 0 and np.ptp(end) > 0
        rho, tau_b = (spearman(now, end), kendall(now, end)) if varied else (None, None)
        moments.append(RankAgreement(step, float(now.mean()), rho, tau_b, bool(now.argmax() == end.argmax())))
    settled = None
    for moment in reversed(moments[:-1]):
        if moment.spearman is None or moment.spearman < SETTLED:
            break
        settled = moment.steps
    return RankStability(tuple(moments), settled)
