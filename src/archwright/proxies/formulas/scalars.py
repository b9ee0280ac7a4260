"""The unary operations on one number, in double precision: what becomes of a chain once it is no tensor any more."""

import math
from collections.abc import Callable, Iterable

from archwright.proxies.formulas.operations import GUARD


def exponential(x: float) -> float:
    return math.exp(x) if not x > 709.7 else math.inf


def logarithm(x: float) -> float:
    return 0.0 if x <= 0 else math.log(x)


def inverse(x: float) -> float:
    return 1 / (x + GUARD) if x != -GUARD else math.inf


def sigmoid(x: float) -> float:
    return 1 / (1 + exponential(-x))


def zero(x: float) -> float:
    """One number has no spread; what is no number has none either, and stays so."""
    return abs(x * 0)


def one(x: float) -> float:
    return 1 + zero(x)


def itself(x: float) -> float:
    return x


SCALAR: dict[str, Callable[[float], float]] = {
    "log": logarithm,
    "abslog": lambda x: abs(logarithm(x)),
    "abs": abs,
    "square": lambda x: x * x,
    "exp": exponential,
    "zscore": zero,
    "relu": lambda x: max(x, 0.0),
    "inverse": inverse,
    "frobenius": abs,
    "norm_sum": itself,
    "l1": abs,
    "softmax": one,
    "sigmoid": sigmoid,
    "log_softmax": zero,
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "negate": lambda x: -x,
    "minmax": zero,
    "average": itself,
    "std": zero,
    "no_op": itself,
}
"""All but prune, which is no number."""


def through(x: float, chain: Iterable[str]) -> float:
    """The number after the operations, by the rules of floating point: 1 / (1 + infinity) is zero."""
    for name in chain:
        x = SCALAR[name](x)
    return x
