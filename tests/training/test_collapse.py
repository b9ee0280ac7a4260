"""What a collapsed training looks like, by hand."""

import numpy as np
import pytest

from archwright.training.collapse import check_steps, judge_classes, judge_numbers

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


def test_numbers() -> None:
    targets = np.linspace(0, 5, 60)
    assert judge_numbers(np.full(60, 2.5), targets) == "one number for all 60 watched rows"
    assert "their mean alone gives 2.15" in str(judge_numbers(targets[::-1], targets))
    assert judge_numbers(0.5 * targets + 1.25, targets) is None


@pytest.mark.parametrize(("steps", "looks"), [(99, set()), (100, {30, 50, 75}), (1000, {300, 500, 750})])
def test_short_trainings_are_not_looked_at(steps: int, looks: set[int]) -> None:
    assert check_steps(steps) == looks
