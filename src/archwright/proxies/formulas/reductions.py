"""How the numbers of layers become one score. All turn their sign with that of the layers, so that a minus sign in
front of a formula turns its ranking round and nothing else."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from archwright.proxies.proxy import average, total


@dataclass(frozen=True)
class Reduction:
    """Of the layers that have what a formula looks at."""

    summary: str
    latex: str
    """What stands before the bracket."""
    python: str
    """Expression in `terms`, a list of numbers, the first layer first."""
    of: Callable[[Sequence[float]], float]


def logarithm(term: float) -> float:
    return math.copysign(math.log1p(abs(term)), term)


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction("sum over layers", r"\sum_{l}", "sum(terms)", total),
    "mean": Reduction("mean over layers", r"\frac{1}{L}\sum_{l}", "sum(terms) / len(terms)", average),
    "last": Reduction("the last layer", r"\operatorname{last}_{l}", "terms[-1]", lambda terms: terms[-1]),
    "largest": Reduction(
        "the layer farthest from zero",
        r"\operatorname{largest}_{l}",
        "max(terms, key=abs)",
        lambda terms: max(terms, key=abs),
    ),
    "logsum": Reduction(
        "sum of sign(x) log(1 + |x|), close to a product of layers",
        r"\sum_{l} \operatorname{slog}",
        "sum(math.copysign(math.log1p(abs(term)), term) for term in terms)",
        lambda terms: math.fsum(map(logarithm, terms)),
    ),
}
