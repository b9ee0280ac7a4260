"""Proxies that add up over layers: what a layer contributes is found on a recording of that layer alone, and kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.networks.roles import Counts
from archwright.proxies import PROXIES
from archwright.proxies.proxy import average, total

Terms = Sequence[Any]


@dataclass(frozen=True)
class Layerwise:
    """A proxy whose score follows from numbers of each layer."""

    of: str
    """Proxy whose terms, on one layer, are these numbers."""
    joined: Callable[[Terms, Counts], float]
    """The score, of the terms of all layers in order."""


def summed(name: str) -> Layerwise:
    return Layerwise(name, lambda terms, counts: PROXIES[name].join(terms))


SUMS = (
    "v_pca",
    "activation_distance",
    "activation_distance_published",
    "attention_confidence",
    "attention_confidence_published",
    "softmax_confidence",
    "softmax_confidence_published",
)
LAYERWISE: dict[str, Layerwise] = {
    **{name: summed(name) for name in SUMS},
    **{f"{name}_normalised": Layerwise(name, lambda terms, counts: average(terms)) for name in SUMS},
    "w_pca": Layerwise("v_pca", lambda terms, counts: counts.parameters * total(terms)),
    "w_pca_nonembedding": Layerwise("v_pca", lambda terms, counts: counts.nonembedding * total(terms)),
    "hidden_covariance": Layerwise("hidden_covariance", lambda terms, counts: average(terms)),
    "hidden_covariance_inputs": Layerwise("hidden_covariance_inputs", lambda terms, counts: average(terms)),
}
"""Of all others with a forward pass alone, whole recordings are kept."""


def as_terms(found: Any) -> Terms:
    """What a proxy's function gave of one layer: several terms, or one number."""
    return found if isinstance(found, list | tuple) else (found,)
