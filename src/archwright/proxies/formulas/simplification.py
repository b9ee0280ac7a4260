"""The canonical form of a chain: chains that give the same number on whatever tensor become one.

A chain ends in the mean that makes it one number. All rules hold exactly, guards included; where the longer chain
overflows on the way and the shorter does not, the shorter one counts. Rules, besides those in PAIRS:
- `no_op` goes, `prune` takes the whole chain with it, `norm_sum` is `average` (Table 6: equivalent);
- `abs` and `relu` go behind what is never negative (Table 6: special case); behind what is never positive `abs` is
  `negate`, and `relu`, `sqrt`, `log`, `abslog` give zero;
- of one number `average` is itself, both norms are `abs`, `softmax` is 1, and `std`, `zscore`, `minmax` and
  `log_softmax` are 0; constants are worked out;
- of a whole number that is not negative `abslog` is `log`: both are zero at zero and one;
- the last `average` goes, as the mean follows anyway, also before a last `negate`;
- the mean square of a `zscore` is its `std`;
- the mean of a `zscore` is 0, that of a `softmax` over n rows is 1/n: what came before does not matter.
Zero is written as `zscore` and one as `average, softmax`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from archwright.proxies.formulas.operations import UNARY, Chain, apply_to_number

PRUNED: Chain = ("prune",)
ZERO: Chain = ("zscore",)

PAIRS: dict[Chain, Chain] = {
    ("exp", "log"): (),
    ("exp", "abslog"): ("abs",),
    ("square", "sqrt"): ("abs",),
    ("sqrt", "square"): ("relu",),
    ("square", "l1"): ("frobenius", "square"),
    ("log", "abs"): ("abslog",),
    ("relu", "log"): ("log",),
    ("relu", "abslog"): ("abslog",),
    ("relu", "sqrt"): ("sqrt",),
    ("softmax", "log"): ("log_softmax",),
    ("softmax", "abslog"): ("log_softmax", "negate"),
    ("log_softmax", "exp"): ("softmax",),
    ("log_softmax", "softmax"): ("softmax",),
    ("log_softmax", "log_softmax"): ("log_softmax",),
    ("zscore", "zscore"): ("zscore",),
    ("minmax", "minmax"): ("minmax",),
    ("minmax", "zscore"): ("zscore",),
    ("zscore", "minmax"): ("minmax",),
    ("negate", "negate"): (),
    ("negate", "zscore"): ("zscore", "negate"),
    ("negate", "average"): ("average", "negate"),
    ("negate", "std"): ("std",),
    **{("negate", name): (name,) for name, unary in UNARY.items() if unary.magnitude},
    **{("abs", name): (name,) for name, unary in UNARY.items() if unary.magnitude and name != "abs"},
    **{("abslog", name): ("log", name) for name, unary in UNARY.items() if unary.magnitude and name != "abs"},
}
"""Two operations in a row to what is the same; for numbers as for tensors, but for those that number() replaces."""

ENDS: tuple[Chain, ...] = ((), ("negate",))
"""What may come between an operation and the mean at the end so that it still acts on the mean alone."""


@dataclass(frozen=True)
class Operand:
    """What is known of the input of a chain."""

    nonnegative: bool = False
    scalar: bool = False
    integer: bool = False

    def sign(self, chain: Chain) -> int:
        """1 where what the chain gives is never below zero, -1 never above, 0 where either may be."""
        if not chain:
            return int(self.nonnegative)
        if self.integer and chain == ("log",):
            return 1
        return UNARY[chain[-1]].sign(self.sign(chain[:-1]))

    def number(self, chain: Chain) -> bool:
        """Whether the chain gives one number rather than a tensor."""
        return self.scalar or any(UNARY[name].scalar for name in chain)


def replace_pair(chain: Chain, operand: Operand) -> Chain:
    for place in range(len(chain) - 1):
        same = PAIRS.get(chain[place : place + 2])
        if same is not None:
            return chain[:place] + same + chain[place + 2 :]
    return chain


def use_sign(chain: Chain, operand: Operand) -> Chain:
    if operand.integer and chain[:1] == ("abslog",):
        return ("log", *chain[1:])
    for place, name in enumerate(chain):
        sign = operand.sign(chain[:place])
        if sign > 0 and name in ("abs", "relu"):
            return chain[:place] + chain[place + 1 :]
        if sign < 0 and name == "abs":
            return (*chain[:place], "negate", *chain[place + 1 :])
    return chain


def simplify_on_number(chain: Chain, operand: Operand) -> Chain:
    for place, name in enumerate(chain):
        same = UNARY[name].same_of_number
        if same is not None and operand.number(chain[:place]):
            return chain[:place] + same + chain[place + 1 :]
    return chain


def fold_constant(chain: Chain, operand: Operand) -> Chain:
    """Constants worked out: zero and one written in one way, others from there."""
    for place, name in enumerate(chain):
        number, rest, unary = operand.number(chain[:place]), chain[place + 1 :], UNARY[name]
        if number and unary.constant_of_number is not None:
            return constant(unary.constant_of_number, rest, operand)
        zero = name in ZERO or (operand.sign(chain[:place]) < 0 and unary.zero_below_zero)
        if zero and (number or rest in ENDS or rest[:1] == ("average",)):
            return constant(0.0, rest, operand)
    return chain


def constant(value: float, rest: Chain, operand: Operand) -> Chain:
    """The chain that stands for the number that `rest` makes of zero or one."""
    start: Chain = () if operand.scalar else ("average",)
    spelling = {0.0: (*start, "zscore"), 1.0: (*start, "softmax")}
    chain = spelling[value]
    for name in rest:
        value = apply_to_number(value, [name])
        chain = spelling.get(value, (*chain, name))
    return ZERO if value == 0 else chain


def drop_last_mean(chain: Chain, operand: Operand) -> Chain:
    """The mean comes anyway."""
    for end in ENDS:
        if chain[len(chain) - len(end) - 1 :] == ("average", *end):
            return chain[: len(chain) - len(end) - 1] + end
    return chain


def drop_before_softmax(chain: Chain, operand: Operand) -> Chain:
    """Sums over a softmax do not depend on what it was taken of."""
    for place, name in enumerate(chain):
        rest = chain[place + 1 :]
        summed = rest in ENDS or rest[:1] in (("average",), ("l1",))
        if place and name == "softmax" and summed and not operand.number(chain[:place]):
            return chain[place:]
    return chain


def replace_square_of_zscore(chain: Chain, operand: Operand) -> Chain:
    """The mean square of a z-score is its standard deviation: 1, or 0 where all are equal."""
    for place in range(len(chain) - 1):
        rest = chain[place + 2 :]
        if chain[place : place + 2] == ("zscore", "square") and (rest in ENDS or rest[:1] == ("average",)):
            return (*chain[:place], "zscore", "std", *rest)
    return chain


RULES: tuple[Callable[[Chain, Operand], Chain], ...] = (
    replace_pair,
    use_sign,
    simplify_on_number,
    fold_constant,
    drop_last_mean,
    drop_before_softmax,
    replace_square_of_zscore,
)


@lru_cache(maxsize=1 << 18)
def canonical_chain(chain: Chain, operand: Operand = Operand()) -> Chain:  # noqa: B008  (frozen)
    """The chain that stands for all that give the same number; never longer than this one."""
    if "prune" in chain:
        return PRUNED
    spelled = ((name,) if UNARY[name].synonym is None else UNARY[name].synonym or () for name in chain)
    simpler: Chain = tuple(name for names in spelled for name in names)
    before: Chain | None = None
    while simpler != before:
        before = simpler
        for rule in RULES:
            simpler = rule(simpler, operand)
    return simpler


def all_chains(unary: int) -> tuple[Chain, ...]:
    """Every chain of this many operations in canonical form, each once, `prune` left out; in the order of UNARY."""
    distinct = dict.fromkeys(canonical_chain(chain) for chain in product(UNARY, repeat=unary))
    return tuple(chain for chain in distinct if chain != PRUNED)
