"""From which probability on a label is given to a text, where every label is a yes or no of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEWEST = 10
"""Rows with a label, and rows without it, from which its threshold is chosen; with fewer it is USUAL."""
USUAL = 0.5


def choose_thresholds(probabilities: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """The threshold of every label (columns) with the largest F1 on these rows; 0.5 of a label that is too rare here.

    It lies in the middle between the lowest probability that is a yes and the next lower one.
    """
    thresholds = np.full(targets.shape[1], USUAL)
    for label in range(targets.shape[1]):
        wanted = targets[:, label] > 0
        if min(wanted.sum(), (~wanted).sum()) >= FEWEST:
            thresholds[label] = best_threshold(probabilities[:, label], wanted)
    return thresholds


def best_threshold(probabilities: NDArray[np.float64], wanted: NDArray[np.bool_]) -> float:
    order = np.argsort(-probabilities, kind="stable")
    high, right = probabilities[order], np.cumsum(wanted[order])
    lower = np.append(high[1:], 0.0)
    scores = 2 * right / (np.arange(1, len(order) + 1) + right[-1])  # F1 if the first so many are a yes
    best = int(np.argmax(np.where(high > lower, scores, -1.0)))  # equal probabilities are answered alike
    return float((high[best] + lower[best]) / 2)
