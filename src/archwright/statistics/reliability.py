"""How much of a score is the network and how much is chance: intraclass correlation over seeds and batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import codes
from archwright.statistics.ranks import Codes, RankOrder, Values, spearman
from archwright.statistics.strata import LEAST_ROWS, rows_by_cell, weighted_mean

PARTS = 10


class Squares(NamedTuple):
    """Mean squares of a table of architectures x replicates (Shrout & Fleiss 1979, Table 3)."""

    between: float
    within: float
    columns: float
    error: float


def icc_seeds(table: ArrayLike) -> float | None:
    """ICC(1,1): share of the variance between architectures, at most 1, from architectures x seeds.

    One-way, because seed 3 of one architecture has nothing in common with seed 3 of another
    (Shrout & Fleiss 1979). Architectures with a missing replicate are left out; None for a constant table.
    """
    scores = complete(table)
    if scores is None:
        return None
    squares, k = mean_squares(scores), scores.shape[1]
    return ratio(squares.between - squares.within, squares.between + (k - 1) * squares.within)


def icc_batches(table: ArrayLike) -> float | None:
    """ICC(2,1): the same from architectures x batches, when every architecture saw the same batches.

    Two-way random effects, absolute agreement: a batch that lifts every score counts against the proxy, because
    architectures scored on different batches must be comparable (Shrout & Fleiss 1979).
    """
    scores = complete(table)
    if scores is None:
        return None
    squares, (n, k) = mean_squares(scores), scores.shape
    spread = squares.between + (k - 1) * squares.error + k * (squares.columns - squares.error) / n
    return ratio(squares.between - squares.error, spread)


def complete(table: ArrayLike) -> Values | None:
    """The architectures with all replicates, scaled; None with fewer than two, one replicate or no spread."""
    given = np.asarray(table, dtype=np.float64)
    if given.ndim != 2:
        raise BadInput(f"replicates must be a table of architectures x replicates, got shape {given.shape}.")
    rows = given[np.isfinite(given).all(axis=1)]
    if len(rows) < 2 or rows.shape[1] < 2 or not np.ptp(rows) > 0:
        return None
    return np.asarray((rows - rows.min()) / np.ptp(rows))  # huge scores would overflow when squared


def mean_squares(scores: Values) -> Squares:
    """Of an analysis of variance with one observation per architecture and replicate."""
    n, k = scores.shape
    rows, columns, mean = scores.mean(axis=1), scores.mean(axis=0), scores.mean()
    within = float(((scores - rows[:, None]) ** 2).sum())
    judges = float(n * ((columns - mean) ** 2).sum())
    between = float(k * ((rows - mean) ** 2).sum()) / (n - 1)
    return Squares(between, within / (n * (k - 1)), judges / (k - 1), (within - judges) / ((n - 1) * (k - 1)))


def ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def deciles(truth: ArrayLike, *, rng: np.random.Generator | None = None, parts: int = PARTS) -> Codes:
    """Positions of ten items, one per decile of the truth, the worst first (Figures 7 to 10 of the papers).

    The middle one of each decile, or with `rng` a random one.
    """
    values = np.asarray(truth, dtype=np.float64)
    if values.ndim != 1 or len(values) < parts or not np.isfinite(values).all():
        raise BadInput(f"deciles need at least {parts} finite numbers, got {len(values)}; take a fuller benchmark.")
    pieces = np.array_split(np.argsort(values, kind="stable"), parts)
    return np.array([piece[len(piece) // 2 if rng is None else rng.integers(len(piece))] for piece in pieces])


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
    overall = np.zeros_like(inside)
    _, runs = np.unique(keys, return_counts=True)
    pairs = int((runs * (runs - 1) // 2).sum())  # every two rows of one network
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


def by_twins(truth: Values, keys: Codes, cells: Codes) -> float:
    """Reliability of the ranks from rows of one network: mean over cells, weighted by how much twins tell of each.

    In a cell 1 - variance of the ranks between twins / variance of the ranks of all rows; NaN without twins. Of all
    rows, not of those with a twin: small networks have most of the twins, and among them alone chance would weigh more
    than in the benchmark.
    """
    values, weights = [], []
    for rows in rows_by_cell(cells):
        ranks = RankOrder.of(truth[rows]).ranks(np.ones((1, len(rows))))[0]
        _, place, size = np.unique(keys[rows], return_inverse=True, return_counts=True)
        chance, twins = ((ranks - (np.bincount(place, ranks) / size)[place]) ** 2).sum(), len(rows) - len(size)
        with np.errstate(all="ignore"):
            values.append([float(1 - np.divide(chance, twins) / ranks.var(ddof=1))])
        weights.append(float(twins))
    return float(weighted_mean(np.array(values), np.array(weights))[0])


def by_halves(tasks: Values, cells: Codes) -> float:
    """Reliability of the mean of all tasks: Spearman between halves, stepped up to full length (Spearman-Brown).

    Averaged over all ways to halve them, and over the cells of at least five rows, weighted by rows; NaN without such a
    cell. It counts as chance also what is particular to a task.
    """
    used = [rows for rows in rows_by_cell(cells) if len(rows) >= LEAST_ROWS]
    values = []
    for rows in used:
        pairs = [[tasks[rows][:, half].mean(axis=1) for half in split] for split in halves(tasks.shape[1])]
        correlation = float(np.mean([spearman(first, second) for first, second in pairs]))
        values.append([2 * correlation / (1 + correlation)])
    weights = np.array([len(rows) for rows in used], dtype=np.float64)
    return float(weighted_mean(np.array(values).reshape(-1, 1), weights)[0])


def halves(n: int) -> list[tuple[list[int], list[int]]]:
    """All ways to split n tasks into two halves, or into halves that differ by one; at most 200 of them."""
    ones = [list(one) for one in islice(combinations(range(n), n // 2), 2 * MOST)]
    splits = [(one, [task for task in range(n) if task not in one]) for one in ones]
    return [split for split in splits if n % 2 or 0 in split[0]][:MOST]
