"""Correlation inside cells: what a score knows beyond that which is equal in a cell, such as depth and width."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.judge.ranks import Codes, Counts, Order, Values, spearman

LEAST_ROWS = 5
"""Rows below which a cell says nothing."""
QUANTILES = 5


def within_cells(counts: Counts, scores: Values, truth: Values, cells: Codes) -> Values:
    """Mean over cells of Spearman inside the cell, weighted by its rows, one per resample.

    Cells with fewer than five rows, or where either side is constant, are left out; NaN when none is left.
    """
    inside = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    used = [rows for rows in inside if usable(scores[rows], truth[rows])]
    if not used:
        return np.full(len(counts), np.nan)
    found = [spearman(counts[:, rows], Order.of(scores[rows]), Order.of(truth[rows])) for rows in used]
    return weighted_mean(np.stack(found), np.array([len(rows) for rows in used], dtype=np.float64))


def usable(scores: Values, truth: Values) -> bool:
    """Whether a cell is large enough and neither side is constant in it."""
    return len(scores) >= LEAST_ROWS and bool(np.ptp(scores) > 0 and np.ptp(truth) > 0)


def weighted_mean(values: Values, weights: Values) -> Values:
    """Mean over the first axis of what is a number there; NaN where nothing is."""
    known = np.isfinite(values)
    with np.errstate(all="ignore"):
        total = np.where(known, values, 0.0) * weights[:, None]
        return np.asarray(total.sum(axis=0) / (known * weights[:, None]).sum(axis=0))


def size_cells(sizes: ArrayLike, quantiles: int = QUANTILES) -> Codes:
    """Cells of about equally many rows by size, 0 the smallest, for spaces without depth and width."""
    given = np.asarray(sizes, dtype=np.float64)
    edges = np.quantile(given, np.linspace(0, 1, quantiles + 1)[1:-1])
    return np.asarray(np.searchsorted(edges, given, side="left"), dtype=np.int64)


def lexicographic(*columns: ArrayLike) -> Values:
    """A score that orders by the first column, ties by the second, and so on: (depth, width) as one number."""
    rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    if not np.isfinite(rows).all():
        raise BadInput(f"columns to order by must be finite numbers, got {rows[~np.isfinite(rows)][0]}.")
    _, place = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(place, dtype=np.float64).reshape(-1)
