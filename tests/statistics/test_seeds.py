"""Means over seeds against SciPy's own interval."""

import pytest
from scipy import stats

from archwright.statistics.bootstrap import mean_over_seeds


def test_the_interval_is_students() -> None:
    values = [0.91, 0.93, 0.88, 0.95]
    found = mean_over_seeds([*values, None])
    low, high = stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=stats.sem(values))
    assert (found["value"], found["low"], found["high"]) == pytest.approx((0.9175, low, high))


def test_few_seeds_have_no_interval() -> None:
    assert mean_over_seeds([0.5]) == {"value": 0.5, "low": None, "high": None}
    assert mean_over_seeds([None]) == {"value": None, "low": None, "high": None}
