"""How much of a score is the network and how much is chance: intraclass correlation over seeds and batches."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.bootstrap import BOUNDS, codes
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


def icc_within_cells(seeds: ArrayLike, scores: ArrayLike, cells: Codes) -> float | None:
    """Share of the variance of a score *inside* cells that is the network's: 1 - variance over seeds / variance inside.

    The variance over seeds is that of the table, architectures x seeds; that inside cells is of one score per row,
    which has the seeds' variance in it. Depth and width make the ICC over deciles large for any score that knows them;
    not this one. At most 1, below 0 where chance is all there is; None without cells of two rows or without spread.
    """
    table, values = np.asarray(seeds, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    table = table[np.isfinite(table).all(axis=1)] if table.ndim == 2 else table
    if table.ndim != 2 or not len(table) or table.shape[1] < 2:
        return None
    groups = [values[rows] for rows in rows_by_cell(cells) if len(rows) > 1]
    free = sum(len(group) - 1 for group in groups)
    scale = float(np.ptp(values)) if len(values) else 0.0
    if not free or not scale > 0:
        return None
    inside = sum(float((((group - group.mean()) / scale) ** 2).sum()) for group in groups) / free
    chance = float((table / scale).var(axis=1, ddof=1).mean())
    return max(-1.0, 1 - chance / inside) if inside > 0 else None


PAIRS = 10
"""Pairs of runs below which twins say nothing."""
MOST = 200
"""Ways to halve the tasks that are tried."""
DRAWS = 400
"""Resamples of the networks behind the interval of a ceiling."""


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
    low: float | None = None
    """95 % bootstrap intervals over networks, of `value` and `within_cells`."""
    high: float | None = None
    within_cells_low: float | None = None
    within_cells_high: float | None = None

    def as_dict(self) -> dict[str, str | float | int | None]:
        return asdict(self)


def noise_ceiling(
    truth: ArrayLike,
    *,
    networks: ArrayLike,
    cells: ArrayLike,
    tasks: ArrayLike | None = None,
    runs: ArrayLike | None = None,
    smallest_cell: int = LEAST_ROWS,
    rng: np.random.Generator | None = None,
) -> Ceiling | None:
    """From rows that are the same network trained again; else from `runs` (rows x ways to train, NaN where there was no
    such run); else from halves of the tasks (rows x tasks); else None. With `rng` the first two have intervals."""
    values, keys, inside = np.asarray(truth, dtype=np.float64), codes(networks), codes(cells)
    if not len(values) == len(keys) == len(inside):
        raise BadInput(f"truth, networks, cells must be equally long, got {len(values)}, {len(keys)}, {len(inside)}.")
    _, counts = np.unique(keys, return_counts=True)
    pairs = int((counts * (counts - 1) // 2).sum())  # every two rows of one network
    table = np.empty((len(values), 0)) if runs is None else np.asarray(runs, dtype=np.float64)
    parts = np.empty((0, 0)) if tasks is None else np.asarray(tasks, dtype=np.float64)
    both = [int(np.isfinite(table[:, list(pair)]).all(axis=1).sum()) for pair in combinations(range(table.shape[1]), 2)]
    if pairs >= PAIRS:
        kind, amount = "twins", pairs
    elif sum(both) >= PAIRS:
        kind, amount = "runs of one network with other seeds or settings", sum(both)
    elif parts.shape[1] >= 2:
        kind, amount = "split-half of the tasks", len(halves(parts.shape[1]))
    else:
        return None

    def reliabilities(rows: Codes, drawn: Codes) -> list[float]:
        """Overall and inside cells, of these rows; `drawn` names their networks, each copy by itself."""
        among = (np.zeros(len(rows), dtype=np.int64), inside[rows])
        if kind == "twins":
            return [by_twins(values[rows], drawn, cells) for cells in among]
        if kind.startswith("runs"):
            return [by_runs(table[rows], cells, smallest_cell) for cells in among]
        return [by_halves(parts[rows], cells) for cells in among]

    found = ceiling(kind, amount, *reliabilities(np.arange(len(values)), keys))
    if rng is None or kind.startswith("split-half"):
        return found
    samples = [draw_networks(keys, inside, rng) for _ in range(DRAWS)]
    tops = np.sqrt(np.clip([reliabilities(*sample) for sample in samples], 0.0, 1.0))  # draws x 2
    ends = [
        np.quantile(column[np.isfinite(column)], BOUNDS) if np.isfinite(column).any() else None for column in tops.T
    ]
    (low, high), (inside_low, inside_high) = [(None, None) if end is None else map(float, end) for end in ends]
    return replace(found, low=low, high=high, within_cells_low=inside_low, within_cells_high=inside_high)


def draw_networks(keys: Codes, cells: Codes, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Rows of networks drawn with replacement inside every cell, and a name of its own for every copy of a network."""
    rows: list[Codes] = []
    names: list[Codes] = []
    for members in rows_by_cell(cells):
        groups = [members[keys[members] == key] for key in np.unique(keys[members])]
        for place in rng.integers(len(groups), size=len(groups)):
            rows.append(groups[place])
            names.append(np.full(len(groups[place]), len(names)))
    return np.concatenate(rows), np.concatenate(names)


def ceiling(kind: str, pairs: int, overall: float, within: float) -> Ceiling:
    known = [value if np.isfinite(value) else None for value in (overall, within)]
    tops = [None if value is None else float(np.sqrt(min(max(value, 0.0), 1.0))) for value in known]
    return Ceiling(kind, tops[0], tops[1], pairs, known[0], known[1])


def by_twins(truth: Values, keys: Codes, cells: Codes) -> float:
    """Reliability of the ranks from rows of one network: mean over cells, weighted by their rows.

    In a cell 1 - variance of the ranks between twins / variance of the ranks of all rows; NaN without twins. Of all
    rows, not of those with a twin: small networks have most of the twins, and among them alone chance would weigh more
    than in the benchmark. Weighted as `within_cells` weighs the cells of a proxy, which is what the ceiling is for.
    """
    values, weights = [], []
    for rows in rows_by_cell(cells):
        ranks = RankOrder.of(truth[rows]).ranks(np.ones((1, len(rows))))[0]
        _, place, size = np.unique(keys[rows], return_inverse=True, return_counts=True)
        chance, twins = ((ranks - (np.bincount(place, ranks) / size)[place]) ** 2).sum(), len(rows) - len(size)
        with np.errstate(all="ignore"):
            values.append([float(1 - np.divide(chance, twins) / ranks.var(ddof=1))])
        weights.append(float(len(rows)) if len(rows) >= LEAST_ROWS else 0.0)
    return float(weighted_mean(np.array(values), np.array(weights))[0])


def by_runs(runs: Values, cells: Codes, least: int = LEAST_ROWS) -> float:
    """Mean Spearman between two ways to train the same networks, over cells weighted by rows and all pairs of ways.

    Among the networks that were trained both ways, so that what a way does to all of them is no chance. A result that
    is the best of several runs is a little more reliable than one run: the ceiling errs on the low side.
    """
    values, weights = [], []
    for rows in rows_by_cell(cells):
        for pair in combinations(range(runs.shape[1]), 2):
            sides = runs[rows][:, list(pair)]
            sides = sides[np.isfinite(sides).all(axis=1)]
            if len(sides) >= least and np.ptp(sides[:, 0]) > 0 and np.ptp(sides[:, 1]) > 0:
                values.append([spearman(sides[:, 0], sides[:, 1])])
                weights.append(float(len(sides)))
    return float(weighted_mean(np.array(values).reshape(-1, 1), np.array(weights))[0])


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
        values.append([2 * correlation / (1 + correlation) if correlation > -1 else np.nan])
    weights = np.array([len(rows) for rows in used], dtype=np.float64)
    return float(weighted_mean(np.array(values).reshape(-1, 1), weights)[0])


def halves(n: int) -> list[tuple[list[int], list[int]]]:
    """All ways to split n tasks into two halves, or into halves that differ by one; at most 200 of them."""
    ones = [list(one) for one in islice(combinations(range(n), n // 2), 2 * MOST)]
    splits = [(one, [task for task in range(n) if task not in one]) for one in ones]
    return [split for split in splits if n % 2 or 0 in split[0]][:MOST]
