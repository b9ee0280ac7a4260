"""A table gives the scores that formulas give of the numbers of each network."""

import numpy as np
import pytest

from archwright.discovery.score_table import StatisticsTable, is_usable
from archwright.proxies.formulas.formula import Formula, parse
from archwright.proxies.proxy import Unscored
from archwright.spaces.formulas import FormulaSpace
from tests.discovery.toys import INPUTS, NETWORKS, toy_table

SPACE = FormulaSpace(2, INPUTS)


def one_by_one(formula: Formula, table: StatisticsTable) -> list[float]:
    columns = [table.column(branch) for branch in formula.active]
    found = []
    for network in range(NETWORKS):
        try:
            found.append(formula.reduce([column[network].tolist() for column in columns]))
        except Unscored as reason:
            found.append(np.nan if "No layer" in str(reason) else np.inf)
    return found


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_scores_are_those_of_the_formula(reduction: str) -> None:
    space = FormulaSpace(2, INPUTS, (reduction,))
    table, rng = toy_table(space), np.random.default_rng(1)
    for _ in range(100):
        formula = space.sample(rng)
        if not formula.empty:
            assert table.scores(formula) == pytest.approx(one_by_one(formula, table), rel=1e-12, nan_ok=True)


def test_some_networks_have_the_scores_that_they_have_among_all() -> None:
    table, formula = toy_table(SPACE), parse("sum(S)")
    scores = table.scores(formula)
    assert scores.shape == (NETWORKS,) and np.isnan(scores[5])
    np.testing.assert_array_equal(table.scores(formula, [1, 5, 7]), scores[[1, 5, 7]])


def test_a_formula_must_be_finite_and_there_for_nearly_all_rows() -> None:
    rows = np.ones(100)
    scores = np.arange(100.0)
    assert is_usable(scores, rows)
    scores[:5] = np.nan
    assert is_usable(scores, rows)
    scores[5] = np.nan
    assert not is_usable(scores, rows)
    assert not is_usable(np.where(np.arange(100) == 7, np.inf, 1.0), rows)


def test_networks_of_different_depth_share_a_table() -> None:
    looks = [np.ones((2, 1, 4)), np.ones((2, 1, 2))]
    table = StatisticsTable.stack(("A", "J"), ((),), looks)
    assert table.scores(parse("sum(A + J)")).tolist() == [8.0, 4.0]
