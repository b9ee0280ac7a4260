"""Hypervolume against pymoo, by hand, and step by step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.indicators.hv import HV

from archwright.errors import BadInput
from archwright.statistics import hypervolume_over_time, pareto_mask
from archwright.statistics.pareto import hypervolume

points = st.integers(2, 3).flatmap(
    lambda m: st.lists(st.lists(st.floats(0, 1.5, width=16), min_size=m, max_size=m), min_size=1, max_size=15)
)


@settings(deadline=None)
@given(points)
def test_equals_pymoo(rows: list[list[float]]) -> None:
    reference = np.ones(len(rows[0]))
    assert hypervolume(rows, reference) == pytest.approx(float(HV(ref_point=reference)(np.array(rows))), abs=1e-12)


def test_by_hand() -> None:
    assert hypervolume([[0.25, 0.5], [0.5, 0.25]], (1, 1)) == pytest.approx(0.375 + 0.125)
    assert hypervolume([[2.0, 0.0]], (1, 1)) == 0.0
    assert hypervolume([], (1, 1)) == 0.0


@settings(deadline=None)
@given(points)
def test_over_time_is_the_hypervolume_of_every_beginning(rows: list[list[float]]) -> None:
    reference = np.ones(len(rows[0]))
    expected = [hypervolume(rows[: i + 1], reference) for i in range(len(rows))]
    assert hypervolume_over_time(rows, reference) == pytest.approx(expected, abs=1e-12)
    assert hypervolume_over_time([], (1, 1)) == []


@given(points)
def test_mask_is_the_definition(rows: list[list[float]]) -> None:
    losses = np.array(rows)
    dominated = [any((b <= a).all() and (b < a).any() for b in losses) for a in losses]
    assert pareto_mask(rows).tolist() == [not bad for bad in dominated]
    assert pareto_mask([]).tolist() == []


@pytest.mark.parametrize("rows", [[[0.1, 0.2, 0.3]], [[float("nan"), 0.1]]])
def test_bad_points_are_refused(rows: list[list[float]]) -> None:
    with pytest.raises(BadInput):
        hypervolume(rows, (1, 1))
