"""How the numbers of layers become one score. All turn their sign with that of the layers, so that a minus sign in
front of a formula turns its ranking round and nothing else."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archwright.proxies.proxy import average, total

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Reduction:
    """Of the layers that have what a formula looks at."""

    summary: str
    latex: str
    """What stands before the bracket."""
    python: str
    """Expression in `terms`, a list of numbers, the first layer first."""
    of: Callable[[Sequence[float]], float]
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


def logarithm(term: float) -> float:
    return math.copysign(math.log1p(abs(term)), term)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("sum over layers", r"\sum_{l}", "sum(terms)", total, ones),
    "mean": Reduction("mean over layers", r"\frac{1}{L}\sum_{l}", "sum(terms) / len(terms)", average, shares),
    "last": Reduction("the last layer", r"\operatorname{last}_{l}", "terms[-1]", lambda terms: terms[-1], at_last),
    "largest": Reduction(
        "the layer farthest from zero",
        r"\operatorname{largest}_{l}",
        "max(terms, key=abs)",
        lambda terms: max(terms, key=abs),
        ones,
        farther,
    ),
    "logsum": Reduction(
        "sum of sign(x) log(1 + |x|), close to a product of layers",
        r"\sum_{l} \operatorname{sgn}\log_{1+|\cdot|}",
        "sum(math.copysign(math.log1p(abs(term)), term) for term in terms)",
        lambda terms: math.fsum(map(logarithm, terms)),
        ones,
        logarithms,
    ),
}
