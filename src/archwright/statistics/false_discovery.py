"""Many proxies are judged at once: how sure a finding is among all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from archwright.statistics.ranks import Values

SURE = 0.05
"""Share of false findings among all findings that is accepted."""


def bootstrap_p(values: Values) -> float | None:
    """One-sided p-value of "not above zero" from a value and its resamples (the value first), by their spread.

    By a normal tail, because a thousand resamples cannot tell 0.001 from 0.0001 and a hundred proxies need that; never
    below what the resamples themselves say. None where there is no value.
    """
    value, others = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not np.isfinite(value) or len(others) < 2:
        return None
    spread = float(others.std(ddof=1))
    if spread == 0:
        return 0.0 if value > 0 else 1.0
    counted = float((others <= 0).mean())
    return max(float(stats.norm.sf(value / spread)), counted if counted > 0.05 else 0.0)


def false_discovery_rates(values: Sequence[float | None]) -> list[float | None]:
    """Smallest false discovery rate at which each finding still counts (Benjamini and Hochberg 1995), from p-values."""
    known = [(value, place) for place, value in enumerate(values) if value is not None]
    rates: list[float | None] = [None] * len(values)
    least = 1.0
    for rank, (value, place) in reversed(list(enumerate(sorted(known), 1))):
        least = min(least, value * len(known) / rank)
        rates[place] = least
    return rates
