"""Cross-fitting: each fold is predicted by the formula that was chosen without it, for several splits into folds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from archwright.discovery.fitness import FoldedRows
from archwright.discovery.score_table import FormulaScorer, settle
from archwright.proxies.formulas.formula import parse
from archwright.proxies.formulas.reductions import Values
from archwright.random_streams import SPLIT_DRAWS
from archwright.statistics import Resampling, judge_proxy
from archwright.statistics.bootstrap import codes, resamples
from archwright.statistics.proxies import Judgement
from archwright.statistics.ranks import RankOrder
from archwright.statistics.repeated import judge_repeated

NOTHING = "no formula is finite, not constant and there for 95 % of the rows; look at more texts or other inputs."

ERROR_RESAMPLES = 200
"""Behind a standard error."""

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
    simplest: CrossFit | None
    """The smallest within one standard error of the best."""
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


def choose_simplest(best: Sequence[Sequence[RankedFormula]], errors: Sequence[float]) -> CrossFit | None:
    """For each set of rows the smallest formula whose fitness is within one standard error of the best there
    (Breiman et al. 1984); None where a set has no formula. `errors` are those of the best formulas."""
    formulas = []
    for rows, error in zip(best, errors, strict=True):
        near = [row for row in rows if row[0] >= rows[0][0] - error]
        if not near:
            return None
        formulas.append(min(near, key=lambda row: (row[1], *best_first(row))))
    return CrossFit(tuple(formulas))


def standard_errors(
    best: Sequence[Sequence[RankedFormula]], table: FormulaScorer, rows: FoldedRows, rng: np.random.Generator
) -> list[float]:
    """Of the fitness of the best formula on each set of rows, over resamples of its networks; zero without one."""
    errors = []
    for ranked, inside in zip(best, rows.search_sets, strict=True):
        if not ranked:
            errors.append(0.0)
            continue
        scores = settle(table.scores(parse(ranked[0][2])))[rows.networks]
        used = inside & np.isfinite(scores)
        counts = resamples(rows.networks[used], rng=rng, size=ERROR_RESAMPLES)[1:]
        cells = codes(np.array(rows.cells)[used])
        values = rows.measure.resampled(counts, scores[used], rows.truth[used], cells)
        errors.append(float(np.nanstd(values)) if np.isfinite(values).any() else 0.0)
    return errors


def predict_held_out(choice: CrossFit, table: FormulaScorer, rows: FoldedRows) -> list[Values]:
    """For every split, and every row, what the formula chosen without its fold says: its place among all rows.

    Formulas have scales of their own; the place, between 0 and 1, is what they have in common. Scores of rows that were
    kept away are known without training them, so that a place among all rows tells nothing of what training gave.
    """
    known: dict[str, Values] = {}
    predictions = []
    for number, split in enumerate(rows.folds):
        column = np.full(len(rows.truth), np.nan)
        for fold in range(rows.fold_count):
            text = choice.formulas[number * rows.fold_count + fold][2]
            if text not in known:
                known[text] = places(table.scores(parse(text))[rows.networks])
            column[split == fold] = known[text][split == fold]
        predictions.append(column)
    return predictions


def places(scores: Values) -> Values:
    """Rank of each finite score among all, between 0 and 1, equal ones in the middle; NaN for the others."""
    finite = np.isfinite(scores)
    found = np.full(len(scores), np.nan)
    if finite.any():
        ranks = RankOrder.of(settle(scores[finite])).ranks(np.ones((1, int(finite.sum()))))[0]
        found[finite] = (ranks - 0.5) / finite.sum()
    return found


def judge_choice(
    choice: CrossFit, table: FormulaScorer, rows: FoldedRows, against: Resampling, *, seed: int
) -> dict[str, Any]:
    """The entry of a report: the formula for all rows, and how good formulas chosen like it are on rows kept away."""
    fitness, size, text = choice.final
    formula = parse(text)
    scores = table.scores(formula)
    predictions = predict_held_out(choice, table, rows)
    held_out = judge_repeated(predictions, against, rng=np.random.default_rng((seed, SPLIT_DRAWS)))
    points = [judge_proxy(prediction, against.points()) for prediction in predictions]
    train = judge_proxy(np.where(np.isfinite(scores), settle(scores), np.nan)[rows.networks], against.points())
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
        "splits": {
            "spearman": [point.spearman for point in points],
            "within_cells": [point.within_cells for point in points],
            "kendall_b": [point.kendall_b for point in points],
        },
        "verdict": held_out.verdict,
        "n": held_out.n,
        "formulas_of_folds": [{"formula": row[2], "fitness": row[0]} for row in choice.formulas[:-1]],
    }


def interval(judgement: Judgement, name: str) -> dict[str, float | None]:
    return {"value": getattr(judgement, name), **{end: getattr(judgement, f"{name}_{end}") for end in ("low", "high")}}
