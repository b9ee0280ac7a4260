"""How good the best by score are. Ties of a score are broken by chance, and the expectation is given."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from archwright.statistics.ranks import Order, Values, spearman

SHARE = 0.1
PICKED = 10


def top_count(n: int) -> int:
    """Ten per cent of n, rounded up."""
    return math.ceil(SHARE * n)


def chances(scores: Values, k: int) -> Values:
    """The chance of each item to be among the k with the highest scores."""
    least = np.sort(scores)[-k]
    above, tied = scores > least, scores == least
    return np.asarray(above + tied * (k - above.sum()) / tied.sum())


def precision_at_share(scores: Values, truth: Values) -> float:
    """Share of the top 10 % by score that is in the top 10 % by truth, 0 to 1, higher is better."""
    k = top_count(len(truth))
    return float(chances(scores, k) @ chances(truth, k) / k)


def regret_at(scores: Values, truth: Values, k: int = PICKED) -> float:
    """What is lost by training only the k best by score: best truth minus the best among them.

    In the units of the truth (points of GLUE, perplexity, loss), 0 or more, lower is better.
    """
    picked = min(k, len(truth))
    least = np.sort(scores)[-picked]
    above, tied = truth[scores > least], truth[scores == least]
    regret = truth.max() - expected_best(above.max(initial=-np.inf), tied, picked - len(above))
    return max(0.0, float(regret))  # rounding alone can make it negative


def expected_best(known: float, tied: Values, drawn: int) -> float:
    """The expected maximum of a known value and `drawn` of the tied ones, each subset as likely."""
    falling = np.sort(tied)[::-1]
    subsets = math.comb(len(tied), drawn)
    chance = [math.comb(len(tied) - 1 - place, drawn - 1) / subsets for place in range(len(tied))]
    return float(np.maximum(falling, known) @ np.array(chance))


def best(truth: Values) -> NDArray[np.bool_]:
    """Which items are in the top 10 %, all that tie with the last of them included."""
    return np.asarray(truth >= np.sort(truth)[-top_count(len(truth))], dtype=bool)


def top_spearman(scores: Values, truth: Values) -> float:
    """Spearman among the items that are really in the top 10 %; NaN where a side is constant there."""
    inside = best(truth)
    counts = np.ones((1, int(inside.sum())))
    return float(spearman(counts, Order.of(scores[inside]), Order.of(truth[inside]))[0])
