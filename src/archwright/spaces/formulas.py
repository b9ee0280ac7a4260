"""The space of formulas: two different inputs, each through so many unary operations, and what joins them (LPZero)."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb

import numpy as np

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import Branch, Formula, parse_branch
from archwright.proxies.formulas.inputs import COUNTS, EXTENDED, FORWARD, INPUTS
from archwright.proxies.formulas.operations import BINARY, UNARY, Chain
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.proxies.formulas.simplification import PRUNED, ZERO
from archwright.search import Choices, Config, sample

MOST_UNARY = 5
INPUT_SETS = {"lpzero": INPUTS, "forward": FORWARD, "extended": EXTENDED}
COUNTED = 3
"""Operations up to which different formulas are counted."""
SIDES = ("left", "right")
MINUS = "negate"
WITHOUT = ""
"""The factor of a formula that has none."""
CURVES: tuple[Chain, ...] = ((), ("sqrt",), ("square",), ("log",), ("inverse",))
FACTORS = (WITHOUT, *(str(Branch(name, chain)) for name, chain in product(COUNTS, CURVES)))
"""Counts that a score may be multiplied with, straight or bent."""


@dataclass(frozen=True)
class Sided:
    """Chains of one input that differ by more than a minus sign at their end."""

    input: str
    chains: tuple[Chain, ...]
    """Canonical, without that sign."""
    plus: tuple[bool, ...]
    """Whether the space has the chain itself."""
    minus: tuple[bool, ...]
    """Whether it has the chain with the sign."""


@dataclass(frozen=True)
class FormulaSpace:
    """All formulas of `unary` operations per branch; pass-throughs make them shorter."""

    unary: int = 1
    inputs: tuple[str, ...] = INPUTS
    reduction: str = "sum"
    factors: tuple[str, ...] = (WITHOUT,)
    """Of FACTORS: formulas are there with each of them."""

    def __post_init__(self) -> None:
        if not 1 <= self.unary <= MOST_UNARY:
            raise BadInput(f"--unary must be between 1 and {MOST_UNARY} operations per branch, got {self.unary}.")
        if len(set(self.inputs)) < 2:
            raise BadInput(f"a formula needs two different inputs to choose from, got {', '.join(self.inputs)}.")
        if self.reduction not in REDUCTIONS:
            raise BadInput(f"reduction must be one of {', '.join(REDUCTIONS)}, got {self.reduction!r}.")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Two different inputs, in the order of the space: it matters for minus."""
        return list(combinations(self.inputs, 2))

    @property
    def choices(self) -> Choices:
        pairs = tuple(" ".join(pair) for pair in self.pairs)
        written = {"inputs": pairs, **{name: tuple(UNARY) for name in self._steps}, "binary": tuple(BINARY)}
        return {**written, "factor": self.factors} if self.multiplied else written

    @property
    def multiplied(self) -> bool:
        """Whether there is a third factor to choose."""
        return self.factors != (WITHOUT,)

    @cached_property
    def branches(self) -> tuple[Branch | None, ...]:
        """The factors as a formula has them."""
        return tuple(parse_branch(text) if text else None for text in self.factors)

    @property
    def looked_at(self) -> tuple[str, ...]:
        """Inputs whose statistics formulas need, those of factors behind the others."""
        return tuple(dict.fromkeys([*self.inputs, *(branch.input for branch in self.branches if branch)]))

    @property
    def _steps(self) -> list[str]:
        return [f"{side}_{place}" for side in SIDES for place in range(1, self.unary + 1)]

    def build(self, config: Config) -> Formula:
        steps = [config[name] for name in self._steps]
        left, right = config["inputs"].split()
        one, other = Branch(left, tuple(steps[: self.unary])), Branch(right, tuple(steps[self.unary :]))
        factor = config.get("factor", WITHOUT)
        return Formula(one, other, config["binary"], self.reduction, parse_branch(factor) if factor else None)

    def config(self, formula: Formula) -> Config:
        """The choices that make this formula, which need not be written in the way of the space."""
        branches, binary = self._written(formula)
        steps = [name for branch in branches for name in self._padded(branch.chain)]
        names = " ".join(branch.input for branch in branches)
        written = {"inputs": names, **dict(zip(self._steps, steps, strict=True)), "binary": binary}
        factor = str(formula.factor) if formula.factor else WITHOUT
        return {**written, "factor": factor} if self.multiplied else written

    def _written(self, formula: Formula) -> tuple[list[Branch], str]:
        """Branches of two inputs in their order, and what joins them."""
        if formula.empty:
            return [Branch(name, PRUNED) for name in self.inputs[:2]], formula.binary
        if len(formula.active) == 1:
            (kept,) = formula.active
            other = next(name for name in self.inputs if name != kept.input)
            return self._ordered([kept, Branch(other, PRUNED)]), formula.binary
        left, right = formula.branches
        backwards = self._ordered([left, right]) != [left, right]
        if backwards and not BINARY[formula.binary].commutes:  # x - y is -y + x
            return [right.with_sign(), left], "add"
        if len(right.chain) > self.unary and BINARY[formula.binary].commutes and right.is_negated:
            return self._ordered([left.with_sign(), right.without_sign()]), formula.binary
        return self._ordered([left, right]), formula.binary

    def _ordered(self, branches: list[Branch]) -> list[Branch]:
        return sorted(branches, key=lambda branch: self.inputs.index(branch.input))

    def _padded(self, chain: Chain) -> Chain:
        if len(chain) > self.unary:
            raise BadInput(f"this space has {self.unary} unary operations per branch, got {', '.join(chain)}.")
        return (*chain, *["no_op"] * (self.unary - len(chain)))

    def canonical(self, config: Config) -> Config:
        """One config for all that are the same formula."""
        return self.config(self.build(config).canonical())

    def sample(self, rng: np.random.Generator) -> Formula:
        return self.build(sample(self.choices, rng))

    @cached_property
    def sides(self) -> dict[str, Sided]:
        """The chains of every input, as exhaustive ranking needs them."""
        return {name: sided(name, self.unary) for name in self.inputs}

    @property
    def chains(self) -> tuple[Chain, ...]:
        """All chains whose statistics the formulas of this space are made of."""
        factors = (branch.canonical().chain for branch in self.branches if branch)
        return tuple(dict.fromkeys([*(chain for side in self.sides.values() for chain in side.chains), *factors]))

    def size(self) -> dict[str, int | None]:
        """Formulas as written down, those that differ, and those of them with one branch; None: too many to count."""
        raw = comb(len(self.inputs), 2) * len(UNARY) ** (2 * self.unary) * len(BINARY)
        if self.unary > COUNTED:
            return {"raw": raw * len(self.factors), "canonical": None, "alone": None}
        joined = sum(differing(self.sides[one], self.sides[other]) for one, other in self.pairs)
        alone = sum(sum(side.plus) + sum(side.minus) for side in self.sides.values())
        found = {"raw": raw, "canonical": joined + alone, "alone": alone}
        return {name: count * len(self.factors) for name, count in found.items()}


def inputs_of(given: str) -> tuple[str, ...]:
    """Those of a set, or the ones named, as in W,S, in the order in which formulas name them."""
    named = INPUT_SETS.get(given) or tuple(name.strip() for name in given.split(","))
    if unknown := [name for name in named if name not in EXTENDED]:
        known = f"{', '.join(INPUT_SETS)}, or names among {', '.join(EXTENDED)}"
        raise BadInput(f"--inputs must be one of {known}, got {', '.join(unknown)}.")
    return tuple(sorted(set(named), key=EXTENDED.index))


def sided(name: str, unary: int) -> Sided:
    """The canonical chains of this input with their minus signs apart."""
    found = {Branch(name, chain).canonical().chain for chain in product(UNARY, repeat=unary)} - {PRUNED}
    plain = sorted({chain[:-1] if chain[-1:] == (MINUS,) else chain for chain in found}, key=place)
    minus = tuple((*chain, MINUS) in found for chain in plain)
    return Sided(name, tuple(plain), tuple(chain in found for chain in plain), minus)


def place(chain: Chain) -> tuple[int, list[int]]:
    """Short chains first, then in the order of the operations."""
    return len(chain), [list(UNARY).index(name) for name in chain]


def differing(left: Sided, right: Sided) -> int:
    """Formulas of both branches that differ: four sums and differences, and two products, as far as signs are there."""
    sums = (sum(left.plus) + sum(left.minus)) * len(right.chains) * 2  # the sign on the right is the binary operation's
    return sums + int(products(left, right).sum())


def products(left: Sided, right: Sided) -> np.ndarray:
    """(as it is, turned round) x left x right: which products the space has; zero has no sign."""
    one, other = np.array([left.plus, left.minus]), np.array([right.plus, right.minus])
    plus, minus = ((one[:, :, None] & of[:, None, :]).any(axis=0) for of in (other, other[::-1]))
    zero = np.logical_or.outer([chain == ZERO for chain in left.chains], [chain == ZERO for chain in right.chains])
    return np.stack([plus | (minus & zero), minus & ~zero])
