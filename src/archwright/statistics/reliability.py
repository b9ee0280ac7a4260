"""How much of a score is the network and how much is chance: intraclass correlation over seeds and batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from archwright.errors import BadInput
from archwright.statistics.ranks import Codes, Values

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
