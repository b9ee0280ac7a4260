"""A scaling law of shapes: one log-linear, monotone formula of sizes for all benchmarks, without any network.

log(parameters beside embeddings) + a evenness + b log(depth) + c log(width) + d log(heads) + e lateness, all weights at
least zero. `evenness` is the mean logarithm of the layers' weights minus the logarithm of their mean: zero when all are
as large, below zero otherwise. `lateness` is how much larger late layers are than early ones.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archwright.proxies.proxy import Unscored, proxy

if TYPE_CHECKING:
    from archwright.networks.roles import Counts
    from archwright.probe import Probe

TERMS = ("evenness", "depth", "width", "heads", "lateness")
"""What may be added to the logarithm of the size."""
TRAVELLING = ("evenness", "depth", "width")
"""Those that `scaling_law` uses: weights of heads and of position that some benchmarks give are wrong on others."""
WEIGHTS: Mapping[str, float] = {"evenness": 0.339, "depth": 0.050, "width": 0.154}
"""Fitted on all five benchmarks by `experiments/ranking/travel.py`; what they are worth on a benchmark that they were
not fitted on stands in docs/rank.md."""


def law_terms(counts: "Counts") -> dict[str, float]:
    """The terms of the law, and `size`; Unscored where the sizes of the layers are not known."""
    if not counts.layers:
        raise Unscored("The sizes of its layers are not known; give its counts `layers`.")
    logs = [math.log(max(1, layer.total)) for layer in counts.layers]
    mean, amount = math.fsum(logs) / len(logs), len(logs)
    places = [place / (amount - 1) - 0.5 if amount > 1 else 0.0 for place in range(amount)]
    return {
        "size": math.log(counts.nonembedding),
        "evenness": mean - math.log(math.fsum(layer.total for layer in counts.layers) / amount),
        "depth": math.log(amount),
        "width": math.log(counts.width),
        "heads": math.fsum(math.log(max(1, layer.heads)) for layer in counts.layers) / amount,
        "lateness": math.fsum(place * log for place, log in zip(places, logs, strict=True)) / amount,
    }


def law_score(terms: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return terms["size"] + math.fsum(weight * terms[name] for name, weight in weights.items())


@proxy("log size + 0.339 evenness + 0.05 log depth + 0.154 log width", origin="count", closed_form=True)
def scaling_law(probe: "Probe") -> float:
    """With the weights fitted on all five benchmarks: on those it is judged with what it has seen."""
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    return law_score(law_terms(probe.counts), WEIGHTS)
