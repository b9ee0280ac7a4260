"""A scaling law of shapes: one log-linear, monotone formula of sizes for all benchmarks, without any network.

log(parameters beside embeddings) + a evenness + b log(depth) + c log(width) + d log(heads) + e lateness + f mixing, all
weights at least zero. `evenness` is the mean logarithm of the layers' weights minus the logarithm of their mean: zero
when all are as large, below zero otherwise. `lateness` is how much larger late layers are than early ones, `mixing` the
logarithm of the share of the weights that mix tokens, the others being those of the FFN.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archwright.proxies.proxy import Unscored, proxy

if TYPE_CHECKING:
    from archwright.networks.roles import Counts
    from archwright.probe import Probe

TERMS = ("evenness", "depth", "width", "heads", "lateness", "mixing")
"""What may be added to the logarithm of the size."""
WEIGHTS: Mapping[str, float] = {}
"""Of the terms that hold on all five benchmarks: none does, so the law is the size. `statistics/scaling.py` has the
rule, `experiments/ranking/laws.csv` the evidence for each, docs/rank.md what travels."""


def law_terms(counts: "Counts") -> dict[str, float]:
    """The terms of the law, and `size`; Unscored where the sizes of the layers are not known."""
    if not counts.layers:
        raise Unscored("The sizes of its layers are not known; give its counts `layers`.")
    logs = [math.log(max(1, layer.total)) for layer in counts.layers]
    mean, amount = math.fsum(logs) / len(logs), len(logs)
    whole = math.fsum(layer.total for layer in counts.layers)
    places = [place / (amount - 1) - 0.5 if amount > 1 else 0.0 for place in range(amount)]
    return {
        "size": math.log(counts.nonembedding),
        "evenness": mean - math.log(whole / amount),
        "depth": math.log(amount),
        "width": math.log(counts.width),
        "heads": math.fsum(math.log(max(1, layer.heads)) for layer in counts.layers) / amount,
        "lateness": math.fsum(place * log for place, log in zip(places, logs, strict=True)) / amount,
        "mixing": math.log(max(1, math.fsum(layer.mixing for layer in counts.layers)) / max(1, whole)),
    }


def law_score(terms: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return terms["size"] + math.fsum(weight * terms[name] for name, weight in weights.items())


@proxy("log size; no exponent of shape holds on every benchmark", origin="count", closed_form=True)
def scaling_law(probe: "Probe") -> float:
    """Orders networks as the parameters beside embeddings do, until a term is borne out (WEIGHTS)."""
    if probe.counts is None:
        raise Unscored("The architecture was not counted; give record its counts.")
    return law_score(law_terms(probe.counts), WEIGHTS)
