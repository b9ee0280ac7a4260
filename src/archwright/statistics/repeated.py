"""Judging predictions that were cross-fitted several times, each time with other folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.statistics.proxies import (
    BOUNDED,
    LEAST,
    PLAIN,
    Judgement,
    column_values,
    resampled_columns,
    same_order,
)
from archwright.statistics.ranks import Codes, Values
from archwright.statistics.resampling import Resampling


def judge_repeated(predictions: Sequence[Values], against: Resampling, *, rng: np.random.Generator) -> Judgement:
    """One row for all splits: every value is the mean over them.

    A bootstrap sample of the interval draws the networks *and* one of the splits. So the interval is that of a single
    cross-fitting on another sample of architectures: it holds the variance of the rows judged on, and the whole, not
    the averaged, variance between splits, which is where other training rows choose other formulas.
    """
    tables, known = [], dict[bytes, dict[str, Values]]()
    for scores in predictions:
        rows = np.flatnonzero(np.isfinite(scores))
        if len(rows) < LEAST:
            return Judgement(n=len(rows), missing=len(scores) - len(rows))
        if scores.tobytes() not in known:
            known[scores.tobytes()] = column_values(scores[rows], against.on(rows))
        tables.append(known[scores.tobytes()])
    if len(known) == 1:  # the same formula everywhere: no mean of equals, which would round
        tables = tables[:1]
    draws = rng.integers(len(tables), size=len(against.draws) - 1)
    mixed = {name: mix_splits([table[name] for table in tables], draws) for name in (*BOUNDED, *PLAIN)}
    rows = min((np.flatnonzero(np.isfinite(scores)) for scores in predictions), key=len)
    part, first = against.on(rows), predictions[0][rows]
    alike = len(known) == 1
    columns = resampled_columns(
        mixed,
        part,
        same=alike and same_order(first, part.rival),
        same_as_parameters=alike and same_order(first, part.parameters),
    )
    return Judgement(n=len(rows), missing=len(predictions[0]) - len(rows), **columns)


def mix_splits(columns: Sequence[Values], draws: Codes) -> Values:
    """The mean value first, then of every resample the value of the split that was drawn for it."""
    value = np.mean([column[0] for column in columns])
    resampled = np.stack([column[1:] for column in columns])  # splits x resamples
    picked = resampled[draws[: resampled.shape[1]], np.arange(resampled.shape[1])]
    return np.concatenate([[value], picked])
