"""What the size of every single layer can tell: a cross-fitted regression inside cells, as a supervised reference."""

from __future__ import annotations

import numpy as np
from scipy import stats

from archwright.statistics.ranks import Codes, Values
from archwright.statistics.resampling import folds
from archwright.statistics.strata import rows_by_cell

FOLDS, REPEATS = 5, 10
LEAST_ROWS = 40
"""Rows of a cell below which nothing is fitted."""
RIDGE = 0.02
"""Pull of the weights to zero, as a share of the rows that are fitted, of standardised columns."""


def positional_predictions(
    features: Values, truth: Values, cells: Codes, groups: Codes, *, rng: np.random.Generator
) -> Values:
    """Predictions of a ridge regression on features of every layer, fitted inside each cell on the other folds.

    No row, and no twin of it, is ever predicted by a regression that has seen it; means over ten ways to make folds.
    NaN in cells of fewer than 40 rows. `features` is rows x columns, such as heads and weights of every layer.
    """
    predicted = np.full(len(truth), np.nan)
    for rows in rows_by_cell(cells):
        if len(rows) < LEAST_ROWS or not np.ptp(truth[rows]) > 0:
            continue
        columns, names = features[rows], groups[rows]
        columns = columns[:, np.ptp(columns, axis=0) > 0]
        columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
        scores = stats.norm.ppf((stats.rankdata(truth[rows]) - 0.5) / len(rows))  # failed runs pull like bad ones
        total = np.zeros(len(rows))
        for _ in range(REPEATS):
            fold = folds(np.zeros(len(rows)), names, rng=rng, count=FOLDS)  # type: ignore[arg-type]
            for number in range(FOLDS):
                seen, left = fold != number, fold == number
                found = (columns[left] - columns[seen].mean(axis=0)) @ ridge(columns[seen], scores[seen])
                level = truth[rows][seen]  # back to the scale of the truth, so that cells can be compared
                total[left] += level.mean() + level.std() * (found + scores[seen].mean())
        predicted[rows] = total / REPEATS
    return predicted


def ridge(columns: Values, scores: Values) -> Values:
    """Weights of centred columns."""
    seen = columns - columns.mean(axis=0)
    pull = RIDGE * len(columns) * np.eye(columns.shape[1])
    return np.asarray(np.linalg.solve(seen.T @ seen + pull, seen.T @ (scores - scores.mean())))
