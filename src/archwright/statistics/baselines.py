"""What a proxy has to beat: chance, and a straight line through ten trained networks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import estimate
from archwright.statistics.proxies import BOUNDED, PLAIN, Judgement, column_values, interval_columns, verdict_of
from archwright.statistics.ranks import Codes, Values
from archwright.statistics.resampling import Resampling
from archwright.statistics.strata import weighted_mean

REPEATS = 100
"""Draws over which a baseline is averaged."""
LABELS = 10
RIDGE = 0.1
"""Pull of the weights to zero, in units of one label: ten labels cannot carry three free weights."""


def random_baseline(against: Resampling, *, rng: np.random.Generator, repeats: int = REPEATS) -> Judgement:
    """The row of random scores: mean over draws, bounds that hold 95 % of the draws."""
    return summarise_draws((rng.random(len(against.truth)) for _ in range(repeats)), against)


def linear_baseline(
    features: ArrayLike, against: Resampling, *, rng: np.random.Generator, k: int = LABELS, repeats: int = REPEATS
) -> Judgement:
    """The row of a linear model fitted on k trained networks, from rows x features such as log parameters and depth.

    Each draw labels k distinct networks and is judged on the rows of all others, so no twin of a labelled one is asked.
    Numbers are means over draws, bounds hold 95 % of the draws: a user trains ten networks once, not on average.
    """
    columns = np.asarray(features, dtype=np.float64)
    if columns.ndim != 2 or len(columns) != len(against.truth) or not np.isfinite(columns).all():
        raise BadInput(f"features must be finite, one row per architecture, got shape {columns.shape}.")
    if len(np.unique(against.groups)) < 2 * k:
        raise BadInput(f"{k} labels need at least {2 * k} networks, got {len(np.unique(against.groups))}.")
    return summarise_draws(
        (ridge_predictions(columns, against, draw_labels(against.groups, k, rng)) for _ in range(repeats)), against
    )


def draw_labels(groups: Codes, k: int, rng: np.random.Generator) -> Codes:
    """One random row of each of k random networks."""
    shuffled = rng.permutation(len(groups))
    _, first = np.unique(groups[shuffled], return_index=True)
    return np.asarray(rng.permutation(shuffled[first])[:k])


def ridge_predictions(features: Values, against: Resampling, labels: Codes) -> Values:
    """Predictions of a ridge regression on the labelled rows; NaN for every row of a labelled network."""
    scale = np.where(np.ptp(features, axis=0) > 0, features.std(axis=0), 1.0)
    columns = (features - features.mean(axis=0)) / scale
    centre, truth = columns[labels].mean(axis=0), against.truth[labels]
    seen = columns[labels] - centre
    weights = np.linalg.solve(seen.T @ seen + RIDGE * np.eye(columns.shape[1]), seen.T @ (truth - truth.mean()))
    scores = (columns - centre) @ weights
    return np.where(np.isin(against.groups, against.groups[labels]), np.nan, scores)


def summarise_draws(draws: Iterable[Values], against: Resampling) -> Judgement:
    """One row from many sets of scores: means, and bounds that hold 95 % of them."""
    bare, found, sizes = against.points(), [], []
    for scores in draws:
        rows = np.flatnonzero(np.isfinite(scores))
        found.append(column_values(scores[rows], bare.on(rows)))
        sizes.append(len(rows))
    means = {}
    for name in (*BOUNDED, *PLAIN):  # the mean of what is a number, then all values, as `estimate` wants them
        values = np.array([row[name][0] for row in found])
        means[name] = np.concatenate([weighted_mean(values[:, None], np.ones(len(values))), values])
    bounded = {name: estimate(means[name]) for name in BOUNDED}
    columns: dict[str, Any] = interval_columns(bounded) | {name: estimate(means[name]).value for name in PLAIN}
    n = round(float(np.mean(sizes)))
    row = Judgement(n=n, missing=len(against.truth) - n)
    return replace(row, **columns, verdict=verdict_of(bounded, against))
