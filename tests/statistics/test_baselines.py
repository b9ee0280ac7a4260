"""Chance, and a line through ten labels: means over draws, and no twin of a labelled network is asked."""

import numpy as np
import pytest

from archwright.errors import BadInput
from archwright.statistics import Resampling, draw_resamples, linear_baseline, random_baseline
from archwright.statistics.baselines import draw_labels, ridge_predictions


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def linear(n: int = 120, noise: float = 0.1) -> tuple[np.ndarray, Resampling]:
    features = rng(1).normal(size=(n // 2, 3)).repeat(2, axis=0)
    truth = features @ np.array([3.0, 1.0, 0.0]) + noise * rng(2).normal(size=n)
    size = features[:, 1]
    cells = np.arange(n) // 2 % 3
    return features, draw_resamples(truth, cells=cells, parameters=size, groups=np.arange(n) // 2, rng=rng(3), size=20)


def test_a_line_is_found_from_ten_labels() -> None:
    features, against = linear()
    found = linear_baseline(features, against, rng=rng(), repeats=40)
    assert found.spearman is not None and found.spearman > 0.95 and found.spearman_low is not None
    assert found.spearman_low > 0.85 and found.n == 100 and found.missing == 20
    one, same, other = (linear_baseline(features, against, rng=rng(seed), repeats=3) for seed in (0, 0, 1))
    assert one == same != other


def test_labels_are_of_distinct_networks_and_their_twins_are_not_asked() -> None:
    features, against = linear()
    labels = draw_labels(against.groups, 10, rng())
    assert len(set(against.groups[labels])) == 10
    scores = ridge_predictions(features, against, labels)
    assert np.isnan(scores[labels]).all() and np.isnan(scores).sum() == 20


def test_features_of_noise_are_chance_out_of_sample() -> None:
    _, against = linear()
    found = linear_baseline(rng(9).normal(size=(120, 3)), against, rng=rng(), repeats=40)
    assert found.spearman is not None and abs(found.spearman) < 0.1


def test_a_constant_feature_and_scales_do_not_matter() -> None:
    features, against = linear()
    odd = np.column_stack([features * np.array([1e9, 1e-9, 1.0]) + 5, np.ones(120)])
    one, other = (linear_baseline(columns, against, rng=rng(), repeats=5) for columns in (features, odd))
    assert one.spearman == pytest.approx(other.spearman)


def test_random_scores_are_noise() -> None:
    _, against = linear()
    found = random_baseline(against, rng=rng())
    assert found.verdict == "noise" and found.spearman == pytest.approx(0.0, abs=0.05)
    assert found.precision_at_10pct == pytest.approx(0.1, abs=0.04)


def test_bad_features_are_refused() -> None:
    _, against = linear()
    with pytest.raises(BadInput, match="finite"):
        linear_baseline(np.ones((3, 2)), against, rng=rng())
    with pytest.raises(BadInput, match="need at least 62"):
        linear_baseline(np.ones((120, 2)), against, rng=rng(), k=31)
