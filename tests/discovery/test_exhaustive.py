"""All formulas ranked at once are each ranked by itself; parts that are done are not done again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from archwright.discovery.cross_fitting import merge_best
from archwright.discovery.exhaustive import make_pairs, rank_pairs
from archwright.discovery.fitness import FoldedRows
from archwright.discovery.pair_ranking import BINS
from archwright.discovery.score_table import StatisticsTable, is_usable, settle
from archwright.errors import Failed
from archwright.proxies.formulas.formula import Formula, parse
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.search import enumerate_configs
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(1, toys.INPUTS)


def fitness(formula: Formula, table: StatisticsTable, folded: FoldedRows, place: int) -> float:
    """By scipy, on the rows of one set."""
    scores = settle(table.scores(formula))
    if not is_usable(scores, folded.rows_per_network):
        return np.nan
    rows = folded.search_sets[place] & ~np.isnan(scores[folded.networks])
    sides = scores[folded.networks][rows], folded.truth[rows]
    return np.nan if np.ptp(sides[0]) == 0 else float(stats.spearmanr(*sides).statistic)


def everything(table: StatisticsTable, folded: FoldedRows, space: FormulaSpace = SPACE) -> dict[Formula, list[float]]:
    found = {space.build(config).canonical() for config in enumerate_configs(space.choices)}
    kept = [formula for formula in found if not formula.empty]
    return {formula: [fitness(formula, table, folded, place) for place in (0, -1)] for formula in kept}


def test_as_one_by_one(tmp_path: Path) -> None:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    parts = rank_pairs(SPACE, table, folded, tmp_path, toys.POOL)
    expected = everything(table, folded)
    assert sum(part["total"] for part in parts.values()) == len(expected) == SPACE.size()["canonical"]
    valid = np.array([values[1] for values in expected.values() if np.isfinite(values[1])])
    assert sum(part["valid"] for part in parts.values()) == len(valid)
    counts = np.sum([part["counts"] for part in parts.values()], axis=0)
    assert np.abs(np.cumsum(counts) - np.cumsum(np.histogram(valid, BINS)[0])).max() <= 2  # rounding at an edge
    best = merge_best(list(parts.values()), folded.set_count)
    for place, column in ((0, 0), (-1, 1)):
        for value, size, text in best[place][:300]:
            formula = parse(text)
            assert (value, size) == (pytest.approx(expected[formula][column], abs=1e-9), formula.size)
        most = max(values[column] for values in expected.values() if np.isfinite(values[column]))
        assert best[place][0][0] == pytest.approx(most)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_with_other_reductions_and_factors(tmp_path: Path, reduction: str) -> None:
    space = FormulaSpace(1, toys.INPUTS[:2], (reduction,), ("", "log(n_width)"))
    table, folded = toys.with_counts(space), toys.toy_rows()
    parts = rank_pairs(space, table, folded, tmp_path, toys.POOL)
    expected = everything(table, folded, space)
    assert sum(part["total"] for part in parts.values()) == len(expected) == space.size()["canonical"]
    best = merge_best(list(parts.values()), folded.set_count)
    most = max(values[1] for values in expected.values() if np.isfinite(values[1]))
    assert best[-1][0][0] == pytest.approx(most) and any("n_width" in row[2] for row in best[-1])
    for value, size, text in best[-1][:100]:
        formula = parse(text)
        assert (value, size) == (pytest.approx(expected[formula][1], abs=0.01), formula.size)  # rounding parts ties


def test_several_reductions_at_once(tmp_path: Path) -> None:
    """J is the same in all layers: its first, last and mean are one formula."""
    space = FormulaSpace(1, toys.INPUTS[:2], ("sum", "mean", "first", "last", "but_last", "rising", "falling"))
    table, folded = toys.toy_table(space, gaps=False), toys.toy_rows()
    parts = rank_pairs(space, table, folded, tmp_path, toys.POOL)
    expected = everything(table, folded, space)
    assert sum(part["total"] for part in parts.values()) == len(expected) == space.size()["canonical"]
    assert "mean J" in parts and "first J" not in parts and "falling J" not in parts and "first A J" in parts
    best = merge_best(list(parts.values()), folded.set_count)[-1]
    assert best[0][0] == pytest.approx(max(values[1] for values in expected.values() if np.isfinite(values[1])))
    for value, size, text in best[:200]:
        assert (value, size) == (pytest.approx(expected[parse(text)][1], abs=1e-9), parse(text).size)


def test_ranked_for_every_fold_of_every_split(tmp_path: Path) -> None:
    table, once, thrice = toys.toy_table(SPACE), toys.toy_rows(), toys.toy_rows(repeats=3)
    assert thrice.set_count == 16 and (thrice.folds[0] == once.folds[0]).all()
    assert (thrice.folds[1] == toys.toy_rows(seed=1, truth=None).folds[0]).sum() < len(once.truth)  # other rows
    few = merge_best(list(rank_pairs(SPACE, table, once, tmp_path, toys.POOL).values()), once.set_count)
    many = merge_best(list(rank_pairs(SPACE, table, thrice, tmp_path, toys.POOL).values()), thrice.set_count)
    assert many[:5] == few[:5] and many[-1] == few[-1] and many[5:10] != few[:5]


def test_the_best_of_every_size_is_kept(tmp_path: Path) -> None:
    table, folded = toys.toy_table(SPACE, gaps=False), toys.toy_rows()
    expected = everything(table, folded)
    best = merge_best(list(rank_pairs(SPACE, table, folded, tmp_path, toys.POOL).values()), folded.set_count)[-1]
    for size in {formula.size for formula in expected}:
        most = max(v[1] for formula, v in expected.items() if formula.size == size and np.isfinite(v[1]))
        assert max(row[0] for row in best if row[1] == size) == pytest.approx(most)


def test_within_cells_and_both(tmp_path: Path) -> None:
    table = toys.toy_table(SPACE, gaps=False)
    found = {}
    for name in ("spearman", "within", "both"):
        folded = toys.toy_rows(fitness=name)
        parts = rank_pairs(SPACE, table, folded, tmp_path, toys.POOL)
        found[name] = {row[2]: row[0] for row in merge_best(list(parts.values()), folded.set_count)[-1]}
    shared = set(found["spearman"]) & set(found["within"]) & set(found["both"])
    assert shared
    for text in shared:
        assert found["both"][text] == pytest.approx((found["spearman"][text] + found["within"][text]) / 2)


def test_an_interrupted_ranking_goes_on_where_it_was(tmp_path: Path) -> None:
    table, folded, done = toys.toy_table(SPACE), toys.toy_rows(), []

    class InterruptedPool:
        def __init__(self, most: int) -> None:
            self.most = most

        def map_unordered(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
            for index, task in enumerate(tasks):
                if len(done) == self.most:
                    raise KeyboardInterrupt
                done.append(index)
                yield index, task()

    def run(most: int) -> dict[str, Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("archwright.discovery.exhaustive.LocalPool", lambda: InterruptedPool(most))
            return rank_pairs(SPACE, table, folded, tmp_path, toys.POOL)

    with pytest.raises(KeyboardInterrupt):
        run(2)
    again = run(100)
    assert len(done) == len(make_pairs(SPACE, table, folded)) == len(again) == 6
    assert run(0) == again
    file = next((tmp_path / "discover").glob("*.json"))
    file.write_text("{")
    with pytest.raises(Failed, match="damaged; delete it"):
        run(100)


def test_large_pairs_are_done_factor_by_factor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space = FormulaSpace(1, toys.INPUTS[:2], ("sum",), ("", "log(n_width)"))
    table, folded = toys.with_counts(space), toys.toy_rows()
    whole = merge_best(list(rank_pairs(space, table, folded, tmp_path / "whole", toys.POOL).values()), folded.set_count)
    monkeypatch.setattr("archwright.discovery.exhaustive.LARGEST", 100)
    found = rank_pairs(space, table, folded, tmp_path / "parts", toys.POOL)
    assert {"sum A J 0", "sum A J 1", "sum A", "sum J"} == found.keys()
    best = merge_best(list(found.values()), folded.set_count)
    assert [rows[:50] for rows in best] == [rows[:50] for rows in whole]


def test_an_input_that_too_few_networks_have_makes_no_formula(tmp_path: Path) -> None:
    table = toys.toy_table(SPACE, gaps=False)
    table.values[:10, 2] = np.nan
    parts = rank_pairs(SPACE, table, toys.toy_rows(), tmp_path, toys.POOL)
    assert {name for name, part in parts.items() if part["valid"]} == {"sum A J", "sum A", "sum J"}
