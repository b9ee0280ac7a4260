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


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Over the layers that have the inputs of a formula: for one network, and for many networks and formulas at once.

    For many, `step` goes over the layers one after another: from what there is so far, zero at first, and the number of
    one more layer times its weight. A layer that is zero changes nothing.
    """

    summary: str
    latex: str
    """What stands before the bracket."""
    python: str
    """Expression in `terms`, a list of numbers, the first layer first."""
    reduce: Callable[[Sequence[float]], float]
    """Of the terms of one network."""
    weights: Callable[[Mask], Values] = lambda present: present.astype(np.float64)
    """From which layers are present (layers last) what the number of each is multiplied with before `step`."""
    step: Callable[[Values, Values], Values] = np.add

    @property
    def linear(self) -> bool:
        """Whether a sum of two branches is reduced branch by branch."""
        return self.step is np.add

    def reduce_many(self, terms: Values, present: Mask) -> Values:
        """Networks x layers to one number each: NaN where no layer is present, infinite where a term is not finite."""
        finite = np.where(present, np.where(np.isfinite(terms), terms, np.inf), 0.0)
        sums = np.zeros(len(terms))
        with np.errstate(all="ignore"):
            for layer, weight in zip(finite.T, self.weights(present).T, strict=True):
                sums = self.step(sums, np.where(np.isfinite(layer), layer * weight, layer))
        return np.where(present.any(axis=1), np.where(np.isnan(sums), np.inf, sums), np.nan)


def last_present(present: Mask) -> Values:
    """1 in the last layer that is present, 0 elsewhere."""
    later = present[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(present & (later == 1), dtype=np.float64)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(summary="over layers", latex=r"\sum_{l}", python="sum(terms)", reduce=total),
    "mean": Reduction(
        summary="over layers",
        latex=r"\frac{1}{L}\sum_{l}",
        python="sum(terms) / len(terms)",
        reduce=average,
        weights=lambda present: present / np.maximum(present.sum(axis=-1, keepdims=True), 1),
    ),
    "last": Reduction(
        summary="the last layer",
        latex=r"\operatorname{last}_{l}",
        python="terms[-1]",
        reduce=lambda terms: terms[-1],
        weights=last_present,
    ),
    "largest": Reduction(
        summary="the layer farthest from zero",
        latex=r"\operatorname{largest}_{l}",
        python="max(terms, key=abs)",
        reduce=lambda terms: max(terms, key=abs),
        step=lambda sofar, layer: np.where(np.abs(layer) > np.abs(sofar), layer, sofar),
    ),
    "logsum": Reduction(
        summary="sum of sign(x) log(1 + |x|), close to a product",
        latex=r"\sum_{l} \operatorname{slog}",
        python="sum(math.copysign(math.log1p(abs(term)), term) for term in terms)",
        reduce=lambda terms: math.fsum(math.copysign(math.log1p(abs(term)), term) for term in terms),
        step=lambda sofar, layer: sofar + np.copysign(np.log1p(np.abs(layer)), layer),
    ),
}
