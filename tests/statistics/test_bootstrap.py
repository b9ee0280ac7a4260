"""Resamples: whole networks come and go together, cells keep their size, and the first row is no resample."""

import numpy as np
import pytest

from archwright.errors import BadInput
from archwright.statistics.bootstrap import codes, estimate, resamples
from archwright.statistics.ranks import RankOrder, resampled_spearman


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_the_first_row_is_the_items_and_the_others_draw_as_many() -> None:
    counts = resamples(np.arange(30), rng=rng(), size=200)
    assert counts.shape == (201, 30) and (counts[0] == 1).all()
    assert (counts.sum(axis=1) == 30).all() and counts[1:].mean(axis=0) == pytest.approx(np.ones(30), abs=0.3)
    assert (counts == resamples(np.arange(30), rng=rng(), size=200)).all()
    assert (counts != resamples(np.arange(30), rng=rng(1), size=200)).any()


def test_rows_of_one_network_are_drawn_together() -> None:
    groups = codes(["a", "b", "a", "c", "b", "a"])
    counts = resamples(groups, rng=rng(), size=50)
    assert (counts[:, 0] == counts[:, 2]).all() and (counts[:, 1] == counts[:, 4]).all()
    assert (counts[1:, [0, 1, 3]].sum(axis=1) == 3).all()  # three networks are drawn


def test_every_cell_draws_its_own_networks() -> None:
    cells, groups = codes(list("xxxyyyy")), codes(list("aabcdee"))
    counts = resamples(groups, rng=rng(), size=50, strata=cells)
    assert (counts[:, [0, 2]].sum(axis=1) == 2).all() and (counts[:, [3, 4, 5]].sum(axis=1) == 3).all()
    with pytest.raises(BadInput, match="one cell"):
        resamples(codes(list("aa")), rng=rng(), strata=np.array([0, 1]))


def test_an_interval_holds_the_middle_95_percent() -> None:
    found = estimate(np.concatenate([[0.5], np.linspace(0, 1, 1001)]))
    assert found == pytest.approx((0.5, 0.025, 0.975))
    assert estimate(np.array([np.nan, 1.0, 2.0])) == (None, None, None)
    assert estimate(np.array([0.5, np.nan, np.nan, np.nan, 0.1])) == (0.5, None, None)  # too few resamples have a value
    assert estimate(np.array([0.5])) == (0.5, None, None)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Spearman of a normal pair with correlation 0.6 is 6 / pi asin(0.3) = 0.5819."""
    inside, stream = 0, rng(5)
    for _ in range(100):
        one = stream.normal(size=60)
        other = 0.6 * one + 0.8 * stream.normal(size=60)
        counts = resamples(np.arange(60), rng=stream, size=200)
        _, low, high = estimate(resampled_spearman(counts, RankOrder.of(one), RankOrder.of(other)))
        inside += low is not None and high is not None and low < 6 / np.pi * np.arcsin(0.3) < high
    assert 85 <= inside <= 100
