"""How early the ranking of architectures settles while they are trained (Serianni and Kalita 2023, Figure 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

SETTLED = 0.9
"""Rank correlation with the end from which on a ranking counts as settled."""


@dataclass(frozen=True)
class Moment:
    """Scores after so many steps, against those at the end."""

    steps: int
    mean: float
    spearman: float | None
    """None where all scores are equal, so that there is no ranking."""
    kendall: float | None
    best_kept: bool
    """Whether the best one is that of the end."""


@dataclass(frozen=True)
class Settling:
    moments: tuple[Moment, ...]
    settled_at: int | None
    """The first number of steps from which on the rank correlation never falls below 0.9; None for only the end."""


def settling(scores: Mapping[int, Sequence[float]]) -> Settling:
    """Steps -> scores of the architectures, always in the same order, higher is better."""
    steps = sorted(scores)
    end = np.asarray(scores[steps[-1]], dtype=np.float64)
    moments = tuple(moment(step, np.asarray(scores[step], dtype=np.float64), end) for step in steps)
    settled = None
    for now in reversed(moments[:-1]):
        if now.spearman is None or now.spearman < SETTLED:
            break
        settled = now.steps
    return Settling(moments, settled)


def moment(steps: int, now: np.ndarray, end: np.ndarray) -> Moment:
    ranked = np.ptp(now) > 0 and np.ptp(end) > 0
    spearman = float(stats.spearmanr(now, end).statistic) if ranked else None
    kendall = float(stats.kendalltau(now, end).statistic) if ranked else None
    return Moment(steps, float(now.mean()), spearman, kendall, bool(now.argmax() == end.argmax()))
