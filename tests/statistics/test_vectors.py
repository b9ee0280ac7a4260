"""Neighbours and similarities of sentence vectors, by hand."""

import numpy as np
import pytest

from archwright.errors import BadInput
from archwright.statistics.paired import PairedErrors, RowOutcomes
from archwright.statistics.vectors import AT_ONCE, nearest, neighbour_recall


def by_hand(vectors: np.ndarray, count: int) -> list[set[int]]:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    order = [
        sorted((j for j in range(len(units)) if j != i), key=lambda j: -units[i] @ units[j]) for i in range(len(units))
    ]
    return [set(row[:count]) for row in order]


def test_neighbours_are_the_most_similar_others() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 5)) * np.arange(1, 41)[:, None]  # lengths do not matter
    assert [set(row) for row in nearest(vectors, 4).tolist()] == by_hand(vectors, 4)


def test_many_texts_are_compared_in_pieces() -> None:
    vectors = np.random.default_rng(1).normal(size=(AT_ONCE + 30, 3))
    found = nearest(vectors, 2)
    assert [set(row) for row in found[-3:].tolist()] == by_hand(vectors, 2)[-3:]


def test_recall_is_the_share_of_neighbours_found_again() -> None:
    rng = np.random.default_rng(2)
    original, vectors = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    both = zip(by_hand(vectors, 10), by_hand(original, 10), strict=True)
    np.testing.assert_allclose(neighbour_recall(vectors, original), [len(a & b) / 10 for a, b in both])
    turned = original @ np.linalg.qr(rng.normal(size=(4, 4)))[0]  # the same angles
    assert neighbour_recall(3 * turned, original).tolist() == [1.0] * 30


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(BadInput, match="more than 10 texts, got 10"):
        neighbour_recall(np.eye(10), np.eye(10))


def test_its_error_is_a_mean_over_rows() -> None:
    scores = np.array([1.0, 0.5, 0.0, 1.0])
    outcomes = RowOutcomes("neighbour_recall", scores, np.ones(4))
    assert outcomes.error == pytest.approx(1 - scores.mean())
    whole = RowOutcomes("neighbour_recall", np.ones(4), np.ones(4))
    loss = PairedErrors({"small": outcomes, "original": whole}).loss("small", "original")
    assert loss.value == pytest.approx(0.375)
    assert loss.standard_error == pytest.approx(np.std(1 - scores, ddof=1) / 2)
