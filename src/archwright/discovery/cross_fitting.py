"""Cross-fitting: each fold is predicted by the formula that was chosen without it, and looked at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archwright.discovery.exhaustive import order
from archwright.discovery.folds import FoldedRows
from archwright.discovery.score_table import Scorer, Values
from archwright.proxies.formulas.formula import parse
from archwright.statistics import Resampling, judge_proxy

Row = Sequence[Any]
"""Fitness on a set of rows, size, formula as text."""


@dataclass(frozen=True)
class Chosen:
    """The best formula of at most some size for each set of rows: without each fold, and at last for all."""

    rows: tuple[Row, ...]

    @property
    def final(self) -> Row:
        return self.rows[-1]


def merged(found: Sequence[Mapping[str, Any]], sets: int) -> list[list[Row]]:
    """The best of all parts of a search, for each set of rows."""
    best = [one["best"] for one in found if one["best"]]
    return [sorted((row for part in best for row in part[place]), key=order) for place in range(sets)]


def ladder(best: Sequence[Sequence[Row]]) -> list[Chosen]:
    """The best of all, then the best that are smaller, as long as every set of rows has one."""
    found = [Chosen(tuple(rows[0] for rows in best))] if all(best) else []
    while found and (smaller := below(best, found[-1].final[1])):
        found.append(smaller)
    return found


def below(best: Sequence[Sequence[Row]], size: int) -> Chosen | None:
    """The best below a size."""
    rows = [next((row for row in of if row[1] < size), None) for of in best]
    return Chosen(tuple(row for row in rows if row is not None)) if None not in rows else None


def predicted(chosen: Chosen, table: Scorer, trial: FoldedRows) -> Values:
    """For every row what the formula chosen without its fold says, as a place among the rows it was chosen on.

    Formulas have scales of their own; the place, between 0 and 1, is what they have in common.
    """
    found = np.full(len(trial.truth), np.nan)
    for fold in range(trial.count):
        scores = table.scores(parse(chosen.rows[fold][2]))[trial.networks]
        inside = np.isfinite(scores)
        known, wanted = inside & (trial.fold != fold), inside & (trial.fold == fold)
        found[wanted] = places(scores[wanted], scores[known])
    return found


def places(scores: Values, known: Values) -> Values:
    """Share of the known scores below each, between two of them in proportion; beyond the ends by how far."""
    levels, counts = np.unique(known, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    spread = float(levels[-1] - levels[0]) or 1.0
    inside = np.interp(scores, levels, ranks)
    above, below = np.maximum(scores - levels[-1], 0) / spread, np.maximum(levels[0] - scores, 0) / spread
    outside = counts[-1] / 2 * above / (1 + above) - counts[0] / 2 * below / (1 + below)
    return np.asarray((inside + outside) / len(known))


def estimated(chosen: Chosen, table: Scorer, trial: FoldedRows, against: Resampling) -> dict[str, Any]:
    """The entry of a report: the formula for all rows, and what formulas chosen like it are worth on rows kept away."""
    fitness, size, text = chosen.final
    formula = parse(text)
    held = judge_proxy(predicted(chosen, table, trial), against)
    own = judge_proxy(np.where(np.isfinite(scores := table.scores(formula)), scores, np.nan)[trial.networks], against)
    return {
        "formula": text,
        "latex": formula.latex(),
        "json": formula.as_json(),
        "size": size,
        "fitness": fitness,
        "train": {"spearman": own.spearman, "within_cells": own.within_cells, "kendall_b": own.kendall_b},
        "held_out": interval(held, "spearman"),
        "within_cells": interval(held, "within_cells"),
        "kendall_b": interval(held, "kendall_b"),
        "minus_depth_width": interval(held, "minus_depth_width"),
        "verdict": held.verdict,
        "n": held.n,
        "formulas_of_folds": [{"formula": row[2], "fitness": row[0]} for row in chosen.rows[:-1]],
    }


def interval(judged: Any, name: str) -> dict[str, float | None]:
    return {"value": getattr(judged, name), **{end: getattr(judged, f"{name}_{end}") for end in ("low", "high")}}
