"""Correlation inside cells: what a score knows beyond that which is equal in a cell, such as depth and width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.ranks import Codes, Counts, RankOrder, Values, resampled_correlation

LEAST_ROWS = 5
"""Rows below which a cell says nothing."""
ROUNDING = 1e-9
"""Share of a variance below which what is left of it is rounding."""


def rows_by_cell(cells: Codes) -> list[Codes]:
    """The rows of every cell."""
    return [np.flatnonzero(cells == cell) for cell in np.unique(cells)]


def within_cells(
    counts: Counts,
    scores: Values,
    truth: Values,
    cells: Codes,
    *,
    given: Sequence[Values] = (),
    least: int = LEAST_ROWS,
    constant: float | None = None,
) -> Values:
    """Mean over cells of Spearman inside the cell, weighted by its rows, one per resample.

    Cells with fewer than `least` rows, or where either side is constant, are left out; NaN when none is left. With
    `constant`, a cell in which the scores alone are constant counts with this value: two scores are then compared on
    the same cells. With `given`, columns that may still vary inside a cell, the partial Spearman given their ranks.
    Where `least` is below five whole cells were drawn, each counts as often as it was.
    """
    values, weights = [], []
    for rows in rows_by_cell(cells):
        flat = constant is not None and not np.ptp(scores[rows]) > 0
        if not is_usable_cell(truth[rows] if flat else scores[rows], truth[rows], least):
            continue
        drawn = counts[:, rows]
        values.append(
            np.full(len(counts), constant)
            if flat
            else partial_spearman(drawn, [side[rows] for side in (scores, truth, *given)])
        )
        weights.append(drawn.sum(axis=1) if least < LEAST_ROWS else np.full(len(counts), float(len(rows))))
    return weighted_mean(np.stack(values), np.stack(weights)) if values else np.full(len(counts), np.nan)


def partial_spearman(counts: Counts, columns: Sequence[Values]) -> Values:
    """Spearman of the first two columns, given the ranks of all others."""
    one, other, *given = (RankOrder.of(column).centred_ranks(counts) for column in columns)
    known: list[Values] = []
    for column in given:
        known.append(residual_ranks(counts, column, known))
    return resampled_correlation(counts, *(residual_ranks(counts, side, known) for side in (one, other)))


def residual_ranks(counts: Counts, column: Values, known: Sequence[Values]) -> Values:
    """What lines on the known columns, orthogonal to each other, leave of a centred one; zero where only rounding."""
    left = column
    with np.errstate(all="ignore"):
        for other in known:
            slope = (counts * left * other).sum(axis=1) / (counts * other**2).sum(axis=1)
            left = left - np.nan_to_num(slope, posinf=0.0, neginf=0.0)[:, None] * other
    spread, before = ((counts * side**2).sum(axis=1, keepdims=True) for side in (left, column))
    return np.where(spread > ROUNDING * before, left, 0.0)


def is_usable_cell(scores: Values, truth: Values, least: int = LEAST_ROWS) -> bool:
    """Whether a cell is large enough and neither side is constant in it."""
    return len(scores) >= least and bool(np.ptp(scores) > 0 and np.ptp(truth) > 0)


def weighted_mean(values: Values, weights: Values) -> Values:
    """Mean over the first axis of what is a number there; NaN where nothing is. One weight per row, or per number."""
    known, weights = np.isfinite(values), weights if weights.ndim == 2 else weights[:, None]
    with np.errstate(all="ignore"):
        total = np.where(known, values, 0.0) * weights
        return np.asarray(total.sum(axis=0) / (known * weights).sum(axis=0))


def lexicographic(*columns: ArrayLike) -> Values:
    """A score that orders by the first column, ties by the second, and so on: (depth, width) as one number."""
    rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    if not np.isfinite(rows).all():
        raise BadInput(f"columns to order by must be finite numbers, got {rows[~np.isfinite(rows)][0]}.")
    _, place = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(place, dtype=np.float64).reshape(-1)
