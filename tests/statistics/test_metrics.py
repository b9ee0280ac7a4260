"""Every metric against scikit-learn or scipy, and where those have no answer."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from archwright.errors import BadInput
from archwright.statistics import METRICS, perplexity

ORACLES = {
    "accuracy": lambda guess, truth: accuracy_score(truth, guess),
    "f1": lambda guess, truth: f1_score(truth, guess, zero_division=0.0),
    "matthews": lambda guess, truth: matthews_corrcoef(truth, guess),
    "spearman": lambda guess, truth: stats.spearmanr(guess, truth).statistic,
    "pearson": lambda guess, truth: stats.pearsonr(guess, truth).statistic,
    "macro_f1": lambda guess, truth: slow_macro_f1(guess, truth),
    "roc_auc": lambda guess, truth: slow_roc_auc(guess, truth),
}
pairs = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=30)


def slow_macro_f1(guess: np.ndarray, truth: np.ndarray) -> float:
    """Class by class, by the definition."""
    scores = []
    for each in {*guess.tolist(), *truth.tolist()}:
        right = sum(g == t == each for g, t in zip(guess, truth, strict=True))
        total = (guess == each).sum() + (truth == each).sum()
        scores.append(2 * right / total)
    return sum(scores) / len(scores)


def slow_roc_auc(scores: np.ndarray, truth: np.ndarray) -> float:
    """The share of pairs of a right and a wrong one in which the right one is higher, equal ones half."""
    pairs = [(a > b) + (a == b) / 2 for a in scores[truth == 1] for b in scores[truth == 0]]
    return sum(pairs) / len(pairs) if pairs else 0.5


def test_one_class_against_the_rest_and_label_by_label() -> None:
    rng = np.random.default_rng(3)
    scores, truth = rng.normal(size=(80, 3)).round(1), rng.integers(0, 3, 80)
    each = [slow_roc_auc(scores[:, k], (truth == k).astype(int)) for k in range(3)]
    assert METRICS["roc_auc"](scores, truth) == pytest.approx(np.mean(each))
    assert METRICS["macro_f1"](scores.argmax(1), truth) == pytest.approx(
        f1_score(truth, scores.argmax(1), average="macro")
    )
    sets, given = rng.integers(0, 2, (80, 3)), rng.integers(0, 2, (80, 3))
    sets[:, 2] = 1  # a label that all rows have has no curve
    each = [slow_roc_auc(scores[:, k], sets[:, k]) for k in range(2)]
    assert METRICS["roc_auc"](scores, sets) == pytest.approx(np.mean(each))
    assert METRICS["macro_f1"](given, sets) == pytest.approx(
        np.mean([METRICS["f1"](given[:, k], sets[:, k]) for k in range(3)])
    )
    assert METRICS["roc_auc"]([0.2, 0.4], [1, 1]) == 0.5


def test_every_metric_has_an_oracle() -> None:
    assert ORACLES.keys() == METRICS.keys()


@pytest.mark.parametrize("name", METRICS)
@settings(deadline=None)
@given(pairs)
def test_equals_its_oracle(name: str, rows: list[tuple[int, int]]) -> None:
    guess, truth = np.array(rows).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = float(ORACLES[name](guess, truth))
    if not np.isnan(expected):
        assert METRICS[name](guess, truth) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["spearman", "pearson"])
def test_correlations_of_numbers_with_ties(name: str) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 200) / 2
    guess = truth + rng.normal(size=200)
    assert METRICS[name](guess, truth) == pytest.approx(float(ORACLES[name](guess, truth)), abs=1e-12)


def test_matthews_of_three_classes() -> None:
    rng = np.random.default_rng(1)
    guess, truth = rng.integers(0, 3, (2, 300))
    assert METRICS["matthews"](guess, truth) == pytest.approx(matthews_corrcoef(truth, guess), abs=1e-12)


@pytest.mark.parametrize("name", ["matthews", "spearman", "pearson", "f1"])
def test_constant_predictions_score_zero(name: str) -> None:
    assert METRICS[name]([0, 0, 0, 0], [0, 1, 1, 0]) == 0.0


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("guess", "truth"), [([], []), ([1, 0], [1]), ([np.nan, 1], [0, 1])])
def test_bad_input_is_refused(name: str, guess: ArrayLike, truth: ArrayLike) -> None:
    with pytest.raises(BadInput):
        METRICS[name](guess, truth)


def test_perplexity() -> None:
    assert perplexity(0.0) == 1.0
    assert perplexity(np.log(50257)) == pytest.approx(50257)
    assert perplexity(100.0) == perplexity(1e9) == pytest.approx(2.688e43, rel=1e-3)
    for loss in (np.nan, np.inf, -np.inf):
        with pytest.raises(BadInput, match="a perplexity needs a finite loss"):
            perplexity(loss)
