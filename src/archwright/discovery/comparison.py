"""Several kinds of search with several seeds each: what they reached, with intervals over seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.discovery.evolution import EvolutionResult
from archwright.statistics.bootstrap import mean_over_seeds as mean


def compared(curves: Mapping[str, Sequence[EvolutionResult]], baseline: str) -> dict[str, dict[str, Any]]:
    """Best fitness of each kind at the end, and less the baseline's: after as many generations, and after as many
    different formulas scored. Seeds share their architectures, so that differences are taken seed by seed."""
    found = {}
    for name, runs in curves.items():
        pairs = list(zip(runs, curves[baseline], strict=True))
        found[name] = {
            "best": mean([last(one) for one in runs]),
            "initial": mean([one.curve[0] for one in runs]),
            "winning_rate": mean([one.winning_rate for one in runs]),
            "different": mean([float(one.different) for one in runs]),
            "evaluations": mean([float(one.evaluations[-1]) for one in runs]),
            "minus_random": mean([difference(last(one), last(other)) for one, other in pairs]),
            "minus_random_at_equal_evaluations": mean([at_equal(one, other) for one, other in pairs]),
        }
    return found


def last(one: EvolutionResult) -> float | None:
    return one.curve[-1]


def at_equal(one: EvolutionResult, other: EvolutionResult) -> float | None:
    """Difference after as many formulas as the more sparing of the two has scored."""
    number = min(one.evaluations[-1], other.evaluations[-1])
    return difference(after(one, number), after(other, number))


def after(one: EvolutionResult, evaluations: int) -> float | None:
    """Best fitness when so many different formulas have been scored."""
    return one.curve[int(np.searchsorted(one.evaluations, evaluations, side="left"))]


def difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
