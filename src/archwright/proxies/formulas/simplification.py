"""The canonical form of a chain: chains that give the same number on whatever tensor become one.

A chain ends in the mean that makes it one number. All rules hold exactly, guards included; where the longer chain
overflows on the way and the shorter does not, the shorter one counts. Rules, besides those in PAIRS:
- `no_op` goes, `prune` takes the whole chain with it, `norm_sum` is `average` (Table 6: equivalent);
- `abs` and `relu` go behind what is never negative (Table 6: special case); behind what is never positive `abs` is
  `negate`, and `relu`, `sqrt`, `log`, `abslog` give zero;
- of one number `average` is itself, both norms are `abs`, `softmax` is 1, and `std`, `zscore`, `minmax` and
  `log_softmax` are 0; constants are worked out;
- the last `average` goes, as the mean follows anyway, also before a last `negate`;
- the mean square of a `zscore` is its `std`;
- the mean of a `zscore` is 0, that of a `softmax` over n rows is 1/n: what came before does not matter.
Zero is written as `zscore` and one as `average, softmax`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from archwright.proxies.formulas.operations import UNARY
from archwright.proxies.formulas.scalars import through

Chain = tuple[str, ...]

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
    **{("negate", even): (even,) for even in ("abs", "square", "frobenius", "l1")},
    **{("abs", even): (even,) for even in ("square", "frobenius", "l1")},
    **{("abslog", even): ("log", even) for even in ("square", "frobenius", "l1")},
}
"""Two operations in a row to what is the same; for numbers as for tensors, but for those that number() replaces."""

OF_A_NUMBER = {"average": (), "frobenius": ("abs",), "l1": ("abs",)}
WITHOUT_SPREAD = {"std": 0.0, "zscore": 0.0, "minmax": 0.0, "log_softmax": 0.0, "softmax": 1.0}
BLIND_BELOW_ZERO = frozenset({"relu", "sqrt", "log", "abslog"})
SUMS: tuple[Chain, ...] = (("average",), ("l1",))
ENDS: tuple[Chain, ...] = ((), ("negate",))
"""What may come between an operation and the mean at the end so that it still acts on the mean alone."""


@dataclass(frozen=True)
class Given:
    """What is known of the input of a chain."""

    nonnegative: bool = False
    scalar: bool = False

    def sign(self, chain: Chain) -> int:
        """1 where what the chain gives is never below zero, -1 never above, 0 where either may be."""
        if not chain:
            return int(self.nonnegative)
        if UNARY[chain[-1]].nonnegative:
            return 1
        return SIGNS.get(chain[-1], unknown)(self.sign(chain[:-1]))

    def number(self, chain: Chain) -> bool:
        """Whether the chain gives one number rather than a tensor."""
        return self.scalar or any(UNARY[name].scalar for name in chain)


ANYTHING = Given()


def unknown(sign: int) -> int:
    return 0


SIGNS: dict[str, Callable[[int], int]] = {
    "average": lambda sign: sign,
    "negate": lambda sign: -sign,
    "inverse": lambda sign: max(sign, 0),
    "log_softmax": lambda sign: -1,
}


def paired(chain: Chain, given: Given) -> Chain:
    for place in range(len(chain) - 1):
        found = PAIRS.get(chain[place : place + 2])
        if found is not None:
            return chain[:place] + found + chain[place + 2 :]
    return chain


def signed(chain: Chain, given: Given) -> Chain:
    for place, name in enumerate(chain):
        sign = given.sign(chain[:place])
        if sign > 0 and name in ("abs", "relu"):
            return chain[:place] + chain[place + 1 :]
        if sign < 0 and name in ("abs",):
            return (*chain[:place], "negate", *chain[place + 1 :])
    return chain


def numbered(chain: Chain, given: Given) -> Chain:
    for place, name in enumerate(chain):
        if name in OF_A_NUMBER and given.number(chain[:place]):
            return chain[:place] + OF_A_NUMBER[name] + chain[place + 1 :]
    return chain


def folded(chain: Chain, given: Given) -> Chain:
    """Constants worked out: zero and one written in one way, others from there."""
    for place, name in enumerate(chain):
        number, rest = given.number(chain[:place]), chain[place + 1 :]
        if number and name in WITHOUT_SPREAD:
            return constant(WITHOUT_SPREAD[name], rest, given)
        nothing = name in ZERO or (given.sign(chain[:place]) < 0 and name in BLIND_BELOW_ZERO)
        if nothing and (number or rest in ENDS or rest[:1] == ("average",)):
            return constant(0.0, rest, given)
    return chain


def constant(value: float, rest: Chain, given: Given) -> Chain:
    start: Chain = () if given.scalar else ("average",)
    written = {0.0: (*start, "zscore"), 1.0: (*start, "softmax")}
    chain = written[value]
    for name in rest:
        value = through(value, [name])
        chain = written.get(value, (*chain, name))
    return ZERO if value == 0 else chain


def ended(chain: Chain, given: Given) -> Chain:
    """The mean comes anyway."""
    for end in ENDS:
        if chain[len(chain) - len(end) - 1 :] == ("average", *end):
            return chain[: len(chain) - len(end) - 1] + end
    return chain


def forgotten(chain: Chain, given: Given) -> Chain:
    """Sums over a softmax do not depend on what it was taken of."""
    for place, name in enumerate(chain):
        rest = chain[place + 1 :]
        summed = rest in ENDS or rest[:1] in SUMS
        if place and name in ("softmax",) and summed and not given.number(chain[:place]):
            return chain[place:]
    return chain


def standard(chain: Chain, given: Given) -> Chain:
    """The mean square of a z-score is its standard deviation: 1, or 0 where all are equal."""
    for place in range(len(chain) - 1):
        rest = chain[place + 2 :]
        if chain[place : place + 2] == ("zscore", "square") and (rest in ENDS or rest[:1] == ("average",)):
            return (*chain[:place], "zscore", "std", *rest)
    return chain


RULES: tuple[Callable[[Chain, Given], Chain], ...] = (
    paired,
    signed,
    numbered,
    folded,
    ended,
    forgotten,
    standard,
)


@lru_cache(maxsize=1 << 18)
def canonical_chain(chain: Chain, given: Given = ANYTHING) -> Chain:
    """The chain that stands for all that give the same number; never longer than this one."""
    if "prune" in chain:
        return PRUNED
    known = {"norm_sum": ("average",), "no_op": ()}
    found: Chain = tuple(name for raw in chain for name in known.get(raw, (raw,)))
    while (simpler := simplified(found, given)) != found:
        found = simpler
    return found


def simplified(chain: Chain, given: Given) -> Chain:
    for rule in RULES:
        chain = rule(chain, given)
    return chain


def all_chains(unary: int) -> tuple[Chain, ...]:
    """Every chain of this many operations in canonical form, each once, `prune` left out; in the order of UNARY."""
    found = dict.fromkeys(canonical_chain(chain) for chain in product(UNARY, repeat=unary))
    return tuple(chain for chain in found if chain != PRUNED)
