"""How good the best by score are. Ties of a score are broken by chance, and the expectation is given."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archwright.errors import BadInput
from archwright.statistics.ranks import Values, spearman

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


def top_mask(truth: Values) -> NDArray[np.bool_]:
    """Which items are in the top 10 %, all that tie with the last of them included."""
    return np.asarray(truth >= np.sort(truth)[-top_count(len(truth))], dtype=bool)


def top_spearman(scores: Values, truth: Values) -> float:
    """Spearman among the items that are really in the top 10 %; NaN where a side is constant there."""
    inside = top_mask(truth)
    return spearman(scores[inside], truth[inside])


def choice_effects(configs: Sequence[Mapping[str, Any]], truth: ArrayLike) -> list[dict[str, Any]]:
    """One row per choice and value, in the order of the configs' names, values ascending.

    `n` architectures have the value; `mean` of their trained score; `share` of all architectures that have the choice;
    `top_share` of those among the top 10 % by trained score: above `share` the best favour the value.
    A config without a name (a layer it does not have) is left out there. Configs should be canonical: values that
    have no effect would look like choices.
    """
    values = np.asarray(truth, dtype=np.float64)
    if len(configs) != len(values) or not len(values) or not np.isfinite(values).all():
        raise BadInput(f"one finite score per config: got {len(configs)} configs and scores of shape {values.shape}.")
    top, rows = top_mask(values), []

    def ordering(value: Any) -> tuple[str, Any]:  # numbers by size, words by letter, never one against the other
        return ("", value) if isinstance(value, (int, float)) else (type(value).__name__, str(value))

    def share(some: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:  # 0 when there is none to choose from
        return float(some.sum() / max(among.sum(), 1))

    for name in dict.fromkeys(name for config in configs for name in config):
        having = np.array([name in config for config in configs])
        written = np.array([repr(config.get(name)) for config in configs])
        distinct = {repr(config[name]): config[name] for config in configs if name in config}
        for value in sorted(distinct.values(), key=ordering):
            here = having & (written == repr(value))
            row = {"choice": name, "value": value, "n": int(here.sum()), "mean": float(values[here].mean())}
            rows.append(row | {"share": share(here, having), "top_share": share(here & top, having & top)})
    return rows
