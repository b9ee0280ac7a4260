"""What a collapsed training looks like, by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from archwright.data.encoding import Encoded
from archwright.training import collapse
from archwright.training.collapse import CollapseWatch, check_steps, judge_classes, judge_numbers, watch_task

TARGETS = np.array([0] * 30 + [1] * 70)


def logits_of(probability: np.ndarray) -> np.ndarray:
    """Two classes, the second with these probabilities."""
    return np.log(np.stack([1 - probability, probability], axis=1))


def test_the_shares_of_the_classes_alone_are_a_collapse() -> None:
    words = judge_classes(logits_of(np.full(100, 0.7)), TARGETS)
    assert words is not None and words.startswith("one class for all 100 watched rows, loss 0.611")
    guesses = np.random.default_rng(0).permutation(np.linspace(0.3, 0.9, 100))  # two answers, both for nothing
    assert "the shares of the classes alone give 0.611" in str(judge_classes(logits_of(guesses), TARGETS))


def test_learning_is_not() -> None:
    right = np.where(TARGETS == 1, 0.8, 0.3)
    assert judge_classes(logits_of(right), TARGETS) is None
    late = np.where(TARGETS == 1, 0.9, 0.55)  # one class still, but the rows are told apart
    assert judge_classes(logits_of(late), TARGETS) is None
    assert judge_classes(logits_of(np.where(TARGETS == 1, 0.72, 0.69)), TARGETS) is not None


def test_weights_of_classes_count_as_they_do_in_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    targets = (rng.random(2000) < 0.05).astype(int)
    score = 2 * (
        rng.normal(size=2000) + 2 * targets - 1
    )  # the best for classes that count alike, 0.84 balanced accuracy
    own = score + np.log(0.05 / 0.95)  # the best for classes as frequent as they are, which a teacher may pass on
    weights = (1 / 0.95 / 2, 1 / 0.05 / 2)
    rows: Any = [SimpleNamespace(targets=torch.from_numpy(targets))]
    for values, without, weighted in ((score, True, False), (own, False, True), (0 * score, True, True)):
        logits = np.stack([0 * values, values], axis=1)
        assert (judge_classes(logits, targets) is not None) == without
        assert (judge_classes(logits, targets, weights) is not None) == weighted
        monkeypatch.setattr(collapse, "predict_logits", lambda *_, logits=logits: logits)
        monkeypatch.setattr(collapse, "in_row_order", lambda values, _: values[0].numpy())
        assert (CollapseWatch(None, rows, weights).find() is not None) == (without and weighted)


def test_the_watch_has_the_weights_of_the_task() -> None:
    rows = Encoded(np.ones(100, np.int32), np.arange(101), None, TARGETS, 0)
    task: Any = SimpleNamespace(task=SimpleNamespace(kind="classification"), encoded={"train": rows}, seed=0)
    task.evaluation_tokens, task.device, task.class_weights = 100, torch.device("cpu"), (0.5, 2.0)
    watch = watch_task(task, None)
    assert watch is not None and watch.weights == (0.5, 2.0)


def test_numbers() -> None:
    targets = np.linspace(0, 5, 60)
    assert judge_numbers(np.full(60, 2.5), targets) == "one number for all 60 watched rows"
    assert "their mean alone gives 2.15" in str(judge_numbers(targets[::-1], targets))
    assert judge_numbers(0.5 * targets + 1.25, targets) is None


@pytest.mark.parametrize(("steps", "looks"), [(99, set()), (100, {30, 50, 75}), (1000, {300, 500, 750})])
def test_short_trainings_are_not_looked_at(steps: int, looks: set[int]) -> None:
    assert check_steps(steps) == looks
