"""A mean over a few seeds, and how sure it is."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

SURE = 0.95


def mean_of_seeds(values: Sequence[float | None]) -> dict[str, float | None]:
    """`value` with the `low` and `high` of its 95 % interval by Student's t; no interval for a single seed."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return {"value": None, "low": None, "high": None}
    value = float(known.mean())
    if len(known) < 2:
        return {"value": value, "low": None, "high": None}
    half = float(stats.t.ppf((1 + SURE) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known)))
    return {"value": value, "low": value - half, "high": value + half}
