"""How methods are compared: pooled quantiles, regret, average ranks, size bins (Klein et al. 2024, Section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.pareto import hypervolume, hypervolume_over_time

Values = NDArray[np.float64]

REFERENCE = (2.0, 2.0)
"""Where the hypervolume of two normalised objectives ends, so that the ends of a front count too."""
BEST = 4.0
"""The hypervolume of a point that is the smallest of all in both objectives."""
SAMPLES = 1000
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Largest share of the parameters that each size bin allows."""
SLACK = 0.02
"""Added to it: three of six layers are 51 % of a MiniLM, because its head stays, and count as half."""
LINES = (0.95, 0.9)
"""Shares of the unpruned model's score that a picture of the bins marks."""


class Spread(NamedTuple):
    """Mean over seeds, and its standard deviation (NaN for a single seed)."""

    mean: Values
    deviation: Values


def quantiles(values: ArrayLike) -> Values:
    """The place of each value among all of them: 0 the smallest, 1 the largest, equal values share the middle one."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or not np.isfinite(given).all():
        raise BadInput(f"quantiles need a list of finite numbers, got shape {given.shape}; leave out missing values.")
    places = (stats.rankdata(given) - 1) / max(given.size - 1, 1)
    if given.size:
        places[given == given.max()] = 1.0  # however many share an end, it stays the end
        places[given == given.min()] = 0.0
    return np.asarray(places, dtype=np.float64)


def pooled_quantiles(points: Mapping[str, Sequence[ArrayLike]]) -> dict[str, list[Values]]:
    """The same points (method -> seed -> trials x objectives), each objective as its quantile over all of them."""

    def table(seed: ArrayLike) -> Values:
        rows = np.asarray(seed, dtype=np.float64)
        return rows if rows.size else rows.reshape(0, 2)

    rows = {method: [table(seed) for seed in seeds] for method, seeds in points.items()}
    filled = [seed for seeds in rows.values() for seed in seeds if len(seed)]
    if not filled:
        return rows
    pooled = np.column_stack([quantiles(column) for column in np.vstack(filled).T])
    ends = iter(np.cumsum([len(seed) for seeds in rows.values() for seed in seeds]))
    return {method: [pooled[(end := next(ends)) - len(seed) : end] for seed in seeds] for method, seeds in rows.items()}


def normalised_hypervolume(points: ArrayLike) -> float:
    """The hypervolume of points whose two objectives are quantiles, up to (2, 2); 4 is the best possible."""
    return hypervolume(points, REFERENCE)


def regret_over_trials(points: ArrayLike) -> Values:
    """The regret (what is missing to the best possible hypervolume) after the first trial, the first two, and so on."""
    return BEST - np.asarray(hypervolume_over_time(points, REFERENCE), dtype=np.float64)


def at_times(times: ArrayLike, values: ArrayLike, grid: ArrayLike, *, before: float = BEST) -> Values:
    """The last of the values known at each time of the grid; `before` where there is none yet."""
    when, known = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    place = np.searchsorted(when, np.asarray(grid, dtype=np.float64), side="right")
    return np.concatenate([[before], known])[place]


def over_seeds(curves: Sequence[ArrayLike]) -> Spread:
    """Mean and deviation of equally long curves."""
    rows = np.stack([np.asarray(curve, dtype=np.float64) for curve in curves])  # seeds x steps
    many = len(rows) > 1
    return Spread(rows.mean(axis=0), rows.std(axis=0, ddof=1) if many else np.full(rows.shape[1:], np.nan))


def average_ranks(
    curves: Mapping[str, Mapping[str, Sequence[ArrayLike]]], *, rng: np.random.Generator, samples: int = SAMPLES
) -> dict[str, Values]:
    """Mean rank of every method at every step, 1 is best (Feurer et al. 2015).

    `curves` is task -> method -> seed -> regret per step. Each sample draws a task, and one seed of each method on it.
    """
    tasks = [{name: np.atleast_2d(np.asarray(seeds, float)) for name, seeds in t.items()} for t in curves.values()]
    methods = list(next(iter(curves.values()), {}))
    if any(set(task) != set(methods) for task in tasks) or len({c.shape[1] for t in tasks for c in t.values()}) != 1:
        raise BadInput("average ranks need the same methods on every task, with equally many steps each.")
    total: float | Values = 0.0
    for _ in range(samples):
        task = tasks[rng.integers(len(tasks))]
        drawn = np.stack([task[name][rng.integers(len(task[name]))] for name in methods])  # methods x steps
        total = total + stats.rankdata(drawn, axis=0)
    return dict(zip(methods, np.asarray(total) / samples, strict=True))


def size_bins(
    shares: ArrayLike, scores: ArrayLike, *, unpruned: float, most: Sequence[float] = SHARES
) -> list[float | None]:
    """The best score among the networks of each bin (a share of at most `most` + SLACK), as a share of the unpruned's.

    None for a bin without a network, and for all of them when the unpruned model has learnt nothing.
    """
    sizes, good = np.asarray(shares, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if unpruned <= 0:
        return [None] * len(most)
    inside = [good[sizes <= limit + SLACK] for limit in most]
    return [float(scores.max()) / unpruned if scores.size else None for scores in inside]
