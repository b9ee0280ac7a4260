"""What a formula is made of: the 21 unary and four binary operations of LPZero's Table 2, with guards.

Everything is written with methods of tensors, so that reading or printing a formula loads no torch. Softmax and
log-softmax go over dim 0; what comes out as one number stays one in the rest of the chain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

GUARD = 1e-9
"""Added before a reciprocal."""


@dataclass(frozen=True)
class Unary:
    """One number, or one tensor, of a tensor."""

    number: str
    """As in Table 2."""
    symbol: str
    latex: str
    """x stands where the operand goes."""
    python: str
    """Expression in x."""
    apply: "Callable[[torch.Tensor], torch.Tensor]"
    scalar: bool = False
    """Makes one number of a tensor."""
    nonnegative: bool = False
    """Never gives a number below zero."""


@dataclass(frozen=True)
class Binary:
    """One number of two."""

    number: str
    symbol: str
    latex: str
    python: str
    """Expression in x and y."""
    apply: Callable[[float, float], float]
    """Also of arrays, element by element."""
    commutes: bool


def logarithm(x: "torch.Tensor") -> "torch.Tensor":
    """0 where x is not above zero; what is no number stays so."""
    return x.masked_fill(x <= 0, 1).log()


def standardised(x: "torch.Tensor") -> "torch.Tensor":
    """(x - mean) / standard deviation; 0 where all are equal."""
    return (x - x.mean()) / spread(x) if bool(x.max() > x.min()) else x * 0


def scaled(x: "torch.Tensor") -> "torch.Tensor":
    """From 0 at the smallest to 1 at the largest; 0 where all are equal."""
    low, high = x.min(), x.max()
    return (x - low) / (high - low) if bool(high > low) else x * 0


def spread(x: "torch.Tensor") -> "torch.Tensor":
    """Standard deviation, divided by N; exactly 0 where all are equal."""
    return x.std(correction=0) if bool(x.max() > x.min()) else x.mean() * 0


UNARY: dict[str, Unary] = {
    "log": Unary("f01", "log", r"\log(x)", "x.masked_fill(x <= 0, 1).log()", logarithm),
    "abslog": Unary(
        "f02",
        "|log|",
        r"\left|\log(x)\right|",
        "x.masked_fill(x <= 0, 1).log().abs()",
        lambda x: logarithm(x).abs(),
        nonnegative=True,
    ),
    "abs": Unary("f03", "|.|", r"\left|x\right|", "x.abs()", lambda x: x.abs(), nonnegative=True),
    "square": Unary("f04", "(.)^2", r"\left(x\right)^2", "x.square()", lambda x: x.square(), nonnegative=True),
    "exp": Unary("f05", "e^(.)", "e^{x}", "x.exp()", lambda x: x.exp(), nonnegative=True),
    "zscore": Unary(
        "f06",
        "z",
        r"\operatorname{z}(x)",
        "(x - x.mean()) / x.std(correction=0) if x.max() > x.min() else x * 0",
        standardised,
    ),
    "relu": Unary("f07", "ReLU", r"\operatorname{ReLU}(x)", "x.relu()", lambda x: x.relu(), nonnegative=True),
    "inverse": Unary("f08", "1/(.)", r"\frac{1}{x}", f"1 / (x + {GUARD})", lambda x: 1 / (x + GUARD)),
    "frobenius": Unary(
        "f09", "||.||_F", r"\left\|x\right\|_F", "x.norm()", lambda x: x.norm(), scalar=True, nonnegative=True
    ),
    "norm_sum": Unary(
        "f10",
        "norm_sum",
        r"\operatorname{norm\_sum}(x)",
        "x.sum() / x.numel()",
        lambda x: x.sum() / x.numel(),
        scalar=True,
    ),
    "l1": Unary(
        "f11", "||.||_1", r"\left\|x\right\|_1", "x.abs().sum()", lambda x: x.abs().sum(), scalar=True, nonnegative=True
    ),
    "softmax": Unary(
        "f12", "softmax", r"\operatorname{softmax}(x)", "x.softmax(0)", lambda x: x.softmax(0), nonnegative=True
    ),
    "sigmoid": Unary(
        "f13", "sigmoid", r"\operatorname{sigmoid}(x)", "x.sigmoid()", lambda x: x.sigmoid(), nonnegative=True
    ),
    "log_softmax": Unary(
        "f14", "log_softmax", r"\log\operatorname{softmax}(x)", "x.log_softmax(0)", lambda x: x.log_softmax(0)
    ),
    "sqrt": Unary(
        "f15", "sqrt", r"\sqrt{x}", "x.clamp_min(0).sqrt()", lambda x: x.clamp_min(0).sqrt(), nonnegative=True
    ),
    "negate": Unary("f16", "-(.)", "-x", "-x", lambda x: -x),
    "minmax": Unary(
        "f17",
        "min-max",
        r"\operatorname{minmax}(x)",
        "(x - x.min()) / (x.max() - x.min()) if x.max() > x.min() else x * 0",
        scaled,
        nonnegative=True,
    ),
    "average": Unary("f18", "mean", r"\overline{x}", "x.mean()", lambda x: x.mean(), scalar=True),
    "std": Unary(
        "f19",
        "std",
        r"\sigma(x)",
        "x.std(correction=0) if x.max() > x.min() else x.mean() * 0",
        spread,
        scalar=True,
        nonnegative=True,
    ),
    "no_op": Unary("f20", "no_op", "x", "x", lambda x: x),
    "prune": Unary("f21", "prune", r"\varnothing(x)", "x * float('nan')", lambda x: x * float("nan")),
}
"""Name to operation; `prune` takes its branch out of the formula and is never evaluated."""

BINARY: dict[str, Binary] = {
    "add": Binary("g01", "+", "x + y", "x + y", lambda x, y: x + y, commutes=True),
    "sub": Binary("g02", "-", "x - y", "x - y", lambda x, y: x - y, commutes=False),
    "mul": Binary("g03", "*", r"x \times y", "x * y", lambda x, y: x * y, commutes=True),
    "hadamard": Binary("g04", ".*", r"x \odot y", "x * y", lambda x, y: x * y, commutes=True),
}
"""Name to operation; on the two numbers of a layer the last two are the same."""
