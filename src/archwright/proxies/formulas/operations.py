"""What a formula is made of: the 21 unary and four binary operations of LPZero's Table 2, with guards.

One record holds everything about an operation: how it is written, how it acts on a tensor, on a number and on blocks of
a large tensor, and the algebra that `simplification` uses. Softmax and log-softmax go over dim 0; what comes out as one
number stays one in the rest of the chain. Reading or printing a formula loads no torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archwright.proxies.formulas import kernels
from archwright.proxies.formulas.kernels import GUARD, Accumulate, Kernel, Moments
from archwright.proxies.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

STATISTICS_REVISION = 1
"""Of the numbers that operations give: raised when a change of the code changes them, so that no score of a formula and
no statistic from before is read from disk."""

Chain = tuple[str, ...]
"""Names of unary operations, the first one applied first."""


@dataclass(frozen=True, kw_only=True)
class UnaryOperation:
    """One number, or one tensor, of a tensor."""

    number: str
    """As in Table 2."""
    latex: str
    """x stands where the operand goes."""
    python: str
    """Expression in x."""
    apply: Callable[[Tensor], Tensor]
    """The definition, on a whole tensor."""
    of_number: Callable[[float], float]
    """The same on one number in double precision, by the rules of floating point: 1 / (1 + infinity) is zero."""

    mean: Callable[[Moments], float]
    """Mean of the result, from the moments of the operand."""
    sums: tuple[Accumulate, ...] = ()
    """What `mean` needs besides first and second moments."""
    kernel: Kernel | None = None
    """The operation on a block; None for those that give one number, and for those that never stay in a chain."""
    whole: tuple[Accumulate, ...] | None = None
    """What `kernel` needs of the whole tensor besides first and second moments; None where it needs nothing."""
    fix: Callable[[Moments, Moments], None] | None = None
    """(moments of the result, of the operand): replaces moments that the operation fixes."""
    differences: bool = False
    """Looks at differences between numbers, which single precision may lose."""
    squares: bool = False
    """Needs squares, which may be too small or too large for single precision."""

    scalar: bool = False
    """Makes one number of a tensor."""
    sign: Callable[[int], int] = lambda sign: 0
    """Sign of the result from that of the operand: 1 never below zero, -1 never above, 0 either."""
    magnitude: bool = False
    """Depends on absolute values alone."""
    zero_below_zero: bool = False
    """Gives zero for whatever is not above zero."""
    constant_of_number: float | None = None
    """What it gives for any single number, which has no spread."""
    same_of_number: Chain | None = None
    """What it amounts to on a single number."""
    synonym: Chain | None = None
    """The chain that does the same to any tensor."""

    @property
    def nonnegative(self) -> bool:
        """Never gives a number below zero."""
        return self.sign(0) > 0


@dataclass(frozen=True, kw_only=True)
class BinaryOperation:
    """One number of two."""

    number: str
    symbol: str
    latex: str
    """x and y stand where the operands go."""
    python: str
    """Expression in x and y."""
    apply: Callable[[float, float], float]
    """Also of arrays, element by element."""
    commutes: bool
    synonym: str | None = None
    """The operation that gives the same."""
    negated_right: str | None = None
    """What a minus sign on the right operand makes of it."""


def always(sign: int) -> Callable[[int], int]:
    return lambda _: sign


def logarithm(x: Tensor) -> Tensor:
    """0 where x is not above zero; NaN stays NaN."""
    return x.masked_fill(x <= 0, 1).log()


def scale(x: Tensor) -> Tensor:
    """From 0 at the smallest to 1 at the largest; 0 where all are equal."""
    low, high = x.min(), x.max()
    return (x - low) / (high - low) if bool(high > low) else x * 0


def spread(x: Tensor) -> Tensor:
    """Standard deviation, divided by N; exactly 0 where all are equal."""
    return x.std(correction=0) if bool(x.max() > x.min()) else x.mean() * 0


def log_of_number(x: float) -> float:
    return 0.0 if x <= 0 else math.log(x)


def exp_of_number(x: float) -> float:
    return math.exp(x) if not x > 709.7 else math.inf


def zero_of_number(x: float) -> float:
    """One number has no spread; NaN and infinity have none either, and become NaN."""
    return abs(x * 0)


UNARY: dict[str, UnaryOperation] = {
    "log": UnaryOperation(
        number="f01", latex=r"\log(x)", python="x.masked_fill(x <= 0, 1).log()",
        apply=logarithm, of_number=log_of_number,
        mean=lambda m: m.log / m.number, sums=(kernels.add_logarithms,),
        kernel=lambda x, out, m: kernels.logarithm_into(x, out),
        zero_below_zero=True,
    ),
    "abslog": UnaryOperation(
        number="f02", latex=r"\left|\log(x)\right|", python="x.masked_fill(x <= 0, 1).log().abs()",
        apply=lambda x: logarithm(x).abs(), of_number=lambda x: abs(log_of_number(x)),
        mean=lambda m: m.abslog / m.number, sums=(kernels.add_logarithms,),
        kernel=lambda x, out, m: kernels.logarithm_into(x, out).abs_(),
        sign=always(1), zero_below_zero=True,
    ),
    "abs": UnaryOperation(
        number="f03", latex=r"\left|x\right|", python="x.abs()",
        apply=lambda x: x.abs(), of_number=abs,
        mean=lambda m: m.absolute / m.number, sums=(kernels.add_absolutes,),
        kernel=lambda x, out, m: torch.abs(x, out=out),
        sign=always(1), magnitude=True,
    ),
    "square": UnaryOperation(
        number="f04", latex=r"\left(x\right)^2", python="x.square()",
        apply=lambda x: x.square(), of_number=lambda x: x * x,
        mean=lambda m: m.square, kernel=lambda x, out, m: torch.mul(x, x, out=out), squares=True,
        sign=always(1), magnitude=True,
    ),
    "exp": UnaryOperation(
        number="f05", latex="e^{x}", python="x.exp()",
        apply=lambda x: x.exp(), of_number=exp_of_number,
        mean=lambda m: m.exp / m.number, sums=(kernels.add_exponentials,),
        kernel=lambda x, out, m: torch.exp(x, out=out),
        sign=always(1),
    ),
    "zscore": UnaryOperation(
        number="f06", latex=r"\operatorname{z}(x)",
        python="(x - x.mean()) / x.std(correction=0) if x.max() > x.min() else x * 0",
        apply=lambda x: (x - x.mean()) / spread(x) if bool(x.max() > x.min()) else x * 0, of_number=zero_of_number,
        mean=lambda m: 0.0, kernel=kernels.standardise_into, whole=(), fix=kernels.fix_zscore, differences=True,
        squares=True,
        constant_of_number=0.0,
    ),
    "relu": UnaryOperation(
        number="f07", latex=r"\operatorname{ReLU}(x)", python="x.relu()",
        apply=lambda x: x.relu(), of_number=lambda x: max(x, 0.0),
        mean=lambda m: m.positive / m.number, sums=(kernels.add_positives,),
        kernel=lambda x, out, m: torch.clamp_min(x, 0, out=out),
        sign=always(1), zero_below_zero=True,
    ),
    "inverse": UnaryOperation(
        number="f08", latex=r"\frac{1}{x}", python=f"1 / (x + {GUARD})",
        apply=lambda x: 1 / (x + GUARD), of_number=lambda x: 1 / (x + GUARD) if x != -GUARD else math.inf,
        mean=lambda m: m.inverse / m.number, sums=(kernels.add_reciprocals,),
        kernel=lambda x, out, m: torch.add(x, GUARD, out=out).reciprocal_(),
        sign=lambda sign: max(sign, 0),  # the guard turns the smallest negative numbers positive
    ),
    "frobenius": UnaryOperation(
        number="f09", latex=r"\left\|x\right\|_F", python="x.norm()",
        apply=lambda x: x.norm(), of_number=abs,
        mean=lambda m: math.sqrt(m.square * m.number), squares=True,
        scalar=True, sign=always(1), magnitude=True, same_of_number=("abs",),
    ),
    "norm_sum": UnaryOperation(
        number="f10", latex=r"\operatorname{norm\_sum}(x)", python="x.sum() / x.numel()",
        apply=lambda x: x.sum() / x.numel(), of_number=lambda x: x,
        mean=lambda m: m.mean,
        scalar=True, synonym=("average",),
    ),
    "l1": UnaryOperation(
        number="f11", latex=r"\left\|x\right\|_1", python="x.abs().sum()",
        apply=lambda x: x.abs().sum(), of_number=abs,
        mean=lambda m: m.absolute, sums=(kernels.add_absolutes,),
        scalar=True, sign=always(1), magnitude=True, same_of_number=("abs",),
    ),
    "softmax": UnaryOperation(
        number="f12", latex=r"\operatorname{softmax}(x)", python="x.softmax(0)",
        apply=lambda x: x.softmax(0), of_number=lambda x: 1 + zero_of_number(x),
        mean=lambda m: 1 / m.rows, kernel=lambda x, out, m: torch.softmax(x, 0, out=out), fix=kernels.fix_shares,
        sign=always(1), constant_of_number=1.0,
    ),
    "sigmoid": UnaryOperation(
        number="f13", latex=r"\operatorname{sigmoid}(x)", python="x.sigmoid()",
        apply=lambda x: x.sigmoid(), of_number=lambda x: 1 / (1 + exp_of_number(-x)),
        mean=lambda m: m.sigmoid / m.number, sums=(kernels.add_sigmoids,),
        kernel=lambda x, out, m: torch.sigmoid(x, out=out),
        sign=always(1),
    ),
    "log_softmax": UnaryOperation(
        number="f14", latex=r"\log\operatorname{softmax}(x)", python="x.log_softmax(0)",
        apply=lambda x: x.log_softmax(0), of_number=zero_of_number,
        mean=lambda m: m.mean - m.logsumexp * m.rows / m.number if m.rows > 1 else m.mean * 0,
        sums=(kernels.add_exponentials,), kernel=lambda x, out, m: torch.log_softmax(x, 0, out=out),
        sign=always(-1), constant_of_number=0.0,
    ),
    "sqrt": UnaryOperation(
        number="f15", latex=r"\sqrt{x}", python="x.clamp_min(0).sqrt()",
        apply=lambda x: x.clamp_min(0).sqrt(), of_number=lambda x: math.sqrt(max(x, 0.0)),
        mean=lambda m: m.sqrt / m.number, sums=(kernels.add_roots,),
        kernel=lambda x, out, m: kernels.root_into(x, out),
        sign=always(1), zero_below_zero=True,
    ),
    "negate": UnaryOperation(
        number="f16", latex="-x", python="-x",
        apply=lambda x: -x, of_number=lambda x: -x,
        mean=lambda m: -m.mean, kernel=lambda x, out, m: torch.neg(x, out=out),
        sign=lambda sign: -sign,
    ),
    "minmax": UnaryOperation(
        number="f17", latex=r"\operatorname{minmax}(x)",
        python="(x - x.min()) / (x.max() - x.min()) if x.max() > x.min() else x * 0",
        apply=scale, of_number=zero_of_number,
        mean=lambda m: (m.mean - m.low) / (m.high - m.low) if m.high > m.low else 0.0, sums=(kernels.add_extremes,),
        kernel=kernels.scale_into, whole=(kernels.add_extremes,), fix=kernels.fix_range, differences=True,
        sign=always(1), constant_of_number=0.0,
    ),
    "average": UnaryOperation(
        number="f18", latex=r"\overline{x}", python="x.mean()",
        apply=lambda x: x.mean(), of_number=lambda x: x,
        mean=lambda m: m.mean,
        scalar=True, sign=lambda sign: sign, same_of_number=(),
    ),
    "std": UnaryOperation(
        number="f19", latex=r"\sigma(x)", python="x.std(correction=0) if x.max() > x.min() else x.mean() * 0",
        apply=spread, of_number=zero_of_number,
        mean=lambda m: m.std, differences=True, squares=True,
        scalar=True, sign=always(1), constant_of_number=0.0,
    ),
    "no_op": UnaryOperation(
        number="f20", latex="x", python="x",
        apply=lambda x: x, of_number=lambda x: x,
        mean=lambda m: m.mean,
        synonym=(),
    ),
    "prune": UnaryOperation(
        number="f21", latex=r"\varnothing(x)", python="x * float('nan')",
        apply=lambda x: x * float("nan"), of_number=lambda x: math.nan,
        mean=lambda m: math.nan,
    ),
}  # fmt: skip
"""Name to operation; `prune` takes its branch out of the formula and is never evaluated."""

BINARY: dict[str, BinaryOperation] = {
    "add": BinaryOperation(
        number="g01", symbol="+", latex="x + y", python="x + y", apply=lambda x, y: x + y, commutes=True,
        negated_right="sub",
    ),
    "sub": BinaryOperation(
        number="g02", symbol="-", latex="x - y", python="x - y", apply=lambda x, y: x - y, commutes=False,
        negated_right="add",
    ),
    "mul": BinaryOperation(
        number="g03", symbol="*", latex=r"x \times y", python="x * y", apply=lambda x, y: x * y, commutes=True
    ),
    "hadamard": BinaryOperation(
        number="g04", symbol=".*", latex=r"x \odot y", python="x * y", apply=lambda x, y: x * y, commutes=True,
        synonym="mul",
    ),
}  # fmt: skip
"""Name to operation; on the two numbers of a layer the last two are the same."""


def apply_to_number(x: float, chain: Iterable[str]) -> float:
    """The number after these operations."""
    for name in chain:
        x = UNARY[name].of_number(x)
    return x
