"""Correlation inside cells, by hand, and what makes a cell."""

import numpy as np
import pytest
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.bootstrap import codes
from archwright.statistics.strata import lexicographic, within_cells


def one_row(scores: np.ndarray, truth: np.ndarray, cells: np.ndarray) -> float:
    return float(within_cells(np.ones((1, len(truth))), scores, truth, cells)[0])


def test_cells_count_by_their_rows() -> None:
    rng = np.random.default_rng(0)
    cells = codes(["a"] * 10 + ["b"] * 30 + ["tiny"] * 4 + ["flat"] * 8)
    scores, truth = rng.normal(size=52), rng.normal(size=52)
    scores[44:] = 3.0
    inside = [stats.spearmanr(scores[rows], truth[rows]).statistic for rows in (slice(0, 10), slice(10, 40))]
    assert one_row(scores, truth, cells) == pytest.approx((10 * inside[0] + 30 * inside[1]) / 40)


def test_a_score_that_only_knows_the_cell_says_nothing_inside() -> None:
    cells = np.repeat([0, 1, 2], 20)
    truth = cells * 10 + np.random.default_rng(1).normal(size=60)
    assert np.isnan(one_row(cells * 1.0, truth, cells))
    noisy = cells * 10 + np.random.default_rng(2).normal(size=60)
    assert stats.spearmanr(noisy, truth).statistic > 0.8 and abs(one_row(noisy, truth, cells)) < 0.3


def test_a_resample_without_spread_in_one_cell_uses_the_others() -> None:
    cells, truth = np.repeat([0, 1], 6), np.tile(np.arange(6.0), 2)
    counts = np.ones((1, 12))
    counts[0, :6] = (6, 0, 0, 0, 0, 0)
    assert within_cells(counts, truth * -1, truth, cells)[0] == pytest.approx(-1.0)


def test_depth_comes_before_width() -> None:
    order = lexicographic([4, 2, 2, 4], [128, 256, 128, 128])
    assert order.tolist() == [2, 1, 0, 2]
    with pytest.raises(BadInput, match="finite"):
        lexicographic([1.0, np.nan], [1.0, 2.0])


def test_given_what_still_varies_inside_a_cell() -> None:
    stream = np.random.default_rng(4)
    cells, depth, fine = np.repeat([0, 1], 60), stream.normal(size=120), stream.normal(size=120)
    truth, ones = depth + fine, np.ones((1, 120))
    for scores, low, high in ((depth + 0.01 * stream.normal(size=120), -0.25, 0.25), (fine, 0.7, 1.0)):
        assert low < within_cells(ones, scores, truth, cells, given=[depth])[0] < high
    assert np.isnan(within_cells(ones, depth**3, truth, cells, given=[depth])[0])  # nothing is left of it
    assert within_cells(ones, fine, truth, cells, given=[cells * 1.0])[0] == pytest.approx(one_row(fine, truth, cells))


def test_given_two_columns_is_what_a_regression_on_both_leaves() -> None:
    stream = np.random.default_rng(5)
    one, other, scores, truth = stream.normal(size=(4, 50)) + stream.normal(size=50)
    known = np.column_stack([np.ones(50), stats.rankdata(one), stats.rankdata(other)])
    ranks = [stats.rankdata(side) for side in (scores, truth)]
    left = [side - known @ np.linalg.lstsq(known, side, rcond=None)[0] for side in ranks]
    ours = within_cells(np.ones((1, 50)), scores, truth, np.zeros(50, dtype=int), given=[one, other])
    assert ours[0] == pytest.approx(np.corrcoef(*left)[0, 1])
