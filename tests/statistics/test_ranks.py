"""Rank statistics of all resamples at once, against scipy on the items drawn one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from archwright.statistics.ranks import (
    BLOCK,
    RankOrder,
    partial,
    pearson,
    resampled_correlation,
    resampled_kendall,
    resampled_spearman,
)

Array = NDArray[np.float64]
items = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=12)


def drawn(rows: list[tuple[int, int, int]]) -> tuple[Array, Array, Array]:
    """Counts of one resample, and both sides."""
    one, other, counts = np.array(rows, dtype=np.float64).T
    return counts[None], one, other


def spelt_out(counts: Array, side: Array) -> Array:
    return np.repeat(side, counts[0].astype(int))


def same(ours: float, theirs: float) -> bool:
    return ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)


@given(items)
@settings(max_examples=200)
def test_a_resample_is_what_scipy_says_of_the_items_drawn(rows: list[tuple[int, int, int]]) -> None:
    counts, one, other = drawn(rows)
    sides = spelt_out(counts, one), spelt_out(counts, other)
    orders = RankOrder.of(one), RankOrder.of(other)
    taus, rho = resampled_kendall(counts, *orders), resampled_spearman(counts, *orders)
    if any(side.size < 2 or np.ptp(side) == 0 for side in sides):
        assert np.isnan([rho[0], taus.b[0], taus.a[0], taus.weighted[0]]).all()
        return
    assert same(rho[0], stats.spearmanr(*sides).statistic)
    assert same(taus.b[0], stats.kendalltau(*sides).statistic)
    assert same(taus.weighted[0], stats.weightedtau(*sides).statistic)
    pairs = len(sides[0]) * (len(sides[0]) - 1) / 2
    agreeing = sum(
        np.sign((sides[0][i] - sides[0][j]) * (sides[1][i] - sides[1][j]))
        for i in range(len(sides[0]))
        for j in range(i)
    )
    assert same(taus.a[0], agreeing / pairs)


@given(items)
def test_ranks_are_scipys(rows: list[tuple[int, int, int]]) -> None:
    _, one, _ = drawn(rows)
    assert RankOrder.of(one).ranks(np.ones((1, len(one))))[0] == pytest.approx(stats.rankdata(one))


def test_many_resamples_at_once_are_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(5, size=40) * 1.0, rng.normal(size=40)
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=20).astype(np.float64)
    orders = RankOrder.of(one), RankOrder.of(other)
    together, alone = resampled_kendall(counts, *orders), [resampled_kendall(row[None], *orders) for row in counts]
    for name in ("b", "a", "weighted"):
        assert getattr(together, name) == pytest.approx([getattr(tau, name)[0] for tau in alone])
    assert resampled_spearman(counts, *orders) == pytest.approx(
        [resampled_spearman(row[None], *orders)[0] for row in counts]
    )


def test_more_items_than_one_block() -> None:
    rng = np.random.default_rng(1)
    one = rng.normal(size=BLOCK + 300)
    other = one + rng.normal(size=one.size)
    taus = resampled_kendall(np.ones((1, one.size)), RankOrder.of(one), RankOrder.of(other))
    assert taus.b[0] == pytest.approx(stats.kendalltau(one, other).statistic)
    assert taus.weighted[0] == pytest.approx(stats.weightedtau(one, other).statistic)


def test_tau_b_flatters_a_coarse_score_and_tau_a_does_not() -> None:
    truth = np.arange(20.0)
    taus = resampled_kendall(np.ones((1, 20)), RankOrder.of(truth >= 10), RankOrder.of(truth))
    assert taus.a[0] == pytest.approx(100 / 190)  # the pairs across the halves, of all pairs
    assert taus.b[0] == pytest.approx(100 / np.sqrt(190 * 100)) and taus.b[0] > taus.a[0]


@given(st.integers(0, 100))
def test_partial_is_the_correlation_of_what_a_line_leaves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = [
        stats.rankdata(rng.integers(6, size=30) + known * 2) for known in [rng.integers(4, size=30)] for _ in "abc"
    ]
    ones, orders = np.ones((1, 30)), [RankOrder.of(side).centred_ranks(np.ones((1, 30))) for side in ranks]
    ours = partial(*(resampled_correlation(ones, orders[i], orders[j]) for i, j in ((0, 1), (0, 2), (1, 2))))
    left = [side - np.polyval(np.polyfit(ranks[2], side, 1), ranks[2]) for side in ranks[:2]]
    assert same(round(ours[0], 9), round(np.corrcoef(*left)[0, 1], 9))


def test_nothing_is_left_of_the_known_itself() -> None:
    one = np.array([1.0])
    assert np.isnan(partial(np.array([0.5]), one, np.array([0.5]))[0])


def test_pearson_of_huge_numbers_and_of_constants() -> None:
    truth = np.arange(5.0)
    assert pearson(truth**2, truth) == pytest.approx(stats.pearsonr(truth**2, truth).statistic)
    assert pearson(truth * 1e300, truth) == pytest.approx(1.0)
    assert np.isnan(pearson(np.full(5, 0.1), truth))
