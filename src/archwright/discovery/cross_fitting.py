"""Cross-fitting: each fold is predicted by the formula that was chosen without it, and judged on it once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archwright.discovery.fitness import FoldedRows
from archwright.discovery.score_table import FormulaScorer
from archwright.proxies.formulas.formula import parse
from archwright.proxies.formulas.reductions import Values
from archwright.statistics import Resampling, judge_proxy
from archwright.statistics.proxies import Judgement

NOTHING = "no formula is finite, not constant and there for 95 % of the rows; look at more texts or other inputs."

RankedFormula = Sequence[Any]
"""Fitness on a set of rows, size, formula as text; a list in JSON files."""


@dataclass(frozen=True)
class CrossFit:
    """The best formula of at most some size for each set of rows: without each fold, and at last for all."""

    formulas: tuple[RankedFormula, ...]

    @property
    def final(self) -> RankedFormula:
        """The one that was chosen on all rows."""
        return self.formulas[-1]


@dataclass(frozen=True)
class FormulaSearchResult:
    """Formulas, the best first, and the numbers of the report."""

    chosen: list[CrossFit]
    numbers: Mapping[str, Any]
    notes: list[str]


def best_first(row: RankedFormula) -> tuple[float, int, str]:
    """Sorts by fitness; of equals the smallest comes first."""
    return -row[0], row[1], row[2]


def merge_best(parts: Sequence[Mapping[str, Any]], sets: int) -> list[list[RankedFormula]]:
    """The best of all parts of a search, for each set of rows."""
    best = [part["best"] for part in parts if part["best"]]
    return [sorted((row for rows in best for row in rows[index]), key=best_first) for index in range(sets)]


def choose_by_size(best: Sequence[Sequence[RankedFormula]]) -> list[CrossFit]:
    """The best of all, then the best that are smaller, as long as every set of rows has one."""
    chosen: list[CrossFit] = []
    limit = float("inf")
    while True:
        smaller = [next((row for row in rows if row[1] < limit), None) for rows in best]
        formulas = tuple(row for row in smaller if row is not None)
        if len(formulas) < len(best):
            return chosen
        chosen.append(CrossFit(formulas))
        limit = chosen[-1].final[1]


def predict_held_out(choice: CrossFit, table: FormulaScorer, rows: FoldedRows) -> Values:
    """For every row what the formula chosen without its fold says, as its rank among the rows it was chosen on.

    Formulas have scales of their own; the rank, between 0 and 1, is what they have in common.
    """
    predictions = np.full(len(rows.truth), np.nan)
    for fold in range(rows.fold_count):
        scores = table.scores(parse(choice.formulas[fold][2]))[rows.networks]
        finite = np.isfinite(scores)
        training, held_out = finite & (rows.fold != fold), finite & (rows.fold == fold)
        predictions[held_out] = rank_among(scores[held_out], scores[training])
    return predictions


def rank_among(scores: Values, known: Values) -> Values:
    """Share of the known scores below each, between two of them in proportion; beyond the ends by how far."""
    levels, counts = np.unique(known, return_counts=True)
    ranks = np.cumsum(counts) - counts / 2
    spread = float(levels[-1] - levels[0]) or 1.0
    inside = np.interp(scores, levels, ranks)
    above, below = np.maximum(scores - levels[-1], 0) / spread, np.maximum(levels[0] - scores, 0) / spread
    outside = counts[-1] / 2 * above / (1 + above) - counts[0] / 2 * below / (1 + below)
    return np.asarray((inside + outside) / len(known))


def judge_choice(choice: CrossFit, table: FormulaScorer, rows: FoldedRows, against: Resampling) -> dict[str, Any]:
    """The entry of a report: the formula for all rows, and how good formulas chosen like it are on rows kept away."""
    fitness, size, text = choice.final
    formula = parse(text)
    scores = table.scores(formula)
    held_out = judge_proxy(predict_held_out(choice, table, rows), against)
    train = judge_proxy(np.where(np.isfinite(scores), scores, np.nan)[rows.networks], against)
    return {
        "formula": text,
        "latex": formula.latex(),
        "json": formula.as_json(),
        "size": size,
        "fitness": fitness,
        "train": {"spearman": train.spearman, "within_cells": train.within_cells, "kendall_b": train.kendall_b},
        "held_out": interval(held_out, "spearman"),
        "within_cells": interval(held_out, "within_cells"),
        "kendall_b": interval(held_out, "kendall_b"),
        "minus_depth_width": interval(held_out, "minus_depth_width"),
        "verdict": held_out.verdict,
        "n": held_out.n,
        "formulas_of_folds": [{"formula": row[2], "fitness": row[0]} for row in choice.formulas[:-1]],
    }


def interval(judgement: Judgement, name: str) -> dict[str, float | None]:
    return {"value": getattr(judgement, name), **{end: getattr(judgement, f"{name}_{end}") for end in ("low", "high")}}
