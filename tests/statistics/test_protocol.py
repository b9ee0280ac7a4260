"""The paper's protocol by hand, and against scikit-learn, scipy and pymoo."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pymoo.indicators.hv import HV
from scipy import stats
from sklearn.preprocessing import QuantileTransformer

from archwright.errors import BadInput
from archwright.statistics.protocol import (
    at_times,
    average_ranks,
    normalised_hypervolume,
    over_seeds,
    pooled_quantiles,
    quantiles,
    regret_over_trials,
    size_bins,
)

numbers = st.lists(st.integers(-4, 4).map(float), min_size=2, max_size=30)
points = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8)


def test_quantiles_by_hand() -> None:
    assert quantiles([10, 30, 20, 40, 50]).tolist() == [0.0, 0.5, 0.25, 0.75, 1.0]
    assert quantiles([3, 1, 3, 9, 3]).tolist() == [0.5, 0.0, 0.5, 1.0, 0.5]
    assert quantiles([1, 1, 2, 5, 5]).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert quantiles([7.0]).tolist() == quantiles([7.0, 7.0])[:1].tolist() == [0.0]
    assert quantiles([]).tolist() == []


def midpoints(values: list[float]) -> list[float]:
    """The definition with scipy: the mean share below and up to a value, stretched so that the ends are 0 and 1."""
    places = [
        (stats.percentileofscore(values, value, kind="mean") / 100 * len(values) - 0.5) / (len(values) - 1)
        for value in values
    ]
    return [
        0.0 if value == min(values) else 1.0 if value == max(values) else place
        for value, place in zip(values, places, strict=True)
    ]


@given(numbers)
def test_quantiles_with_ties_are_the_middle_of_their_places(values: list[float]) -> None:
    assert quantiles(values) == pytest.approx(midpoints(values))


@settings(deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=20, unique=True))
def test_quantiles_of_different_values_equal_scikit_learn(values: list[int]) -> None:
    oracle = QuantileTransformer(n_quantiles=len(values), subsample=None).fit_transform(np.array(values)[:, None])
    assert quantiles(values) == pytest.approx(oracle[:, 0], abs=1e-6)
    assert quantiles(values) == pytest.approx((stats.rankdata(values) - 1) / (len(values) - 1))


def test_quantiles_refuse_what_has_no_place() -> None:
    with pytest.raises(BadInput):
        quantiles([0.1, float("nan")])
    with pytest.raises(BadInput):
        quantiles([[0.1], [0.2]])


def test_quantiles_are_pooled_per_objective_over_methods_and_seeds() -> None:
    given = {"a": [[(0.1, 9.0), (0.3, 7.0)], [(0.2, 8.0)]], "b": [[(0.4, 5.0), (0.5, 6.0)]]}
    found = pooled_quantiles(given)
    assert [rows.tolist() for rows in found["a"]] == [[[0.0, 1.0], [0.5, 0.5]], [[0.25, 0.75]]]
    assert found["b"][0].tolist() == [[0.75, 0.0], [1.0, 0.25]]


def test_a_seed_without_points_stays_empty() -> None:
    found = pooled_quantiles({"a": [[], [(0.1, 0.2)]], "b": [[(0.3, 0.1)]]})
    assert [rows.shape for rows in found["a"]] == [(0, 2), (1, 2)]
    assert found["b"][0].tolist() == [[1.0, 0.0]]
    assert pooled_quantiles({"a": [[]]})["a"][0].shape == (0, 2)


def test_hypervolume_and_regret_by_hand() -> None:
    assert normalised_hypervolume([(0, 0)]) == 4.0
    assert normalised_hypervolume([(0.5, 0.5)]) == pytest.approx(2.25)
    assert normalised_hypervolume([(0, 1), (1, 0)]) == pytest.approx(2 + 2 - 1)
    assert regret_over_trials([(0.5, 0.5)]).tolist() == pytest.approx([4 - 2.25])
    assert regret_over_trials([(1, 1), (0, 1), (1, 0)]).tolist() == pytest.approx([3.0, 2.0, 1.0])


@settings(deadline=None)
@given(st.lists(points, min_size=1, max_size=4))
def test_hypervolume_after_pooling_equals_pymoo(seeds: list[list[tuple[int, int]]]) -> None:
    assume(sum(map(len, seeds)) > 1)
    found = pooled_quantiles({"a": seeds})["a"]
    pooled = [point for seed in seeds for point in seed]
    scaled = np.column_stack([midpoints([float(point[at]) for point in pooled]) for at in (0, 1)])
    parts = np.split(scaled, np.cumsum([len(seed) for seed in seeds])[:-1])
    expected = [float(HV(ref_point=np.array([2.0, 2.0]))(part)) for part in parts]
    assert [normalised_hypervolume(part) for part in found] == pytest.approx(expected, abs=1e-9)
    assert [regret_over_trials(part)[-1] for part in found] == pytest.approx([4 - e for e in expected], abs=1e-9)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=12, unique=True))
def test_only_the_order_of_an_objective_matters(values: list[int]) -> None:
    rows = [(value, -value) for value in values]
    bent = [(np.log(value), -(value**3)) for value in values]
    assert pooled_quantiles({"a": [rows]})["a"][0].tolist() == pooled_quantiles({"a": [bent]})["a"][0].tolist()


def test_the_last_value_holds_until_the_next() -> None:
    assert at_times([2, 5], [3.0, 1.0], [0, 2, 4.9, 5, 9]).tolist() == [4.0, 3.0, 3.0, 1.0, 1.0]
    assert at_times([], [], [1, 2], before=7).tolist() == [7.0, 7.0]


def test_spread_over_seeds() -> None:
    mean, deviation = over_seeds([[1, 2], [3, 2]])
    assert mean.tolist() == [2, 2] and deviation.tolist() == pytest.approx([np.sqrt(2), 0])
    assert np.isnan(over_seeds([[1, 2]]).deviation).all()


def test_ranks_of_certain_winners() -> None:
    curves = {"t": {"a": [[3, 1]], "b": [[2, 2]], "c": [[2, 3]]}}
    found = average_ranks(curves, rng=np.random.default_rng(0), samples=10)
    assert {name: ranks.tolist() for name, ranks in found.items()} == {"a": [3, 1], "b": [1.5, 2], "c": [1.5, 3]}


def test_ranks_come_near_their_expectation_over_all_draws() -> None:
    rng = np.random.default_rng(1)
    curves = {t: {m: rng.integers(0, 4, (n, 3)).tolist() for m, n in (("a", 2), ("b", 3), ("c", 1))} for t in "xyz"}
    draws = [
        np.mean([stats.rankdata(np.array(chosen), axis=0) for chosen in product(*task.values())], axis=0)
        for task in curves.values()
    ]
    expected = dict(zip("abc", np.mean(draws, axis=0), strict=True))
    found = average_ranks(curves, rng=np.random.default_rng(2), samples=4000)
    for name in "abc":
        assert found[name] == pytest.approx(expected[name], abs=0.06)


def test_ranks_repeat_with_the_seed_and_change_with_it() -> None:
    curves = {"t": {"a": [[1.0], [3.0]], "b": [[2.0], [0.0]]}}
    first, again, other = (average_ranks(curves, rng=np.random.default_rng(seed))["a"] for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()
    assert 1 < first[0] < 2


@pytest.mark.parametrize(
    "curves",
    [{}, {"t": {"a": [[1]], "b": [[1]]}, "u": {"a": [[1]]}}, {"t": {"a": [[1, 2]], "b": [[1]]}}],
    ids=["nothing", "another method", "another length"],
)
def test_ranks_refuse_curves_that_do_not_match(curves: dict[str, dict[str, list[list[float]]]]) -> None:
    with pytest.raises(BadInput):
        average_ranks(curves, rng=np.random.default_rng(0))


def test_size_bins_by_hand() -> None:
    found = size_bins([0.15, 0.45, 0.5, 0.9], [0.4, 0.7, 0.6, 0.8], unpruned=0.8, most=(0.1, 0.2, 0.5, 0.9))
    assert found == [None, pytest.approx(0.5), pytest.approx(0.875), pytest.approx(1.0)]
    assert size_bins([0.507], [0.6], unpruned=0.8, most=(0.4, 0.5)) == [None, pytest.approx(0.75)]  # 3 of 6 layers
    assert size_bins([0.5], [0.2], unpruned=0.0, most=(0.5,)) == [None]
    assert size_bins([], [], unpruned=1.0, most=(0.5,)) == [None]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1)), min_size=1, max_size=20))
def test_larger_bins_are_never_worse(networks: list[tuple[float, float]]) -> None:
    shares, scores = zip(*networks, strict=True)
    known = [score for score in size_bins(shares, scores, unpruned=0.9) if score is not None]
    assert known == sorted(known)
