"""Proxies that add up over layers: what a layer contributes is found on a recording of that layer alone, and kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.networks.roles import Counts
from archwright.probe import Probe
from archwright.proxies import PROXIES
from archwright.proxies.pca import Factor, dimensions, spectrum
from archwright.proxies.proxy import average, total

Terms = Sequence[Any]


def terms_of(name: str) -> Callable[[Probe, Factor], Terms]:
    """What the function of this proxy gives of one layer: several terms, or one number."""

    def terms(probe: Probe, factor: Factor) -> Terms:
        found = PROXIES[name].load(PROXIES[name].target)(probe)
        return found if isinstance(found, list | tuple) else (found,)

    return terms


def components(probe: Probe, factor: Factor) -> Terms:
    """As `v_pca` has them."""
    return [dimensions(spectrum(layer, factor)) for layer in probe.layers]


@dataclass(frozen=True)
class Layerwise:
    """A proxy whose score follows from numbers of each layer."""

    of: str
    """Proxy whose terms, on one layer, are these numbers."""
    joined: Callable[[Terms, Counts], float]
    """The score, of the terms of all layers in order."""

    @property
    def terms(self) -> Callable[[Probe, Factor], Terms]:
        """Of a recording of one layer; the factor of its FFN is given, because one layer serves many designs."""
        return CHEAPER.get(self.of) or terms_of(self.of)


CHEAPER: dict[str, Callable[[Probe, Factor], Terms]] = {"v_pca": components}
"""Proxies whose terms need something that depends on weights alone."""


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
