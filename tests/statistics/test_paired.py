"""Paired losses against independent computations: McNemar's closed form, scipy's bootstrap, metrics of drawn rows."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from archwright.errors import BadInput
from archwright.statistics.metrics import METRICS, perplexity
from archwright.statistics.paired import PairedErrors, RowOutcomes

ROWS = 400


def classes(metric: str, wrong: float, seed: int, labels: int = 2) -> RowOutcomes:
    """The same right labels for every seed; a share of the answers is wrong."""
    targets = np.random.default_rng(0).integers(labels, size=ROWS)
    rng = np.random.default_rng(seed)
    return RowOutcomes(metric, np.where(rng.random(ROWS) < wrong, (targets + 1) % labels, targets), targets)


def numbers(metric: str, noise: float, seed: int) -> RowOutcomes:
    targets = np.random.default_rng(0).normal(size=ROWS).round(1)
    return RowOutcomes(metric, targets + noise * np.random.default_rng(seed).normal(size=ROWS), targets)


def losses(mean: float, seed: int) -> RowOutcomes:
    tokens = np.random.default_rng(0).integers(5, 30, size=ROWS)
    return RowOutcomes("perplexity", tokens * np.random.default_rng(seed).gamma(20, mean / 20, size=ROWS), tokens)


PAIRS = {
    "f1": (classes("f1", 0.25, 1), classes("f1", 0.2, 2)),
    "matthews": (classes("matthews", 0.25, 1), classes("matthews", 0.2, 2)),
    "matthews of four classes": (classes("matthews", 0.25, 1, 4), classes("matthews", 0.2, 2, 4)),
    "spearman": (numbers("spearman", 0.6, 1), numbers("spearman", 0.5, 2)),
    "pearson": (numbers("pearson", 0.6, 1), numbers("pearson", 0.5, 2)),
    "perplexity": (losses(3.1, 1), losses(3.0, 2)),
}


def error_of(outcomes: RowOutcomes, rows: np.ndarray) -> float:
    answers, targets = outcomes.answers[rows], outcomes.targets[rows]
    if outcomes.metric == "perplexity":
        return perplexity(float(answers.sum() / targets.sum()))
    return 1 - METRICS[outcomes.metric](answers, targets)


def test_accuracy_is_the_closed_form_of_discordant_pairs() -> None:
    one, other = classes("accuracy", 0.3, 1), classes("accuracy", 0.2, 2)
    found = PairedErrors({"one": one, "other": other}).loss("one", "other")
    worse = int(((one.answers != one.targets) & (other.answers == other.targets)).sum())
    better = int(((one.answers == one.targets) & (other.answers != other.targets)).sum())
    value = (worse - better) / ROWS
    deviation = np.sqrt((worse + better - (worse - better) ** 2 / ROWS) / (ROWS - 1))
    assert found.value == pytest.approx(value)
    assert found.standard_error == pytest.approx(deviation / np.sqrt(ROWS))
    assert (found.low, found.high) == pytest.approx(
        stats.norm.interval(0.95, value, deviation / np.sqrt(ROWS)), abs=1e-12
    )
    assert found.rows == ROWS


def test_accuracy_agrees_with_the_bootstrap_of_scipy() -> None:
    one, other = classes("accuracy", 0.3, 1), classes("accuracy", 0.2, 2)
    difference = (one.answers != one.targets).astype(float) - (other.answers != other.targets)
    theirs = stats.bootstrap((difference,), np.mean, n_resamples=4000, method="percentile", rng=1)
    ours = PairedErrors({"one": one, "other": other}).loss("one", "other")
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.05)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.005)


@pytest.mark.parametrize("name", PAIRS)
def test_other_metrics_agree_with_a_bootstrap_row_by_row(name: str) -> None:
    one, other = PAIRS[name]
    found = PairedErrors({"one": one, "other": other}, seed=(3,)).loss("one", "other")
    rng, drawn = np.random.default_rng(5), []
    for _ in range(1500):
        rows = rng.integers(ROWS, size=ROWS)
        left, right = error_of(one, rows), error_of(other, rows)
        drawn.append(left / right - 1 if name == "perplexity" else left - right)
    everything = np.arange(ROWS)
    left, right = error_of(one, everything), error_of(other, everything)
    assert found.value == pytest.approx(left / right - 1 if name == "perplexity" else left - right)
    assert found.standard_error == pytest.approx(np.std(drawn), rel=0.1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    width = high - low
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.1 * width)


@pytest.mark.parametrize("name", PAIRS)
def test_resampled_errors_are_the_metric_of_the_drawn_rows(name: str) -> None:
    rng = np.random.default_rng(1)
    for outcomes in PAIRS[name]:
        draws = rng.integers(ROWS, size=(5, ROWS))
        counts = np.array([np.bincount(rows, minlength=ROWS) for rows in draws], dtype=float)
        expected = [error_of(outcomes, rows) for rows in draws]
        assert outcomes.resampled_errors(counts) == pytest.approx(expected, abs=1e-9)
        assert outcomes.resampled_errors(np.ones((1, ROWS)))[0] == pytest.approx(outcomes.error, abs=1e-9)


@pytest.mark.parametrize("metric", ["f1", "matthews", "spearman", "pearson"])
def test_a_network_that_always_answers_the_same_knows_nothing(metric: str) -> None:
    targets = np.arange(50) % 2
    constant = RowOutcomes(metric, np.zeros(50), targets)
    assert constant.error == constant.resampled_errors(np.ones((1, 50)))[0] == 1.0
    found = PairedErrors({"constant": constant, "right": RowOutcomes(metric, targets, targets)})
    assert found.loss("constant", "right").value == pytest.approx(1.0)
    assert found.is_better("right", "constant") and not found.is_better("constant", "right")


def test_pairing_is_narrower_than_two_intervals() -> None:
    """Both are wrong on the same hard rows: the difference is small and sure."""
    targets = np.zeros(1000, dtype=int)
    first = np.where(np.arange(1000) < 300, 1, 0)
    second = np.where(np.arange(1000) < 310, 1, 0)
    outcomes = {"first": RowOutcomes("accuracy", first, targets), "second": RowOutcomes("accuracy", second, targets)}
    loss = PairedErrors(outcomes).loss("second", "first")
    assert loss.value == pytest.approx(0.01) and loss.low > 0
    assert loss.standard_error < np.sqrt(2 * 0.3 * 0.7 / 1000) / 5


def test_questions_are_means_of_scores() -> None:
    scores = np.array([1.0, 0.5, 0.0, 1.0])
    better = np.array([1.0, 1.0, 0.5, 1.0])
    ones = np.ones(4)
    paired = PairedErrors({"a": RowOutcomes("squad_f1", scores, ones), "b": RowOutcomes("squad_f1", better, ones)})
    assert paired.error("a") == 0.375
    loss = paired.loss("a", "b")
    assert loss.value == pytest.approx(0.25)
    assert loss.standard_error == pytest.approx(np.std(better - scores, ddof=1) / 2)


def test_other_rows_are_refused() -> None:
    short = RowOutcomes("accuracy", np.zeros(3), np.zeros(3))
    with pytest.raises(BadInput, match="same rows"):
        PairedErrors({"a": short, "b": classes("accuracy", 0.1, 1)})


def outcomes_of(metric: str, shape: str) -> RowOutcomes:
    """Class ids, scores of two classes, of several, or sets of labels."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, 40)
    if shape == "sets":
        return RowOutcomes(metric, *rng.integers(0, 2, (2, 40, 3)).astype(float))
    if shape == "scores":
        return RowOutcomes(metric, rng.normal(size=40).round(1), classes == 1)
    answers = rng.normal(size=(40, 3)).round(1) if metric == "roc_auc" else np.where(rng.random(40) < 0.7, classes, 0)
    return RowOutcomes(metric, answers, classes)


@pytest.mark.parametrize(
    ("metric", "shape"),
    [("macro_f1", "classes"), ("macro_f1", "sets"), ("roc_auc", "scores"), ("roc_auc", "classes"), ("roc_auc", "sets")],
)
def test_many_resamples_at_once_are_one_by_one(metric: str, shape: str) -> None:
    rows = outcomes_of(metric, shape)
    counts = np.random.default_rng(1).multinomial(40, np.full(40, 1 / 40), size=25).astype(float)
    each = [rows.take(np.repeat(np.arange(40), draw.astype(int))).error for draw in counts]
    assert rows.resampled_errors(counts) == pytest.approx(each, abs=1e-12)


def test_a_metric_of_the_users_own_has_an_interval(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def hits(labels, predictions):\n    return (labels == predictions).mean()\n")
    rng = np.random.default_rng(0)
    targets = rng.integers(0, 2, 80)
    sides = {name: np.where(rng.random(80) < share, targets, 1 - targets) for name, share in (("a", 0.9), ("b", 0.6))}
    own = PairedErrors({name: RowOutcomes(f"{file}:hits", side, targets) for name, side in sides.items()})
    usual = PairedErrors({name: RowOutcomes("accuracy", side, targets) for name, side in sides.items()})
    assert own.error("a") == pytest.approx(usual.error("a"))
    one, other = own.loss("b", "a"), usual.loss("b", "a")
    assert one.value == pytest.approx(other.value)
    assert one.standard_error == pytest.approx(other.standard_error, rel=0.2)
