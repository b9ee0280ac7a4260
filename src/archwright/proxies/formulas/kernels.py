"""Tensors in blocks that fit the cache of a processor: what is summed of them, and operations that write into a buffer.

A block holds whole columns (all of dim 0 for some of the rest), so that softmax needs nothing beyond it. What needs the
whole tensor (`zscore`, `minmax`) is given its moments, summed in an earlier pass over all blocks. Which kernel belongs
to which operation is said in `operations`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archwright.proxies.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 1 << 16
"""Numbers: 256 KB, so that a block and what is computed from it stay in a second-level cache."""
SMALL = 1e-30
"""What single precision gives below this may be too small for it."""
FLAT = 1e-3
"""Share of the mean below which a spread has no more than four digits in single precision."""
GUARD = 1e-9
"""Added before a reciprocal."""


@dataclass
class Moments:
    """Sums over one tensor, added up block by block in double precision. What no operation asks for stays zero."""

    rows: int
    """Length of dim 0."""
    resolution: float
    """Relative rounding error of the numbers."""
    number: int = 0
    shift: float | None = None
    """Subtracted before first and second moments are summed: near the mean, so that nothing cancels."""
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
    def squares_out_of_range(self) -> bool:
        """Whether the squares may have been too small or too large for single precision."""
        return not SMALL * self.number <= self.second < math.inf


Accumulate = Callable[["Tensor", "Tensor", Moments], None]
"""(block, scratch memory of its shape, moments): adds what the block has to the moments."""
Kernel = Callable[["Tensor", "Tensor", Moments], "Tensor"]
"""(block, memory for the result, moments of the whole tensor): the operation on the block."""


def blocks(tensor: Tensor) -> Iterator[Tensor]:
    """Of dim 0 x some of the rest each, contiguous in memory."""
    matrix = tensor.reshape(len(tensor), -1)
    columns = max(1, BLOCK // len(tensor))
    for start in range(0, matrix.shape[1], columns):
        yield matrix[:, start : start + columns].contiguous()


def exponent_limit(y: Tensor) -> float:
    """Exponents up to this are safe in both directions."""
    return {torch.float32: 80.0, torch.float64: 700.0}[y.dtype]


def add_moments(y: Tensor, work: Tensor, moments: Moments) -> None:
    """First and second moments, which every operation may need."""
    if moments.shift is None:
        mean = float(y.mean())
        moments.shift = mean if math.isfinite(mean) else 0.0
    flat = torch.sub(y, moments.shift, out=work).view(-1)
    moments.number += y.numel()
    moments.first += float(flat.sum())
    moments.second += float(flat.dot(flat))


def add_exact_moments(y: Tensor, work: Tensor, moments: Moments) -> None:
    """With the first moment in double: the mean of weights or gradients is what is left when nearly all cancels."""
    before = moments.first
    add_moments(y, work, moments)
    moments.first = before + float(y.sum(dtype=torch.float64)) - (moments.shift or 0.0) * y.numel()


def add_absolutes(y: Tensor, work: Tensor, moments: Moments) -> None:
    moments.absolute += float(torch.abs(y, out=work).sum())


def add_positives(y: Tensor, work: Tensor, moments: Moments) -> None:
    moments.positive += float(torch.clamp_min(y, 0, out=work).sum())


def add_extremes(y: Tensor, work: Tensor, moments: Moments) -> None:
    moments.low = min(moments.low, float(y.amin(0).amin()))
    moments.high = max(moments.high, float(y.amax(0).amax()))


def add_logarithms(y: Tensor, work: Tensor, moments: Moments) -> None:
    logarithm_into(y, work)
    moments.log += float(work.sum())
    moments.abslog += float(work.abs_().sum())


def add_exponentials(y: Tensor, work: Tensor, moments: Moments) -> None:
    """Without the numbers for which a processor takes twenty times as long: those whose exponential is no number."""
    limit = exponent_limit(y)
    highest = y.amax(0)
    if not float(highest.amax()) < limit:
        moments.exp = math.inf
        moments.logsumexp += float(log_sum_exp(y, highest, work).sum())
        return
    columns = torch.clamp_min(y, -limit, out=work).exp_().sum(0)
    moments.exp += float(columns.sum())
    if float(columns.amin()) < SMALL:
        columns.copy_(log_sum_exp(y, highest, work))
    else:
        columns.log_()
    moments.logsumexp += float(columns.sum())


def log_sum_exp(y: Tensor, highest: Tensor, work: Tensor) -> Tensor:
    """log(sum(exp)) of every column, its largest number taken out."""
    columns = torch.sub(y, highest, out=work).clamp_min_(-exponent_limit(y)).exp_().sum(0)
    return columns.log_().add_(highest)


def add_sigmoids(y: Tensor, work: Tensor, moments: Moments) -> None:
    limit = exponent_limit(y)
    moments.sigmoid += float(torch.clamp(y, -limit, limit, out=work).sigmoid_().sum())


def add_roots(y: Tensor, work: Tensor, moments: Moments) -> None:
    moments.sqrt += float(root_into(y, work).sum())


def add_reciprocals(y: Tensor, work: Tensor, moments: Moments) -> None:
    rows = torch.add(y, GUARD, out=work).reciprocal_().sum(1)
    moments.inverse += float(rows.sum(dtype=torch.float64))


def logarithm_into(x: Tensor, out: Tensor) -> Tensor:
    """0 where x is not above zero."""
    out.copy_(x)
    return torch.log(torch.threshold_(out, 0, 1), out=out)


def root_into(y: Tensor, out: Tensor) -> Tensor:
    """Roots of zeros are slow: the smallest number stands for them, and its root is taken off again."""
    smallest = torch.finfo(y.dtype).tiny  # an even power of two: its root is exact
    return torch.clamp_min(y, smallest, out=out).sqrt_().sub_(math.sqrt(smallest))


def standardise_into(x: Tensor, out: Tensor, moments: Moments) -> Tensor:
    spread = moments.std
    return torch.sub(x, moments.mean, out=out).mul_(1 / spread if spread else 0.0)


def scale_into(x: Tensor, out: Tensor, moments: Moments) -> Tensor:
    width = moments.high - moments.low
    return torch.sub(x, moments.low, out=out).mul_(1 / width if width else 0.0)


# An operation may fix moments of its result: they replace the sums, as noise around a constant must not become a rank.


def fix_zscore(after: Moments, before: Moments) -> None:
    """A z-score has mean 0 and variance 1."""
    if before.std:
        after.shift, after.first, after.second = 0.0, 0.0, float(after.number)


def fix_shares(after: Moments, before: Moments) -> None:
    """Every column of a softmax sums to 1."""
    after.absolute = after.positive = after.number / after.rows
    after.first = (1 / after.rows - (after.shift or 0.0)) * after.number


def fix_range(after: Moments, before: Moments) -> None:
    """Min-max scaling ends at 0 and 1."""
    if before.high > before.low:
        after.low, after.high = 0.0, 1.0
