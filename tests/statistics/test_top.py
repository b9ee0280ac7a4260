"""The best by score: by hand, with ties broken by chance in expectation."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archwright.statistics.top_k import precision_at_share, regret_at, top_count, top_mask, top_spearman


def test_by_hand_without_ties() -> None:
    truth = np.arange(100.0)
    assert top_count(100) == 10 and top_count(101) == 11 and top_mask(truth).sum() == 10
    assert precision_at_share(truth, truth) == 1.0 and regret_at(truth, truth) == 0.0
    assert precision_at_share(-truth, truth) == 0.0 and regret_at(-truth, truth) == 90.0
    assert top_spearman(truth**3, truth) == pytest.approx(1.0) and top_spearman(-truth, truth) == pytest.approx(-1.0)


def test_a_constant_score_is_as_good_as_chance() -> None:
    truth = np.random.default_rng(0).permutation(50) * 1.0
    assert precision_at_share(np.zeros(50), truth) == pytest.approx(0.1)
    expected = 49 - regret_at(np.zeros(50), truth)
    assert expected == pytest.approx((10 * 51 / 11) - 1)  # the expected maximum of 10 out of 1..50, minus one
    assert np.isnan(top_spearman(np.zeros(50), truth))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=3, max_size=9), st.integers(1, 3))
def test_ties_are_the_mean_over_all_ways_to_break_them(rows: list[tuple[int, int]], k: int) -> None:
    scores, truth = np.array(rows, dtype=np.float64).T
    ways = [subset for subset in combinations(range(len(rows)), k) if is_top(scores, subset)]
    regrets = [truth.max() - truth[list(subset)].max() for subset in ways]
    assert regret_at(scores, truth, k) == pytest.approx(np.mean(regrets))


def is_top(scores: np.ndarray, subset: tuple[int, ...]) -> bool:
    others = np.delete(scores, list(subset))
    return bool(others.size == 0 or scores[list(subset)].min() >= others.max())


def test_fewer_rows_than_are_picked_lose_nothing() -> None:
    assert regret_at(np.arange(4.0), -np.arange(4.0)) == 0.0
