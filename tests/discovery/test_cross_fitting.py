"""Cross-fitting leaks nothing: what a fold was predicted with never saw it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from archwright.discovery.cross_fitting import (
    CrossFit,
    choose_by_size,
    choose_simplest,
    merge_best,
    places,
    predict_held_out,
    standard_errors,
)
from archwright.discovery.exhaustive import rank_pairs
from archwright.discovery.fitness import FoldedRows, within_all_cells
from archwright.discovery.score_table import StatisticsTable, settle
from archwright.proxies.formulas.formula import parse
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(1, toys.INPUTS)


def chosen(table: StatisticsTable, folded: FoldedRows, folder: Path) -> list[CrossFit]:
    return choose_by_size(
        merge_best(list(rank_pairs(SPACE, table, folded, folder, toys.POOL).values()), folded.set_count)
    )


def test_the_truth_of_a_fold_changes_nothing_of_its_formula(tmp_path: Path) -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    first = chosen(table, folded, tmp_path)[0]
    for fold in range(folded.fold_count):
        inside = folded.folds[0] == fold
        other = np.where(inside, np.random.default_rng(fold).normal(size=len(inside)) * 9, folded.truth)
        again = chosen(table, replace(folded, truth=other), tmp_path)[0]
        assert again.formulas[fold] == first.formulas[fold]
        assert any(a != b for a, b in zip(again.formulas, first.formulas, strict=True))


def test_noise_is_not_predicted(tmp_path: Path) -> None:
    """Thousands of formulas of noise: some fit the rows they are chosen on, none of it is left on the others."""
    held, fitted = [], []
    for seed in range(6):
        table, folded = toys.toy_table(SPACE, seed=seed, gaps=False), toys.toy_rows(seed=seed)
        best = chosen(table, folded, tmp_path)[0]
        held.append(stats.spearmanr(predict_held_out(best, table, folded)[0], folded.truth).statistic)
        fitted.append(best.final[0])
    assert min(fitted) > 0.3 and abs(np.mean(held)) < 0.25


def test_what_is_there_is_found(tmp_path: Path) -> None:
    table = toys.toy_table(SPACE, gaps=False)
    folded = toys.toy_rows(truth=table.scores(parse("sum(abs(A) * sqrt(S))")))
    best = chosen(table, folded, tmp_path)[0]
    assert [row[2] for row in best.formulas] == ["sum(A * sqrt(S))"] * 6 or best.final[0] == pytest.approx(1)
    assert stats.spearmanr(predict_held_out(best, table, folded)[0], folded.truth).statistic > 0.97


def test_smaller_formulas_follow(tmp_path: Path) -> None:
    found = chosen(toys.toy_table(SPACE), toys.toy_rows(), tmp_path)
    sizes = [one.final[1] for one in found]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes) > 1
    assert [one.final[0] for one in found] == sorted((one.final[0] for one in found), reverse=True)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30))
@settings(deadline=None)
def test_places_keep_the_order(scores: list[int]) -> None:
    found = places(np.array(scores, dtype=float))
    assert ((found > 0) & (found < 1)).all() and found.mean() == pytest.approx(0.5)
    for i, one in enumerate(scores):
        for j, other in enumerate(scores):
            assert (one < other) == (found[i] < found[j])


def test_rounding_is_no_rank() -> None:
    """log(n) less something tiny differs in the twelfth digit; that and NaN give no place of their own."""
    scores = np.array([10.0, 10.0 + 1e-11, np.nan, 10.0 - 1e-11, 11.0])
    found = places(scores)
    assert np.isnan(found[2]) and found[0] == found[1] == found[3] < found[4]
    assert settle(np.array([np.inf, np.nan, -0.0]))[0] == np.inf


def test_every_split_is_predicted_without_its_own_fold(tmp_path: Path) -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows(repeats=3)
    best = chosen(table, folded, tmp_path)[0]
    predictions = predict_held_out(best, table, folded)
    assert len(predictions) == 3 and len(best.formulas) == 16
    for number, split in enumerate(folded.folds):
        for fold in range(5):
            scores = table.scores(parse(best.formulas[5 * number + fold][2]))[folded.networks]
            expected = places(scores)[split == fold]
            np.testing.assert_allclose(predictions[number][split == fold], expected)


def test_the_smallest_within_one_standard_error() -> None:
    """Of 0.90, 0.88 and 0.80 with an error of 0.03 the second, which is smaller; without error the best."""
    ranked = [[0.90, 5, "sum(abs(A) + abs(S))"], [0.88, 2, "sum(abs(A))"], [0.80, 1, "sum(A)"]]
    (formula,) = choose_simplest([ranked], [0.03]).formulas  # type: ignore[union-attr]
    assert formula == ranked[1]
    assert choose_simplest([ranked], [0.0]).formulas == (ranked[0],)  # type: ignore[union-attr]
    assert choose_simplest([ranked, []], [0.03, 0.0]) is None


@pytest.mark.parametrize("fitness", ["spearman", "within", "both"])
def test_standard_errors_shrink_with_agreement(fitness: str) -> None:
    """A formula that ranks perfectly has no error, one that ranks at random has that of a correlation of n rows."""
    table = toys.toy_table(SPACE, gaps=False)
    formula = "sum(A * sqrt(S))"
    rng = np.random.default_rng(0)
    noise = toys.toy_rows(fitness=fitness)
    exact = toys.toy_rows(truth=table.scores(parse(formula)), fitness=fitness)
    none, some = (
        standard_errors([[[1.0, 4, formula]]] * rows.set_count, table, rows, rng)[-1] for rows in (exact, noise)
    )
    assert none < 0.02 and 0.05 < some < 0.3


def test_a_cell_without_differences_counts_as_zero() -> None:
    """A score that differs in one of four cells only is not judged by that cell alone."""
    folded = toys.toy_rows()
    scores = np.where(np.arange(toys.NETWORKS) % 4 == 1, np.arange(toys.NETWORKS), 0.0)[None]
    correlations = folded.correlations(np.ones(toys.NETWORKS, dtype=bool))
    found, alone = within_all_cells(correlations, scores)[0, -1], correlations.within(scores)[0, -1]
    rows = [cell == "1" for cell in folded.cells]
    assert found == pytest.approx(alone * np.mean(rows)) and abs(alone) > abs(found) > 0
