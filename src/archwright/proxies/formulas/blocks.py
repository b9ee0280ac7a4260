"""The unary operations on a block that fits the cache of a processor, into memory that is used again and again.

A block holds whole columns (all of dim 0 for some of the rest), so that softmax needs nothing beyond it. What needs the
whole tensor (`zscore`, `minmax`) is given its moments, found before.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from archwright.proxies.formulas.moments import SMALL, Moments
from archwright.proxies.formulas.operations import GUARD

BLOCK = 1 << 16
"""Numbers: 256 KB, so that a block and what is made of it stay in a second-level cache."""


LIMITS = {torch.float32: 80.0, torch.float64: 700.0}
"""Exponents that are safe in both directions."""


def blocks(tensor: Tensor) -> Iterator[Tensor]:
    """Of dim 0 x some of the rest each, next to one another in memory."""
    matrix = tensor.reshape(len(tensor), -1)
    columns = max(1, BLOCK // len(tensor))
    for start in range(0, matrix.shape[1], columns):
        yield matrix[:, start : start + columns].contiguous()


def sums(y: Tensor, work: Tensor, found: Moments) -> None:
    if found.shift is None:
        found.shift = finite_or_zero(float(y.mean()))
    flat = torch.sub(y, found.shift, out=work).view(-1)
    found.number += y.numel()
    found.first += float(flat.sum())
    found.second += float(flat.dot(flat))


def exact_sums(y: Tensor, work: Tensor, found: Moments) -> None:
    """With the first moment in double: the mean of weights or gradients is what is left when nearly all cancels."""
    before = found.first
    sums(y, work, found)
    found.first = before + float(y.sum(dtype=torch.float64)) - (found.shift or 0.0) * y.numel()


def finite_or_zero(x: float) -> float:
    return x if math.isfinite(x) else 0.0


def absolutes(y: Tensor, work: Tensor, found: Moments) -> None:
    found.absolute += float(torch.abs(y, out=work).sum())


def positives(y: Tensor, work: Tensor, found: Moments) -> None:
    found.positive += float(torch.clamp_min(y, 0, out=work).sum())


def extremes(y: Tensor, work: Tensor, found: Moments) -> None:
    found.low = min(found.low, float(y.amin(0).amin()))
    found.high = max(found.high, float(y.amax(0).amax()))


def logarithms(y: Tensor, work: Tensor, found: Moments) -> None:
    work.copy_(y)
    torch.log(torch.threshold_(work, 0, 1), out=work)
    found.log += float(work.sum())
    found.abslog += float(work.abs_().sum())


def exponentials(y: Tensor, work: Tensor, found: Moments) -> None:
    """Without the numbers for which a processor takes twenty times as long: those whose exponential is no number."""
    limit = LIMITS[y.dtype]
    highest = y.amax(0)
    if not float(highest.amax()) < limit:
        found.exp = math.inf
        found.logsumexp += float(shifted(y, highest, work).sum())
        return
    columns = torch.clamp_min(y, -limit, out=work).exp_().sum(0)
    found.exp += float(columns.sum())
    if float(columns.amin()) < SMALL:
        columns.copy_(shifted(y, highest, work))
    else:
        columns.log_()
    found.logsumexp += float(columns.sum())


def shifted(y: Tensor, highest: Tensor, work: Tensor) -> Tensor:
    """log(sum(exp)) of every column, its largest number taken out."""
    columns = torch.sub(y, highest, out=work).clamp_min_(-LIMITS[y.dtype]).exp_().sum(0)
    return columns.log_().add_(highest)


def sigmoids(y: Tensor, work: Tensor, found: Moments) -> None:
    limit = LIMITS[y.dtype]
    found.sigmoid += float(torch.clamp(y, -limit, limit, out=work).sigmoid_().sum())


def roots(y: Tensor, work: Tensor, found: Moments) -> None:
    found.sqrt += float(root(y, work).sum())


def root(y: Tensor, out: Tensor) -> Tensor:
    """Roots of zeros are slow: the smallest number stands for them, and its root is taken off again."""
    smallest = torch.finfo(y.dtype).tiny  # an even power of two: its root is exact
    return torch.clamp_min(y, smallest, out=out).sqrt_().sub_(math.sqrt(smallest))


def reciprocals(y: Tensor, work: Tensor, found: Moments) -> None:
    rows = torch.add(y, GUARD, out=work).reciprocal_().sum(1)
    found.inverse += float(rows.sum(dtype=torch.float64))


Measure = Callable[[Tensor, Tensor, Moments], None]

MEASURES: dict[str, tuple[Measure, ...]] = {
    "abs": (absolutes,),
    "l1": (absolutes,),
    "relu": (positives,),
    "minmax": (extremes,),
    "log": (logarithms,),
    "abslog": (logarithms,),
    "exp": (exponentials,),
    "log_softmax": (exponentials,),
    "sigmoid": (sigmoids,),
    "sqrt": (roots,),
    "inverse": (reciprocals,),
}
"""What has to be summed, besides first and second moments, for the mean of an operation's result."""

MEANS: dict[str, Callable[[Moments], float]] = {
    "log": lambda m: m.log / m.number,
    "abslog": lambda m: m.abslog / m.number,
    "abs": lambda m: m.absolute / m.number,
    "square": lambda m: m.square,
    "exp": lambda m: m.exp / m.number,
    "zscore": lambda m: 0.0,
    "relu": lambda m: m.positive / m.number,
    "inverse": lambda m: m.inverse / m.number,
    "frobenius": lambda m: math.sqrt(m.square * m.number),
    "norm_sum": lambda m: m.mean,
    "l1": lambda m: m.absolute,
    "softmax": lambda m: 1 / m.rows,
    "sigmoid": lambda m: m.sigmoid / m.number,
    "log_softmax": lambda m: m.mean - m.logsumexp * m.rows / m.number if m.rows > 1 else m.mean * 0,
    "sqrt": lambda m: m.sqrt / m.number,
    "negate": lambda m: -m.mean,
    "minmax": lambda m: (m.mean - m.low) / (m.high - m.low) if m.high > m.low else 0.0,
    "average": lambda m: m.mean,
    "std": lambda m: m.std,
    "no_op": lambda m: m.mean,
}
"""Mean of what an operation gives, from the moments of what it is given."""


def logarithm(x: Tensor, out: Tensor, found: Moments) -> Tensor:
    out.copy_(x)
    return torch.log(torch.threshold_(out, 0, 1), out=out)


def standardised(x: Tensor, out: Tensor, found: Moments) -> Tensor:
    spread = found.std
    return torch.sub(x, found.mean, out=out).mul_(1 / spread if spread else 0.0)


def scaled(x: Tensor, out: Tensor, found: Moments) -> Tensor:
    width = found.high - found.low
    return torch.sub(x, found.low, out=out).mul_(1 / width if width else 0.0)


STEPS: dict[str, Callable[[Tensor, Tensor, Moments], Tensor]] = {
    "log": logarithm,
    "abslog": lambda x, out, m: logarithm(x, out, m).abs_(),
    "abs": lambda x, out, m: torch.abs(x, out=out),
    "square": lambda x, out, m: torch.mul(x, x, out=out),
    "exp": lambda x, out, m: torch.exp(x, out=out),
    "zscore": standardised,
    "relu": lambda x, out, m: torch.clamp_min(x, 0, out=out),
    "inverse": lambda x, out, m: torch.add(x, GUARD, out=out).reciprocal_(),
    "softmax": lambda x, out, m: torch.softmax(x, 0, out=out),
    "sigmoid": lambda x, out, m: torch.sigmoid(x, out=out),
    "log_softmax": lambda x, out, m: torch.log_softmax(x, 0, out=out),
    "sqrt": lambda x, out, m: root(x, out),
    "negate": lambda x, out, m: torch.neg(x, out=out),
    "minmax": scaled,
}
"""Operations that give a tensor, into `out`."""

OF_THE_WHOLE: dict[str, tuple[Measure, ...]] = {"zscore": (), "minmax": (extremes,)}
"""Operations that need the moments of the whole tensor, and which of them besides the first two."""
