"""What is known of a whole tensor after walking through it block by block."""

import math
from collections.abc import Callable
from dataclasses import dataclass

SMALL = 1e-30
"""What single precision gives below this may be too small for it."""
FLAT = 1e-3
"""Share of the mean below which a spread has no more than four digits in single precision."""


@dataclass
class Moments:
    """Of one tensor, added up block by block in double precision. What was not asked for is zero."""

    rows: int
    """Length of dim 0."""
    resolution: float
    """Relative rounding error of the numbers."""
    number: int = 0
    shift: float | None = None
    """Taken off before first and second moments are summed: near the mean, so that nothing cancels."""
    first: float = 0.0
    second: float = 0.0
    absolute: float = 0.0
    positive: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    log: float = 0.0
    abslog: float = 0.0
    exp: float = 0.0
    logsumexp: float = 0.0
    """Over dim 0, summed over columns."""
    sigmoid: float = 0.0
    sqrt: float = 0.0
    inverse: float = 0.0

    @property
    def mean(self) -> float:
        return (self.shift or 0.0) + self.first / self.number

    @property
    def square(self) -> float:
        """Mean of the squares."""
        shift = self.shift or 0.0
        return (self.second + 2 * shift * self.first) / self.number + shift * shift

    @property
    def std(self) -> float:
        """Zero where all differences are rounding."""
        centre = self.first / self.number
        variance = self.second / self.number - centre * centre
        rounding = 4 * self.resolution * self.mean
        if math.isnan(variance):
            return math.nan
        return math.sqrt(variance) if variance > rounding * rounding else 0.0

    @property
    def flat(self) -> bool:
        """Whether the spread is so small beside the mean that single precision has lost much of it."""
        return not self.std > FLAT * abs(self.mean)

    @property
    def strained(self) -> bool:
        """Whether the squares may have been too small or too large for single precision."""
        return not SMALL * self.number <= self.second < math.inf


def exact(found: Moments, before: Moments, name: str) -> None:
    """Moments that an operation fixes, without their rounding: noise around a constant must not become a rank."""
    FIXED.get(name, nothing)(found, before)


def nothing(found: Moments, before: Moments) -> None:
    """Most operations fix none."""


def standard(found: Moments, before: Moments) -> None:
    if before.std:
        found.shift, found.first, found.second = 0.0, 0.0, float(found.number)


def shares(found: Moments, before: Moments) -> None:
    found.absolute = found.positive = found.number / found.rows
    found.first = (1 / found.rows - (found.shift or 0.0)) * found.number


def between(found: Moments, before: Moments) -> None:
    if before.high > before.low:
        found.low, found.high = 0.0, 1.0


FIXED: dict[str, Callable[[Moments, Moments], None]] = {"zscore": standard, "softmax": shares, "minmax": between}
