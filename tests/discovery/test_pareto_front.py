"""The picture of accuracy against size: equal formulas are one, and one that is constant in every cell has a number."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from archwright.discovery.exhaustive import pareto_front
from tests.discovery.toys import INPUTS, NETWORKS, FormulaSpace, toy_rows, toy_table


def test_constant_in_cells_is_zero_not_missing() -> None:
    space = FormulaSpace(1, INPUTS)
    table = toy_table(space, gaps=False)
    cells = np.arange(NETWORKS) % 4
    table.values[:, 0, space.chains.index(()), :] = cells[:, None]  # A by itself tells the cell and nothing else
    context = SimpleNamespace(table=table, rows=toy_rows(truth=cells + np.random.default_rng(0).normal(size=NETWORKS)))
    found = pareto_front([[0.9, 1, "sum(A)"], [0.9, 1, "sum(A)"], [0.1, 2, "sum(square(J))"]], context)  # type: ignore[arg-type]
    assert [one["formula"] for one in found].count("sum(A)") == 1
    assert next(one for one in found if one["formula"] == "sum(A)")["within_cells"] == 0.0
    json.dumps(found, allow_nan=False)


def test_cells_too_small_to_judge_in_are_missing_not_nan() -> None:
    """As in width-depth-heads, where a cell has one to three networks."""
    space = FormulaSpace(1, INPUTS)
    rows = replace(toy_rows(), cells=tuple(map(str, range(len(toy_rows().truth)))))
    found = pareto_front([[0.9, 1, "sum(A)"]], SimpleNamespace(table=toy_table(space, gaps=False), rows=rows))  # type: ignore[arg-type]
    assert [one["within_cells"] for one in found] == [None]
    json.dumps(found, allow_nan=False)
