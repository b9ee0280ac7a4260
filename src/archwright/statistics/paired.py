"""Several networks on the same rows: how much worse one is than another, and how sure that is.

What rows have in common (hard ones, wrong labels) hurts all networks alike, so the interval of a difference that is
taken row by row is far narrower than two intervals side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archwright.errors import BadInput
from archwright.statistics.bootstrap import BOUNDS, RESAMPLES
from archwright.statistics.metrics import LARGEST_LOSS, METRICS, RATIOS, perplexity, ratio
from archwright.statistics.own_metric import is_own, score_own
from archwright.statistics.ranks import Counts, RankOrder, Values, resampled_correlation, resampled_spearman
from archwright.statistics.squad import ANSWER_METRICS

NORMAL_95 = 1.959963984540054
"""Standard errors on either side of a mean that make its 95 % interval."""
DRAWS_AT_ONCE = 2_000_000
"""Entries of the matrix of counts (resamples x rows) that is held in memory."""
PERPLEXITY = "perplexity"
OWN_RESAMPLES = 200
"""Of a metric of the user's own, which is called for every one of them."""
ROW_SCORES = (*ANSWER_METRICS, "neighbour_recall")
"""Metrics that are the mean of a score of each row."""


@dataclass(frozen=True, eq=False)
class RowOutcomes:
    """What a network made of every row: enough for its error on these rows, and on any resample of them."""

    metric: str
    answers: NDArray[np.generic]
    """Class ids or numbers; for a perplexity the summed loss of each text, for questions the score of each answer, for
    RATIOS what the row adds to the numerator."""
    targets: NDArray[np.generic]
    """Right class ids or numbers; for a perplexity the tokens of each text that have a target, for questions ones, for
    RATIOS what the row adds to the denominator."""
    logits: NDArray[np.generic] | None = None
    """The network's outputs, rows x outputs, for a metric of the user's own."""

    def __len__(self) -> int:
        return len(self.answers)

    def take(self, rows: NDArray[np.int64]) -> RowOutcomes:
        """The rows at these positions."""
        logits = None if self.logits is None else self.logits[rows]
        return RowOutcomes(self.metric, self.answers[rows], self.targets[rows], logits)

    @property
    def error(self) -> float:
        """1 - metric, or the perplexity: lower is better."""
        if self.metric == PERPLEXITY:  # exp of the mean over all tokens, whatever text they are in
            return perplexity(float(self.answers.sum() / self.targets.sum()))
        if self.metric in ROW_SCORES:
            return 1.0 - float(sum(self.answers.tolist())) / len(self)
        if self.metric in RATIOS:
            return 1.0 - ratio(self.answers, self.targets)
        if is_own(self.metric):
            return 1.0 - score_own(self.metric, self.answers, self.targets, self.logits)
        return 1.0 - METRICS[self.metric](self.answers, self.targets)

    @property
    def row_errors(self) -> Values | None:
        """One number per row whose mean is the error; None when the metric is not a mean over rows."""
        if self.metric in ROW_SCORES:
            return 1.0 - np.asarray(self.answers, dtype=np.float64)
        return (self.answers != self.targets).astype(np.float64) if self.metric == "accuracy" else None

    def resampled_errors(self, counts: Counts) -> Values:
        """The error of every resample, given how often each row was drawn (resamples x rows)."""
        if self.row_errors is not None:
            return np.asarray(counts @ self.row_errors / counts.sum(axis=1))
        if is_own(self.metric):
            drawn = (np.repeat(np.arange(len(self)), row.astype(np.int64)) for row in counts)
            return np.array([self.take(rows).error for rows in drawn])
        answers, targets = (np.asarray(side, dtype=np.float64) for side in (self.answers, self.targets))
        if self.metric == PERPLEXITY:
            return np.asarray(np.exp(np.minimum(counts @ answers / (counts @ targets), LARGEST_LOSS)))
        if self.metric in RATIOS:
            total = counts @ targets
            return 1.0 - np.divide(counts @ answers, total, out=np.zeros(len(counts)), where=total > 0)
        return 1.0 - RESAMPLED[self.metric](counts, answers, targets)


def resampled_macro_f1(counts: Counts, answers: Values, targets: Values) -> Values:
    """Of every resample the classes that occur in it or are predicted; of rows x labels all labels."""
    sets = answers.ndim == 2
    classes = range(answers.shape[1]) if sets else np.union1d(answers, targets)
    total, present = np.zeros(len(counts)), np.zeros(len(counts))
    for each in classes:
        column = int(each)
        guess, truth = (side[:, column] if sets else (side == each).astype(float) for side in (answers, targets))
        both = counts @ (guess + truth)
        total += np.divide(2 * counts @ (guess * truth), both, out=np.zeros(len(counts)), where=both > 0)
        present += 1 if sets else both > 0
    return np.asarray(total / present)


def resampled_roc_auc(counts: Counts, answers: Values, targets: Values) -> Values:
    """Of every resample the mean over classes or labels that it has and lacks, 0.5 where there is none."""
    if answers.ndim == 2 and targets.ndim == 1:
        targets = (targets[:, None] == np.arange(answers.shape[1])).astype(float)
    total, defined = np.zeros(len(counts)), np.zeros(len(counts))
    for scores, wanted in zip(np.atleast_2d(answers.T), np.atleast_2d(targets.T), strict=True):
        order = np.argsort(scores, kind="stable")
        first = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))  # equal scores count half
        yes, no = (np.add.reduceat(counts[:, order] * side[order], first, axis=1) for side in (wanted, 1 - wanted))
        pairs = yes.sum(axis=1) * no.sum(axis=1)
        won = (yes * (no.cumsum(axis=1) - no / 2)).sum(axis=1)
        total += np.divide(won, pairs, out=np.zeros(len(counts)), where=pairs > 0)
        defined += pairs > 0
    return np.asarray(np.divide(total, defined, out=np.full(len(counts), 0.5), where=defined > 0))


def resampled_f1(counts: Counts, answers: Values, targets: Values) -> Values:
    """F1 of class 1, 0 where it neither occurs nor is predicted."""
    guess, truth = (answers == 1).astype(float), (targets == 1).astype(float)
    total = counts @ (guess + truth)
    return np.asarray(np.divide(2 * counts @ (guess * truth), total, out=np.zeros(len(counts)), where=total > 0))


def resampled_matthews(counts: Counts, answers: Values, targets: Values) -> Values:
    """Matthews correlation of two or more classes (Gorodkin 2004), 0 where either side is constant."""
    classes, total = np.union1d(answers, targets), counts.sum(axis=1)
    guesses, truths = (
        counts @ (side[:, None] == classes).astype(float) / total[:, None] for side in (answers, targets)
    )
    covariance = counts @ (answers == targets).astype(float) / total - (guesses * truths).sum(axis=1)
    spread = (1 - (guesses**2).sum(axis=1)) * (1 - (truths**2).sum(axis=1))
    varied = spread > 1e-12  # resamples x classes are shares, so that rounding leaves about 1e-16 of a constant side
    return np.asarray(np.divide(covariance, np.sqrt(np.abs(spread)), out=np.zeros(len(counts)), where=varied))


def resampled_pearson(counts: Counts, answers: Values, targets: Values) -> Values:
    centred = (side - (counts @ side / counts.sum(axis=1))[:, None] for side in (answers, targets))
    return np.nan_to_num(resampled_correlation(counts, *centred))


RESAMPLED: dict[str, Callable[[Counts, Values, Values], Values]] = {
    "f1": resampled_f1,
    "matthews": resampled_matthews,
    "spearman": lambda counts, answers, targets: np.nan_to_num(
        resampled_spearman(counts, RankOrder.of(answers), RankOrder.of(targets))
    ),
    "pearson": resampled_pearson,
    "macro_f1": resampled_macro_f1,
    "roc_auc": resampled_roc_auc,
}
"""The metrics that are not means over rows, of many resamples at once."""


class PairedLoss(NamedTuple):
    """How much worse a network is than another on the same rows: a share (0.01 is a point), positive is worse.

    Of perplexities the ratio minus 1. The bounds are of the 95 % interval.
    """

    value: float
    low: float
    high: float
    standard_error: float
    rows: int


@dataclass(frozen=True, eq=False)
class PairedErrors:
    """Errors of several networks on the same rows."""

    outcomes: Mapping[str, RowOutcomes]
    seed: Sequence[int] = field(default=(0,))
    """Of the resamples, which are the same for all networks."""

    def __post_init__(self) -> None:
        if len({len(outcomes) for outcomes in self.outcomes.values()}) > 1:
            raise BadInput("networks can be paired on the same rows only, got different numbers of rows.")

    def error(self, name: str) -> float:
        return self.outcomes[name].error

    def loss(self, name: str, base: str) -> PairedLoss:
        """What `name` loses against `base`.

        By the differences of rows where the error is a mean over rows, else by 1,000 bootstrap samples of the rows (200
        for a metric of the user's own).
        """
        one, other = self.outcomes[name], self.outcomes[base]
        value, rows = float(self._lost(np.array(one.error), np.array(other.error))), len(one)
        left, right = one.row_errors, other.row_errors
        if left is not None and right is not None:
            deviation = float(np.std(left - right, ddof=1)) if rows > 1 else 0.0
            standard_error = deviation / float(np.sqrt(rows))
            half = NORMAL_95 * standard_error
            return PairedLoss(value, value - half, value + half, standard_error, rows)
        drawn = self._lost(self._resampled[name], self._resampled[base])
        low, high = np.quantile(drawn, BOUNDS)
        return PairedLoss(value, float(low), float(high), float(np.std(drawn, ddof=1)), rows)

    def is_better(self, name: str, base: str, *, by: float = 1.0) -> bool:
        """By more than so many standard errors of the difference."""
        loss = self.loss(name, base)
        return loss.value < -by * loss.standard_error

    def _lost(self, error: Values, base: Values) -> Values:
        relative = next(iter(self.outcomes.values())).metric == PERPLEXITY
        return error / base - 1 if relative else error - base

    @cached_property
    def _resampled(self) -> dict[str, Values]:
        """Errors of the resamples, which are drawn block by block, once for all networks."""
        rng, rows = np.random.default_rng(self.seed), len(next(iter(self.outcomes.values())))
        blocks: dict[str, list[Values]] = {name: [] for name in self.outcomes}
        block = max(1, DRAWS_AT_ONCE // rows)
        resamples = OWN_RESAMPLES if is_own(next(iter(self.outcomes.values())).metric) else RESAMPLES
        for start in range(0, resamples, block):
            size = min(block, resamples - start)
            counts = rng.multinomial(rows, np.full(rows, 1 / rows), size=size).astype(np.float64)
            for name, outcomes in self.outcomes.items():
                blocks[name].append(outcomes.resampled_errors(counts))
        return {name: np.concatenate(parts) for name, parts in blocks.items()}
