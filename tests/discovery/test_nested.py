"""Cross-fitting leaks nothing: what a fold was predicted with never saw it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from archwright.discovery.cross_fitting import Chosen, ladder, merged, places, predicted
from archwright.discovery.exhaustive import ranked
from archwright.discovery.folds import FoldedRows
from archwright.discovery.score_table import Table
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(1, toys.INPUTS)


def chosen(table: Table, trial: FoldedRows, folder: Path) -> list[Chosen]:
    return ladder(merged(list(ranked(SPACE, table, trial, folder, toys.here).values()), trial.count + 1))


def test_the_truth_of_a_fold_changes_nothing_of_its_formula(tmp_path: Path) -> None:
    table, trial = toys.toy_table(SPACE), toys.toy_trial()
    first = chosen(table, trial, tmp_path)[0]
    for fold in range(trial.count):
        inside = trial.fold == fold
        other = np.where(inside, np.random.default_rng(fold).normal(size=len(inside)) * 9, trial.truth)
        again = chosen(table, replace(trial, truth=other), tmp_path)[0]
        assert again.rows[fold] == first.rows[fold]
        assert any(a != b for a, b in zip(again.rows, first.rows, strict=True))


def test_noise_is_not_predicted(tmp_path: Path) -> None:
    """Thousands of formulas of noise: some fit the rows they are chosen on, none of it is left on the others."""
    held, fitted = [], []
    for seed in range(6):
        table, trial = toys.toy_table(SPACE, seed=seed, gaps=False), toys.toy_trial(seed=seed)
        best = chosen(table, trial, tmp_path)[0]
        held.append(stats.spearmanr(predicted(best, table, trial), trial.truth).statistic)
        fitted.append(best.final[0])
    assert min(fitted) > 0.3 and abs(np.mean(held)) < 0.25


def test_what_is_there_is_found(tmp_path: Path) -> None:
    table = toys.toy_table(SPACE, gaps=False)
    from archwright.proxies.formulas.formula import parse

    trial = toys.toy_trial(truth=table.scores(parse("sum(abs(A) * sqrt(S))")))
    best = chosen(table, trial, tmp_path)[0]
    assert [row[2] for row in best.rows] == ["sum(A * sqrt(S))"] * 6 or best.final[0] == pytest.approx(1)
    assert stats.spearmanr(predicted(best, table, trial), trial.truth).statistic > 0.97


def test_smaller_formulas_follow(tmp_path: Path) -> None:
    found = chosen(toys.toy_table(SPACE), toys.toy_trial(), tmp_path)
    sizes = [one.final[1] for one in found]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes) > 1
    assert [one.final[0] for one in found] == sorted((one.final[0] for one in found), reverse=True)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30), st.lists(st.integers(-20, 20), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_places_keep_the_order(known: list[int], scores: list[int]) -> None:
    found = places(np.array(scores, dtype=float), np.array(known, dtype=float))
    assert ((found > -1e-12) & (found < 1 + 1e-12)).all()
    for i, one in enumerate(scores):
        for j, other in enumerate(scores):
            assert (one < other) == (found[i] < found[j]) or abs(found[i] - found[j]) < 1e-12 or one == other
            assert not (one < other and found[i] > found[j])
