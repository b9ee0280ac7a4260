"""Very many score vectors at once are each what the judge and scipy say of one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from archwright.statistics import draw_resamples, judge_proxy
from archwright.statistics.many_scores import BLOCK, BulkCorrelations, RowSets, sorted_places

rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3), st.integers(0, 9)), min_size=3, max_size=30)


@given(rows, st.integers(0, 2**20))
@settings(max_examples=60, deadline=None)
def test_a_vector_on_a_set_is_what_scipy_says(table: list[tuple[int, int, int]], seed: int) -> None:
    networks, _, truth = (np.array(column) for column in zip(*table, strict=True))
    _, networks = np.unique(networks, return_inverse=True)
    rng = np.random.default_rng(seed)
    scores = rng.integers(-2, 3, size=(4, networks.max() + 1)) * rng.choice([0.1, 1.0, 1e200])
    sets = [np.ones(len(truth), dtype=bool), rng.random(len(truth)) < 0.7]
    found = RowSets.of(truth.astype(float), networks, sets).spearman(scores)
    for vector, values in zip(scores, found, strict=True):
        for inside, value in zip(sets, values, strict=True):
            sides = vector[networks][inside], truth[inside]
            if inside.sum() < 2 or any(np.ptp(side) == 0 for side in sides):
                assert np.isnan(value)
            else:
                assert value == pytest.approx(stats.spearmanr(*sides).statistic, abs=1e-12)


def test_overall_and_within_cells_are_the_judges() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), rng.integers(1, 4, 60))
    cells, truth = groups % 5, rng.normal(size=len(groups))
    scores = np.concatenate([rng.normal(size=(BLOCK + 7, 60)), np.round(rng.normal(size=(9, 60)))])
    everything, some = np.ones(len(groups), dtype=bool), rng.random(len(groups)) < 0.8
    judged = BulkCorrelations.of(truth, groups=groups.tolist(), cells=cells.tolist(), sets=[everything, some])
    for inside, column in ((everything, 0), (some, 1)):
        against = draw_resamples(
            truth[inside], cells=cells[inside].tolist(), parameters=np.ones(inside.sum()), rng=rng, size=1,
            groups=groups[inside].tolist(),
        )  # fmt: skip
        for place in (0, 5, BLOCK + 3, len(scores) - 1):
            expected = judge_proxy(scores[place][groups][inside], against)
            assert judged.spearman(scores)[place, column] == pytest.approx(expected.spearman, abs=1e-12)
            assert judged.within(scores)[place, column] == pytest.approx(expected.within_cells, abs=1e-12)


def test_zeros_of_both_signs_tie_and_small_differences_do_not() -> None:
    order, first = sorted_places(np.array([[0.0, -0.0, 1e-300, 1.0, 1.0 + 1e-11, -5.0]]))
    assert order.tolist() == [[5, 0, 1, 2, 3, 4]] and first.tolist() == [[True, True, False, True, True, True]]


def test_constant_scores_have_no_correlation() -> None:
    found = RowSets.of(np.arange(5.0), np.arange(5), [np.ones(5, dtype=bool)]).spearman(np.full((2, 5), 3.0))
    assert np.isnan(found).all()
