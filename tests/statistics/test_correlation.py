"""Rank correlations: by hand with ties, their intervals, and what has no ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.bootstrap import CORRELATIONS, Estimate, bootstrap_correlation
from archwright.statistics.ranks import kendall, spearman


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_by_hand_with_ties() -> None:
    one, other = np.array([1.0, 2, 2, 3]), np.array([1.0, 3, 2, 3])
    # 4 of 6 pairs agree, one is tied on the left, one on the right: 4 / sqrt(5 * 5)
    assert kendall(one, other) == pytest.approx(0.8)
    # ranks 1 2.5 2.5 4 and 1 3.5 2 3.5: 3.75 / sqrt(4.5 * 4.5)
    assert spearman(one, other) == pytest.approx(3.75 / 4.5)


varied = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12).filter(
    lambda pairs: all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
)


@given(varied)
def test_both_are_what_scipy_says(pairs: list[tuple[int, int]]) -> None:
    one, other = map(np.array, zip(*pairs, strict=True))
    assert kendall(one, other) == pytest.approx(stats.kendalltau(one, other, variant="b").statistic, abs=1e-12)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


@pytest.mark.parametrize("name", CORRELATIONS)
def test_order_is_all_that_counts(name: str) -> None:
    values, statistic = np.arange(8.0), CORRELATIONS[name]
    assert bootstrap_correlation(values, np.exp(values), statistic, rng=rng()) == pytest.approx((1.0, 1.0, 1.0))
    assert bootstrap_correlation(values, -(values**3), statistic, rng=rng()) == pytest.approx((-1.0, -1.0, -1.0))


@pytest.mark.parametrize("name", CORRELATIONS)
def test_intervals_repeat_hold_the_value_and_shrink(name: str) -> None:
    one = rng(1).normal(size=200)
    other = one + rng(2).normal(size=200)
    found = [bootstrap_correlation(one[:n], other[:n], CORRELATIONS[name], rng=rng()) for n in (10, 10, 200)]
    assert found[0] == found[1] and all(isinstance(c, Estimate) and c.low < c.value < c.high for c in found)
    assert found[2].high - found[2].low < (found[0].high - found[0].low) / 2
    assert bootstrap_correlation(one[:10], other[:10], CORRELATIONS[name], rng=rng(3)) != found[0]


def test_what_has_no_ranks_has_no_correlation() -> None:
    for one, other in (([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0, 0, 0]), ([1], [2])):
        assert bootstrap_correlation(one, other, CORRELATIONS["kendall"], rng=rng()) is None
    found = bootstrap_correlation(
        [1, 1, 1, 2], [1, 2, 3, 4], CORRELATIONS["kendall"], rng=rng()
    )  # many resamples are constant
    assert found is not None and np.isfinite(found).all()
    with pytest.raises(BadInput, match="finite"):
        bootstrap_correlation([1.0, float("nan")], [1.0, 2.0], kendall, rng=rng())
    with pytest.raises(BadInput, match="equally long"):
        bootstrap_correlation([1.0, 2.0, 3.0], [1.0, 2.0], kendall, rng=rng())
