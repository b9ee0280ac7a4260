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
    least: int = 1
    """Layers below which there is nothing to reduce."""
    of_equals: str = ""
    """The reduction that gives the same where all layers have the same number."""

    @property
    def linear(self) -> bool:
        """Whether a sum of two branches is reduced branch by branch."""
        return self.step is np.add

    def reduce_many(self, terms: Values, present: Mask) -> Values:
        """Networks x layers to one number each: NaN where too few layers are present, infinite where a term is not
        finite."""
        finite = np.where(present, np.where(np.isfinite(terms), terms, np.inf), 0.0)
        sums = np.zeros(len(terms))
        with np.errstate(all="ignore"):
            for layer, weight in zip(finite.T, self.weights(present).T, strict=True):
                sums = self.step(sums, np.where(np.isfinite(layer), layer * weight, layer))
        return np.where(self.enough(present), np.where(np.isnan(sums), np.inf, sums), np.nan)

    def enough(self, present: Mask) -> Mask:
        """Networks with layers to reduce, from networks x layers."""
        return np.asarray(present.sum(axis=1) >= self.least)


def last_present(present: Mask) -> Values:
    """1 in the last layer that is present, 0 elsewhere."""
    later = present[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return np.asarray(present & (later == 1), dtype=np.float64)


def first_present(present: Mask) -> Values:
    """1 in the first layer that is present, 0 elsewhere."""
    return np.asarray(present & (present.cumsum(axis=-1) == 1), dtype=np.float64)


def rising_weights(present: Mask) -> Values:
    """1/L, 2/L, ..., 1 over the L layers that are present."""
    number = np.maximum(present.sum(axis=-1, keepdims=True), 1)
    return np.asarray(present * present.cumsum(axis=-1) / number, dtype=np.float64)


def falling_weights(present: Mask) -> Values:
    """1, (L-1)/L, ..., 1/L over the L layers that are present."""
    return rising_weights(present[..., ::-1])[..., ::-1]


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(summary="over layers", latex=r"\sum_{l}", python="sum(terms)", reduce=total),
    "mean": Reduction(
        summary="over layers",
        latex=r"\frac{1}{L}\sum_{l}",
        python="sum(terms) / len(terms)",
        reduce=average,
        weights=lambda present: present / np.maximum(present.sum(axis=-1, keepdims=True), 1),
    ),
    "first": Reduction(
        summary="the first layer",
        latex=r"\operatorname{first}_{l}",
        python="terms[0]",
        reduce=lambda terms: terms[0],
        weights=first_present,
        of_equals="mean",
    ),
    "last": Reduction(
        summary="the last layer",
        latex=r"\operatorname{last}_{l}",
        python="terms[-1]",
        reduce=lambda terms: terms[-1],
        weights=last_present,
        of_equals="mean",
    ),
    "but_last": Reduction(
        summary="over all layers but the last",
        latex=r"\sum_{l<L}",
        python="sum(terms[:-1])",
        reduce=lambda terms: total(terms[:-1]),
        weights=lambda present: present - last_present(present),
        least=2,
    ),
    "rising": Reduction(
        summary="over layers, the last counts most: l/L",
        latex=r"\sum_{l} \frac{l}{L}",
        python="sum(place / len(terms) * term for place, term in enumerate(terms, 1))",
        reduce=lambda terms: math.fsum(place / len(terms) * term for place, term in enumerate(terms, 1)),
        weights=rising_weights,
    ),
    "falling": Reduction(
        summary="over layers, the first counts most: (L-l+1)/L",
        latex=r"\sum_{l} \frac{L-l+1}{L}",
        python="sum(place / len(terms) * term for place, term in enumerate(reversed(terms), 1))",
        reduce=lambda terms: math.fsum(place / len(terms) * term for place, term in enumerate(reversed(terms), 1)),
        weights=falling_weights,
        of_equals="rising",
    ),
    "largest": Reduction(
        summary="the layer farthest from zero",
        latex=r"\operatorname{largest}_{l}",
        python="max(terms, key=abs)",
        reduce=lambda terms: max(terms, key=abs),
        step=lambda sofar, layer: np.where(np.abs(layer) > np.abs(sofar), layer, sofar),
        of_equals="mean",
    ),
    "logsum": Reduction(
        summary="sum of sign(x) log(1 + |x|), close to a product",
        latex=r"\sum_{l} \operatorname{slog}",
        python="sum(math.copysign(math.log1p(abs(term)), term) for term in terms)",
        reduce=lambda terms: math.fsum(math.copysign(math.log1p(abs(term)), term) for term in terms),
        step=lambda sofar, layer: sofar + np.copysign(np.log1p(np.abs(layer)), layer),
    ),
}

POSITIONAL = ("sum", "first", "last", "but_last", "rising", "falling")
"""Those that tell where in the network a layer stands, and the plain sum."""


def distinct_reductions(names: Sequence[str], *, equal_layers: bool) -> tuple[str, ...]:
    """Of these reductions the first of every group that gives the same, where all layers have the same number."""
    if not equal_layers:
        return tuple(names)
    return tuple({REDUCTIONS[name].of_equals or name: name for name in reversed(names)}.values())[::-1]
