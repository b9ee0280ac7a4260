"""Numbers of all chains at once, from which any formula is a moment's arithmetic."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from archwright.probe import Probe
from archwright.proxies.operations import UNARY
from archwright.proxies.simplifying import Chain, canonical_chain
from archwright.proxies.sources import INPUTS, SOURCES

Array = np.ndarray[Any, np.dtype[np.float64]]


def statistics(probe: Probe, chains: Sequence[Chain], inputs: Sequence[str] = INPUTS) -> Array:
    """The number of every input, chain and layer: inputs x chains x layers, as `Formula.measure` has them.

    NaN where the layer does not have the role, and for `prune`; infinity where there is no finite number, so that a
    formula with it is invalid and not merely shorter. An input of the whole network has the same number in all layers.
    """
    found = np.full((len(inputs), len(chains), len(probe.layers)), np.nan)
    for place, name in enumerate(inputs):
        for at, chain in enumerate(chains):
            if "prune" not in chain:
                found[place, at] = layer_values(probe, name, canonical_chain(tuple(chain)))
    return found


def layer_values(probe: Probe, name: str, chain: Chain) -> list[float]:
    """The number of this input and chain in every layer; NaN where the layer does not have the role."""
    return [tensors_value(SOURCES[name].find(probe, layer), chain) for layer in probe.layers]


def tensors_value(tensors: list[torch.Tensor], chain: Chain) -> float:
    if not tensors:
        return math.nan
    numbers = [value(tensor, chain) for tensor in tensors]
    mean = math.fsum(numbers) / len(numbers) if all(map(math.isfinite, numbers)) else math.inf
    return mean


def value(tensor: torch.Tensor, chain: Chain) -> float:
    x = tensor.double()
    for name in chain:
        x = UNARY[name].apply(x)
    return float(x.mean())
