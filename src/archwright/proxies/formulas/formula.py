"""A proxy as a formula: two inputs, each through a chain of unary operations, joined layer by layer (LPZero Fig. 2).

What the paper leaves open is fixed here. A chain acts on one tensor of a layer, then the mean makes it one number;
several tensors of a role in a layer are averaged; the binary operation joins the two numbers of a layer; sum or mean
over the layers that have both. `prune` takes its branch out. The sign is never turned: higher is better. Beyond the
paper, a third branch may multiply the score by a count of the architecture.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.proxies.formulas.inputs import EXTENDED, INPUTS, SOURCES, passes_needed, roles_needed
from archwright.proxies.formulas.operations import BINARY, UNARY
from archwright.proxies.formulas.pruning_rules import reject
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.proxies.formulas.simplification import PRUNED, ZERO, Chain, Given, canonical_chain
from archwright.proxies.proxy import Unscored

if TYPE_CHECKING:
    from archwright.probe import Probe

__all__ = ["EXTENDED", "INPUTS", "REDUCTIONS", "Branch", "Formula", "from_json", "parse", "reject"]

TURNED = {"add": "sub", "sub": "add"}
"""What a minus sign on the right makes of the binary operation."""


@dataclass(frozen=True)
class Branch:
    """An input and what is done to it, the first operation first."""

    input: str
    chain: Chain

    def __post_init__(self) -> None:
        check(self.input, SOURCES, "input")
        for name in self.chain:
            check(name, UNARY, "unary operation")

    @property
    def pruned(self) -> bool:
        return "prune" in self.chain

    @property
    def turned(self) -> bool:
        """Whether its last operation is a minus sign."""
        return self.chain[-1:] == ("negate",)

    @property
    def place(self) -> tuple[int, Chain]:
        """Where it stands among branches that may be exchanged."""
        return EXTENDED.index(self.input), self.chain

    def canonical(self) -> "Branch":
        source = SOURCES[self.input]
        return Branch(self.input, canonical_chain(self.chain, Given(source.nonnegative, source.scalar)))

    def without_sign(self) -> "Branch":
        return Branch(self.input, self.chain[:-1])

    def with_sign(self) -> "Branch":
        return Branch(self.input, (*self.chain, "negate"))


@dataclass(frozen=True)
class Formula:
    """Two branches, what joins them, how layers become one score, and perhaps a count that it is multiplied with."""

    left: Branch
    right: Branch
    binary: str
    reduction: str = "sum"
    factor: Branch | None = None
    """Never negative."""

    def __post_init__(self) -> None:
        check(self.binary, BINARY, "binary operation")
        check(self.reduction, REDUCTIONS, "reduction")
        if self.factor and not (
            SOURCES[self.factor.input].scalar and {"prune", "negate"}.isdisjoint(self.factor.chain)
        ):
            raise BadInput(f"A factor is a count such as n_depth, not pruned or negated, got {self.factor.input!r}.")

    def __str__(self) -> str:
        from archwright.proxies.formulas.text import text

        return text(self)

    def latex(self) -> str:
        from archwright.proxies.formulas.text import latex

        return latex(self)

    def python(self, name: str = "proxy") -> str:
        """Source of a function of a probe that needs nothing of ours; it may be given to `rank --proxy`."""
        from archwright.proxies.formulas.text import python

        return python(self, name)

    def as_json(self) -> dict[str, Any]:
        branches = {
            side: {"input": branch.input, "chain": list(branch.chain)}
            for side, branch in (("left", self.left), ("right", self.right))
        }
        known = {**branches, "binary": self.binary, "reduction": self.reduction}
        factor = self.factor and {"input": self.factor.input, "chain": list(self.factor.chain)}
        return {**known, "factor": factor} if factor else known

    @property
    def branches(self) -> tuple[Branch, ...]:
        return self.left, self.right

    @property
    def kept(self) -> tuple[Branch, ...]:
        """The branches that are not pruned."""
        return tuple(branch for branch in self.branches if not branch.pruned)

    @property
    def empty(self) -> bool:
        return not self.kept

    @property
    def size(self) -> int:
        """Nodes of its tree: inputs, operations but pass-throughs, and what joins two branches."""
        branches = (*self.kept, *([self.factor] if self.factor else []))
        operations = sum(name not in ("no_op",) for branch in branches for name in branch.chain)
        return operations + max(0, 2 * len(branches) - 1)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Those that it looks at."""
        branches = (*self.kept, *([self.factor] if self.factor else []))
        return tuple(dict.fromkeys(branch.input for branch in branches))

    @property
    def passes(self) -> tuple[str, ...]:
        """Those that `record` has to run for it."""
        return passes_needed(self.inputs)

    @property
    def roles(self) -> tuple[str, ...]:
        """Those that `record` has to keep for it."""
        return roles_needed(self.inputs)

    def canonical(self) -> "Formula":
        """The formula that stands for all with the same score; see `simplifying` for the chains.

        The two products are one; what may be exchanged stands in the order of the inputs; a pruned branch leaves the
        other one alone; minus signs at the end of a branch go into the binary operation, or to the right of a product.
        """
        factor = self.factor and self.factor.canonical()
        if self.empty:
            return alone(Branch(INPUTS[0], PRUNED), self.reduction)
        if len(self.kept) == 1:
            return replace(alone(self.kept[0].canonical(), self.reduction), factor=factor)
        binary = "mul" if BINARY[self.binary].python == BINARY["mul"].python else self.binary
        joined = Formula(self.left.canonical(), self.right.canonical(), binary, self.reduction, factor)
        return ordered(signed(unsigned(joined)))

    def measure(self, probe: "Probe") -> float:
        """The score of what was recorded; raises Unscored where there is none."""
        from archwright.proxies.formulas.statistics import layer_values

        if self.empty:
            raise Unscored("Both branches of the formula are pruned.")
        for name in self.passes:
            if name not in probe.passes:
                raise BadInput(f"This formula needs the {name} pass, which was not recorded; ask record for it.")
            if name in probe.failures:
                raise Unscored(probe.failures[name])
        found = [layer_values(probe, branch.input, branch.canonical().chain) for branch in self.kept]
        return finite(self.joined(found) * self._factor(probe))

    def _factor(self, probe: "Probe") -> float:
        """What the score is multiplied with."""
        from archwright.proxies.formulas.statistics import layer_values

        if self.factor is None:
            return 1.0
        (value, *_) = layer_values(probe, self.factor.input, self.factor.canonical().chain)
        if not math.isfinite(value):
            raise Unscored(f"There is no finite {self.factor.input} of this network.")
        return value

    def joined(self, found: list[list[float]]) -> float:
        """The score of the numbers of each kept branch by layer; NaN where a layer does not have the role."""
        layers = [numbers for numbers in zip(*found, strict=True) if not any(map(math.isnan, numbers))]
        if not layers:
            lacking = [branch.input for branch, of in zip(self.kept, found, strict=True) if all(map(math.isnan, of))]
            raise Unscored(f"No layer of this network has {' and '.join(lacking or self.inputs)}.")
        join = BINARY[self.binary].apply
        terms = [numbers[0] if len(numbers) == 1 else join(*numbers) for numbers in layers]
        if not all(map(math.isfinite, terms)):
            raise Unscored("The number of a layer is not finite.")
        return finite(REDUCTIONS[self.reduction].of(terms))


def finite(score: float) -> float:
    if not math.isfinite(score):
        raise Unscored(f"The score is {score}, not a finite number.")
    return score


def alone(branch: Branch, reduction: str) -> Formula:
    """The formula of one branch."""
    return Formula(branch, Branch(branch.input, PRUNED), "add", reduction)


def unsigned(formula: Formula) -> Formula:
    """A product with zero has no sign."""
    if formula.binary not in ("mul",) or ZERO not in (formula.left.chain, formula.right.chain):
        return formula
    left, right = (branch.without_sign() if branch.turned else branch for branch in formula.branches)
    return replace(formula, left=left, right=right)


def signed(formula: Formula) -> Formula:
    """With as few minus signs at the end of branches as can be."""
    left, right = formula.left, formula.right
    if right.turned and formula.binary in TURNED:
        return signed(replace(formula, right=right.without_sign(), binary=TURNED[formula.binary]))
    if left.turned and formula.binary in ("add",):
        return replace(formula, left=right, right=left.without_sign(), binary="sub")
    if left.turned and right.turned and formula.binary in ("mul",):
        return replace(formula, left=left.without_sign(), right=right.without_sign())
    return formula


def ordered(formula: Formula) -> Formula:
    """Exchanged where that changes nothing, the sign of a product on the right."""
    left, right = formula.left, formula.right
    if formula.binary in ("sub",) and left.turned:  # -x - y is -y - x
        first, second = sorted([left.without_sign(), right], key=lambda branch: branch.place)
        return replace(formula, left=first.with_sign(), right=second)
    if not BINARY[formula.binary].commutes:
        return formula
    if not (left.turned or right.turned):
        first, second = sorted([left, right], key=lambda branch: branch.place)
        return replace(formula, left=first, right=second)
    plain = [branch.without_sign() if branch.turned else branch for branch in (left, right)]
    first, second = sorted(plain, key=lambda branch: branch.place)
    return replace(formula, left=first, right=second.with_sign())


def check(name: str, known: Mapping[str, Any], kind: str) -> None:
    if name not in known:
        raise BadInput(f"There is no {kind} {name!r}; choose from {', '.join(known)}.")


def parse(text: str) -> Formula:
    """The formula that `str` wrote."""
    from archwright.proxies.formulas.text import read

    return read(text)


def from_json(data: Mapping[str, Any]) -> Formula:
    """The formula that `as_json` wrote."""
    try:
        left, right = (Branch(data[side]["input"], tuple(data[side]["chain"])) for side in ("left", "right"))
        count = data.get("factor")
        factor = Branch(count["input"], tuple(count["chain"])) if count else None
        return Formula(left, right, data["binary"], data.get("reduction", "sum"), factor)
    except (KeyError, TypeError) as failure:
        raise BadInput(f"A formula needs left and right (input, chain) and binary, got {data!r:.200}.") from failure
