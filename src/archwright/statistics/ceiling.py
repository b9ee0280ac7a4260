"""The noise ceiling: how well even a perfect predictor can correlate with one noisy training run.

A run is the network plus chance. Two runs of a network correlate by the share of the network in the variance, the
reliability; a predictor that knows the network exactly correlates with one run by the square root of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import codes
from archwright.statistics.ranks import Codes, Order, Values, spearman
from archwright.statistics.strata import LEAST_ROWS, weighted_mean

PAIRS = 10
"""Pairs of runs below which twins say nothing."""
MOST = 200
"""Ways to halve the tasks that are tried."""


@dataclass(frozen=True)
class Ceiling:
    """The best Spearman that can be reached, overall and inside cells; None where it cannot be told."""

    kind: str
    value: float | None
    within_cells: float | None
    n_pairs: int
    """Pairs of runs of one network, or ways to halve the tasks."""
    reliability: float | None
    """Correlation between two runs of one network, overall."""
    reliability_within_cells: float | None

    def as_dict(self) -> dict[str, str | float | int | None]:
        return asdict(self)


def noise_ceiling(
    truth: ArrayLike, *, networks: ArrayLike, cells: ArrayLike, tasks: ArrayLike | None = None
) -> Ceiling | None:
    """From rows that are the same network trained again; else from halves of the tasks (rows x tasks); else None."""
    values, keys, inside = np.asarray(truth, dtype=np.float64), codes(networks), codes(cells)
    if not len(values) == len(keys) == len(inside):
        raise BadInput(f"truth, networks, cells must be equally long, got {len(values)}, {len(keys)}, {len(inside)}.")
    overall, pairs = np.zeros_like(inside), len(twin_pairs(keys))
    if pairs >= PAIRS:
        return ceiling("twins", pairs, *(by_twins(values, keys, among) for among in (overall, inside)))
    parts = np.empty((0, 0)) if tasks is None else np.asarray(tasks, dtype=np.float64)
    if parts.shape[1] < 2:
        return None
    ways = len(halves(parts.shape[1]))
    return ceiling("split-half of the tasks", ways, *(by_halves(parts, among) for among in (overall, inside)))


def ceiling(kind: str, pairs: int, overall: float, within: float) -> Ceiling:
    known = [value if np.isfinite(value) else None for value in (overall, within)]
    tops = [None if value is None else float(np.sqrt(max(value, 0.0))) for value in known]
    return Ceiling(kind, tops[0], tops[1], pairs, known[0], known[1])


def twin_pairs(keys: Codes) -> list[tuple[int, int]]:
    """Positions of every two rows of one network."""
    groups = (np.flatnonzero(keys == key).tolist() for key in np.unique(keys))
    return [pair for group in groups for pair in combinations(group, 2)]


def by_twins(truth: Values, keys: Codes, cells: Codes) -> float:
    """Reliability of the ranks from rows of one network: mean over cells, weighted by how much twins tell of each."""
    inside = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    told = np.array([len(rows) - len(np.unique(keys[rows])) for rows in inside], dtype=np.float64)
    found = [[reliability(truth[rows], keys[rows])] for rows in inside]
    return float(weighted_mean(np.array(found), told)[0])


def reliability(truth: Values, keys: Codes) -> float:
    """1 - variance of the ranks between twins / variance of the ranks of all rows; NaN without twins.

    The variance of all rows, not of those with a twin: small networks have most of the twins, and among them alone
    chance would weigh more than in the benchmark.
    """
    ranks = Order.of(truth).ranks(np.ones((1, len(truth))))[0]
    _, place, size = np.unique(keys, return_inverse=True, return_counts=True)
    chance = ((ranks - (np.bincount(place, ranks) / size)[place]) ** 2).sum()
    with np.errstate(all="ignore"):
        return float(1 - np.divide(chance, len(truth) - len(size)) / ranks.var(ddof=1))


def by_halves(tasks: Values, cells: Codes) -> float:
    """Reliability of the mean of all tasks: Spearman between halves, stepped up to full length (Spearman-Brown).

    Averaged over all ways to halve them. It counts as chance also what is particular to a task.
    """
    return mean_over_cells(cells, lambda inside: halved(tasks[inside]))


def halved(tasks: Values) -> float:
    """Spearman-Brown of the mean correlation between halves."""
    ones = np.ones((1, len(tasks)))
    found = [
        spearman(ones, Order.of(tasks[:, one].mean(axis=1)), Order.of(tasks[:, other].mean(axis=1)))[0]
        for one, other in halves(tasks.shape[1])
    ]
    half = float(np.mean(found))
    return 2 * half / (1 + half)


def halves(n: int) -> list[tuple[list[int], list[int]]]:
    """All ways to split n tasks into two halves, or into halves that differ by one; at most 200 of them."""
    ones = [list(one) for one in islice(combinations(range(n), n // 2), 2 * MOST)]
    splits = [(one, [task for task in range(n) if task not in one]) for one in ones]
    return [split for split in splits if n % 2 or 0 in split[0]][:MOST]


def mean_over_cells(cells: Codes, reliability: Callable[[Codes], float]) -> float:
    """Mean of the reliability inside each cell of at least five rows, weighted by rows; NaN without such a cell."""
    inside = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    used = [here for here in inside if len(here) >= LEAST_ROWS]
    found = np.array([[reliability(here)] for here in used]).reshape(-1, 1)
    return float(weighted_mean(found, np.array([len(here) for here in used], dtype=np.float64))[0])
