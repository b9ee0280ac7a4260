"""The space of formulas: two different inputs, each through so many unary operations, and what joins them (LPZero)."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import comb

import numpy as np

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import Branch, Formula, parse_branch
from archwright.proxies.formulas.inputs import COUNTS, EXTENDED, FORMULA_INPUTS, FORWARD, INPUTS, LAYERS, POSITIONAL
from archwright.proxies.formulas.operations import BINARY, UNARY, Chain
from archwright.proxies.formulas.reductions import POSITIONAL as POSITIONAL_REDUCTIONS
from archwright.proxies.formulas.reductions import REDUCTIONS, distinct_reductions
from archwright.proxies.formulas.simplification import PRUNED, ZERO
from archwright.search import Choices, Config, sample

MOST_UNARY = 5
INPUT_SETS = {
    "lpzero": INPUTS, "forward": FORWARD, "extended": EXTENDED, "layers": LAYERS, "positional": POSITIONAL,
}  # fmt: skip
REDUCTION_SETS = {"positional": POSITIONAL_REDUCTIONS, "all": tuple(REDUCTIONS)}
COUNTED = 3
"""Operations per branch up to which different formulas are counted."""
WITHOUT = ""
"""The factor of a formula that has none."""
CURVES: tuple[Chain, ...] = ((), ("sqrt",), ("square",), ("log",), ("inverse",))
FACTORS = (WITHOUT, *(str(Branch(name, chain)) for name, chain in product(COUNTS, CURVES)))
"""Counts that a score may be multiplied with, straight or bent."""


@dataclass(frozen=True)
class SignedChains:
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
    reductions: tuple[str, ...] = ("sum",)
    """Formulas are there with each of them."""
    factors: tuple[str, ...] = (WITHOUT,)
    """Of FACTORS: formulas are there with each of them."""

    def __post_init__(self) -> None:
        if not 1 <= self.unary <= MOST_UNARY:
            raise BadInput(f"--unary must be between 1 and {MOST_UNARY} operations per branch, got {self.unary}.")
        if len(set(self.inputs)) < 2:
            raise BadInput(f"a formula needs two different inputs to choose from, got {', '.join(self.inputs)}.")
        if unknown := [name for name in self.reductions if name not in REDUCTIONS]:
            known = f"{', '.join(REDUCTIONS)}, or {', '.join(REDUCTION_SETS)}"
            raise BadInput(f"--reduction must be among {known}, got {', '.join(unknown)}.")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Two different inputs, in the order of the space: it matters for minus."""
        return list(combinations(self.inputs, 2))

    @property
    def _steps(self) -> list[str]:
        """Names of the choices of unary operations: left_1, left_2, ..., right_1, ..."""
        return [f"{side}_{number}" for side in ("left", "right") for number in range(1, self.unary + 1)]

    @property
    def choices(self) -> Choices:
        pairs = tuple(" ".join(pair) for pair in self.pairs)
        choices = {"inputs": pairs, **{name: tuple(UNARY) for name in self._steps}, "binary": tuple(BINARY)}
        if len(self.reductions) > 1:
            choices["reduction"] = self.reductions
        return choices if self.factors == (WITHOUT,) else {**choices, "factor": self.factors}

    def distinct_reductions(self, *inputs: str) -> tuple[str, ...]:
        """Those that give different scores of these inputs."""
        equal = all(FORMULA_INPUTS[name].per_network for name in inputs)
        return distinct_reductions(self.reductions, equal_layers=equal)

    @cached_property
    def factor_branches(self) -> tuple[Branch | None, ...]:
        """The factors as a formula has them."""
        return tuple(parse_branch(text) if text else None for text in self.factors)

    @property
    def statistics_inputs(self) -> tuple[str, ...]:
        """Inputs whose statistics formulas need, those of factors behind the others."""
        return tuple(dict.fromkeys([*self.inputs, *(branch.input for branch in self.factor_branches if branch)]))

    def build(self, config: Config) -> Formula:
        steps = [config[name] for name in self._steps]
        left, right = config["inputs"].split()
        branches = Branch(left, tuple(steps[: self.unary])), Branch(right, tuple(steps[self.unary :]))
        factor = config.get("factor", WITHOUT)
        reduction = config.get("reduction", self.reductions[0])
        return Formula(*branches, config["binary"], reduction, parse_branch(factor) if factor else None)

    def config(self, formula: Formula) -> Config:
        """The choices that make this formula, which need not be written in the way of the space."""
        branches, binary = self._in_space_order(formula)
        for branch in branches:
            if len(branch.chain) > self.unary:
                got = ", ".join(branch.chain)
                raise BadInput(f"this space has {self.unary} unary operations per branch, got {got}.")
        steps = [name for b in branches for name in (*b.chain, *["no_op"] * (self.unary - len(b.chain)))]
        inputs = " ".join(branch.input for branch in branches)
        config = {"inputs": inputs, **dict(zip(self._steps, steps, strict=True)), "binary": binary}
        if len(self.reductions) > 1:
            config["reduction"] = self._written_reduction(formula)
        factor = str(formula.factor) if formula.factor else WITHOUT
        return config if self.factors == (WITHOUT,) else {**config, "factor": factor}

    def _written_reduction(self, formula: Formula) -> str:
        """The one of this space that the formula has, or one that gives the same of it."""
        wanted = formula.reduction
        same = (name for name in self.reductions if REDUCTIONS[name].of_equals == wanted)
        return wanted if wanted in self.reductions else next(same, wanted)

    def _in_space_order(self, formula: Formula) -> tuple[list[Branch], str]:
        """Branches of two inputs in the order of the space, and what joins them."""

        def order(*branches: Branch) -> list[Branch]:
            return sorted(branches, key=lambda branch: self.inputs.index(branch.input))

        if formula.empty:
            return [Branch(name, PRUNED) for name in self.inputs[:2]], formula.binary
        if len(formula.active) == 1:
            (branch,) = formula.active
            other = next(name for name in self.inputs if name != branch.input)
            return order(branch, Branch(other, PRUNED)), formula.binary
        left, right = formula.branches
        commutes = BINARY[formula.binary].commutes
        if order(left, right) != [left, right] and not commutes:  # x - y is -y + x
            return [right.with_sign(), left], "add"
        if len(right.chain) > self.unary and commutes and right.is_negated:
            return order(left.with_sign(), right.without_sign()), formula.binary
        return order(left, right), formula.binary

    def canonical(self, config: Config) -> Config:
        """One config for all that are the same formula."""
        return self.config(self.build(config).canonical())

    def sample(self, rng: np.random.Generator) -> Formula:
        return self.build(sample(self.choices, rng))

    @cached_property
    def signed_chains(self) -> dict[str, SignedChains]:
        """The chains of every input, as exhaustive ranking needs them."""
        return {name: find_signed_chains(name, self.unary) for name in self.inputs}

    @property
    def chains(self) -> tuple[Chain, ...]:
        """All chains whose statistics the formulas of this space are made of."""
        factors = (branch.canonical().chain for branch in self.factor_branches if branch)
        inputs = (chain for signed in self.signed_chains.values() for chain in signed.chains)
        return tuple(dict.fromkeys([*inputs, *factors]))

    def size(self) -> dict[str, int | None]:
        """Formulas as written down, those that differ, and those of them with one branch; None: too many to count."""
        raw = comb(len(self.inputs), 2) * len(UNARY) ** (2 * self.unary) * len(BINARY) * len(self.reductions)
        if self.unary > COUNTED:
            return {"raw": raw * len(self.factors), "canonical": None, "alone": None}
        signed = self.signed_chains
        joined = 0  # of both branches: four sums and differences, and two products, as far as signs are there
        for left, right in ((signed[first], signed[second]) for first, second in self.pairs):
            pair = (sum(left.plus) + sum(left.minus)) * len(right.chains) * 2  # the binary operation has the sign
            pair += int(available_products(left, right).sum())
            joined += pair * len(self.distinct_reductions(left.input, right.input))
        alone = sum(
            (sum(side.plus) + sum(side.minus)) * len(self.distinct_reductions(name)) for name, side in signed.items()
        )
        sizes = {"raw": raw, "canonical": joined + alone, "alone": alone}
        return {name: count * len(self.factors) for name, count in sizes.items()}


def parse_inputs(text: str) -> tuple[str, ...]:
    """Those of a set, or the ones named, as in W,S, in the order in which formulas name them."""
    names = INPUT_SETS.get(text) or tuple(name.strip() for name in text.split(","))
    if unknown := [name for name in names if name not in FORMULA_INPUTS]:
        known = f"{', '.join(INPUT_SETS)}, or names among {', '.join(FORMULA_INPUTS)}"
        raise BadInput(f"--inputs must be one of {known}, got {', '.join(unknown)}.")
    return tuple(sorted(set(names), key=list(FORMULA_INPUTS).index))


def parse_reductions(text: str) -> tuple[str, ...]:
    """Those of a set, or the ones named, as in sum,but_last, in the order of REDUCTIONS."""
    names = REDUCTION_SETS.get(text) or tuple(name.strip() for name in text.split(","))
    unknown = tuple(name for name in names if name not in REDUCTIONS)
    return unknown or tuple(name for name in REDUCTIONS if name in names)  # a space refuses unknown ones


def find_signed_chains(name: str, unary: int) -> SignedChains:
    """The canonical chains of this input with their minus signs apart: short ones first, then in the order of UNARY."""
    order = list(UNARY).index
    branches = {Branch(name, chain).canonical() for chain in product(UNARY, repeat=unary)}
    canonical = {branch.chain for branch in branches} - {PRUNED}
    plain = {branch.without_sign().chain for branch in branches} - {PRUNED}
    chains = sorted(plain, key=lambda chain: (len(chain), [order(step) for step in chain]))
    minus = tuple((*chain, "negate") in canonical for chain in chains)
    return SignedChains(name, tuple(chains), tuple(chain in canonical for chain in chains), minus)


def available_products(left: SignedChains, right: SignedChains) -> np.ndarray:
    """(as it is, turned round) x left x right: which products the space has; zero has no sign."""
    first, second = np.array([left.plus, left.minus]), np.array([right.plus, right.minus])
    plus, minus = ((first[:, :, None] & signs[:, None, :]).any(axis=0) for signs in (second, second[::-1]))
    zero = np.logical_or.outer([chain == ZERO for chain in left.chains], [chain == ZERO for chain in right.chains])
    return np.stack([plus | (minus & zero), minus & ~zero])
