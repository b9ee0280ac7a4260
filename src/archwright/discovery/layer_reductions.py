"""Reductions over layers for many networks and formulas at once; `proxies.reductions` has them for one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Layers:
    """Layers one after another."""

    weights: Callable[[Mask], Values]
    """From which layers are there (layers last) what the number of each is multiplied with before `step`."""
    step: Callable[[Values, Values], Values] = np.add
    """What there is so far, zero at first, and one more layer; a layer that is zero changes nothing."""

    @property
    def linear(self) -> bool:
        """Whether a sum of two branches is reduced branch by branch."""
        return self.step is np.add


def ones(there: Mask) -> Values:
    return there.astype(np.float64)


def shares(there: Mask) -> Values:
    return there / np.maximum(there.sum(axis=-1, keepdims=True), 1)


def at_last(there: Mask) -> Values:
    later = there[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return (there & (later == 1)).astype(np.float64)


def farther(sofar: Values, layer: Values) -> Values:
    return np.where(np.abs(layer) > np.abs(sofar), layer, sofar)


def logarithms(sofar: Values, layer: Values) -> Values:
    return sofar + np.copysign(np.log1p(np.abs(layer)), layer)


LAYERS: dict[str, Layers] = {
    "sum": Layers(ones),
    "mean": Layers(shares),
    "last": Layers(at_last),
    "largest": Layers(ones, farther),
    "logsum": Layers(ones, logarithms),
}
"""By the names of `proxies.reductions`."""
