"""What the numbers of a proxy mean, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from archwright.statistics.bootstrap import Estimate

NOTHING = Estimate(None, None, None)


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on: values with their 95 % intervals."""

    overall: Estimate
    """Spearman with the truth."""
    within: Estimate = NOTHING
    """Mean Spearman inside the cells, where what is known is equal or nearly so, given what still varies of it."""
    minus_known: Estimate = NOTHING
    """Spearman minus that of what is known: of depth and width, or of size."""
    partial: Estimate = NOTHING
    """Spearman given the parameters."""
    same_as_known: bool = False
    """Whether the proxy orders the rows exactly as what is known does."""

    cells_tell: bool = True
    """Whether there are cells with enough rows; then a score without a value inside them is a function of the known."""

    @property
    def predicts(self) -> bool:
        return positive(self.overall) or self.adds

    @property
    def adds(self) -> bool:
        """Positive inside the cells and not against the partial correlation.

        Where cells are too small to tell: better than what is known, and positive given the parameters.
        """
        if self.within.value is not None:
            return positive(self.within) and (self.partial.value is None or self.partial.value > 0)
        return not self.cells_tell and positive(self.minus_known) and positive(self.partial)


def positive(of: Estimate) -> bool:
    """Whether the whole interval is above zero."""
    return of.low is not None and of.low > 0


def negative(of: Estimate) -> bool:
    """Whether the whole interval is below zero."""
    return of.high is not None and of.high < 0


RULES: tuple[tuple[str, Callable[[Evidence], bool]], ...] = (
    ("cannot be judged", lambda found: found.overall.low is None),
    ("noise", lambda found: not found.predicts and not negative(found.overall)),
    ("ranks the wrong way round", lambda found: not found.predicts),
    ("only restates {known}", lambda found: found.same_as_known),
    ("worse than {known}, adds within cells", lambda found: found.adds and negative(found.minus_known)),
    ("adds information beyond {known}", lambda found: found.adds),
    ("only restates parameters", lambda found: found.partial.low is not None and not positive(found.partial)),
    ("only restates {known}", lambda found: True),
)
"""The first rule that holds is the verdict.

At 95 % one useless proxy in forty looks useful: read a single "adds" among many proxies with that in mind.
"""


def verdict(found: Evidence, *, known: str = "depth and width") -> str:
    """The verdict in words; `known` names what everybody knows to matter: "depth and width", or "size" for RNNs."""
    words = next(words for words, holds in RULES if holds(found))
    return words.format(known=known)
