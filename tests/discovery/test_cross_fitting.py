"""Cross-fitting leaks nothing: what a fold was predicted with never saw it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from archwright.discovery.cross_fitting import CrossFit, choose_by_size, merge_best, predict_held_out, rank_among
from archwright.discovery.exhaustive import rank_pairs
from archwright.discovery.fitness import FoldedRows
from archwright.discovery.score_table import StatisticsTable
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(1, toys.INPUTS)


def chosen(table: StatisticsTable, folded: FoldedRows, folder: Path) -> list[CrossFit]:
    return choose_by_size(
        merge_best(list(rank_pairs(SPACE, table, folded, folder, toys.POOL).values()), folded.fold_count + 1)
    )


def test_the_truth_of_a_fold_changes_nothing_of_its_formula(tmp_path: Path) -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    first = chosen(table, folded, tmp_path)[0]
    for fold in range(folded.fold_count):
        inside = folded.fold == fold
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
        held.append(stats.spearmanr(predict_held_out(best, table, folded), folded.truth).statistic)
        fitted.append(best.final[0])
    assert min(fitted) > 0.3 and abs(np.mean(held)) < 0.25


def test_what_is_there_is_found(tmp_path: Path) -> None:
    table = toys.toy_table(SPACE, gaps=False)
    from archwright.proxies.formulas.formula import parse

    folded = toys.toy_rows(truth=table.scores(parse("sum(abs(A) * sqrt(S))")))
    best = chosen(table, folded, tmp_path)[0]
    assert [row[2] for row in best.formulas] == ["sum(A * sqrt(S))"] * 6 or best.final[0] == pytest.approx(1)
    assert stats.spearmanr(predict_held_out(best, table, folded), folded.truth).statistic > 0.97


def test_smaller_formulas_follow(tmp_path: Path) -> None:
    found = chosen(toys.toy_table(SPACE), toys.toy_rows(), tmp_path)
    sizes = [one.final[1] for one in found]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes) > 1
    assert [one.final[0] for one in found] == sorted((one.final[0] for one in found), reverse=True)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.lists(st.integers(-20, 20), min_size=1, max_size=30))
@settings(deadline=None)
def test_places_keep_the_order(known: list[int], scores: list[int]) -> None:
    found = rank_among(np.array(scores, dtype=float), np.array(known, dtype=float))
    assert ((found > -1e-12) & (found < 1 + 1e-12)).all()
    for i, one in enumerate(scores):
        for j, other in enumerate(scores):
            assert (one < other) == (found[i] < found[j]) or abs(found[i] - found[j]) < 1e-12 or one == other
            assert not (one < other and found[i] > found[j])
