"""A proxy as a formula: two inputs, each through a chain of unary operations, joined layer by layer (LPZero Fig. 2).

What the paper leaves open is fixed here. A chain acts on one tensor of a layer, then the mean makes it one number;
several tensors of a role in a layer are averaged (beyond the paper: or added, by inputs named ..._sum); the binary
operation joins the two numbers of a layer; sum or mean over the layers that have both, or one of the reductions that
tell layers apart by position. `prune` takes its branch out. The sign is never turned: higher is better. Beyond the
paper, a third branch may multiply the score by a count of the architecture.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.proxies.formulas.inputs import COUNTS, FORMULA_INPUTS, INPUTS, required_passes, required_roles
from archwright.proxies.formulas.operations import BINARY, UNARY, Chain
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.proxies.formulas.simplification import PRUNED, ZERO, Operand, canonical_chain
from archwright.proxies.proxy import Unscored

if TYPE_CHECKING:
    from archwright.probe import Probe

FORMULAS_REVISION = 2
"""Of canonical forms and scores of formulas: raised when a change of the code changes them, so that no search from
before is read from disk."""
INPUT_ORDER = {name: index for index, name in enumerate(FORMULA_INPUTS)}


@dataclass(frozen=True)
class Branch:
    """An input and what is done to it, the first operation first."""

    input: str
    chain: Chain

    def __post_init__(self) -> None:
        check_name(self.input, FORMULA_INPUTS, "input")
        for name in self.chain:
            check_name(name, UNARY, "unary operation")

    def __str__(self) -> str:
        """square(inverse(H))"""
        return "".join(f"{name}(" for name in reversed(self.chain)) + self.input + ")" * len(self.chain)

    def latex(self) -> str:
        text = FORMULA_INPUTS[self.input].latex
        for name in self.chain:
            text = fill_template(UNARY[name].latex, x=text)
        return text

    def as_json(self) -> dict[str, Any]:
        return {"input": self.input, "chain": list(self.chain)}

    @property
    def is_pruned(self) -> bool:
        return "prune" in self.chain

    @property
    def is_negated(self) -> bool:
        """Whether its last operation is a minus sign."""
        return self.chain[-1:] == ("negate",)

    @property
    def sort_key(self) -> tuple[int, Chain]:
        """Where it stands among branches that may be exchanged."""
        return INPUT_ORDER[self.input], self.chain

    def canonical(self) -> "Branch":
        source = FORMULA_INPUTS[self.input]
        operand = Operand(source.nonnegative, source.scalar, source.integer)
        return Branch(self.input, canonical_chain(self.chain, operand))

    def without_sign(self) -> "Branch":
        """Without a minus sign at its end, if there is one."""
        return Branch(self.input, self.chain[:-1]) if self.is_negated else self

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
        check_name(self.binary, BINARY, "binary operation")
        check_name(self.reduction, REDUCTIONS, "reduction")
        if self.factor and not (self.factor.input in COUNTS and {"prune", "negate"}.isdisjoint(self.factor.chain)):
            raise BadInput(f"A factor is a count such as n_depth, not pruned or negated, got {self.factor.input!r}.")

    def __str__(self) -> str:
        """sum(square(inverse(H)) + frobenius(A)); `parse` reads it. A formula of one branch has no second one."""
        joined = f"{self.left} {BINARY[self.binary].symbol} {self.right}"
        single = replace(self, factor=None) == single_branch(self.left, self.reduction)
        text = f"{self.reduction}({self.left if single else joined})"
        return f"{text} * {self.factor}" if self.factor else text

    def latex(self) -> str:
        parts = [branch.latex() for branch in self.active]
        body = parts[0] if parts else r"\varnothing"
        if len(parts) == 2:
            body = fill_template(BINARY[self.binary].latex, x=parts[0], y=parts[1])
        factor = rf" \cdot {self.factor.latex()}" if self.factor else ""
        return rf"{REDUCTIONS[self.reduction].latex} \left( {body} \right){factor}"

    def as_json(self) -> dict[str, Any]:
        branches = {"left": self.left.as_json(), "right": self.right.as_json()}
        document = {**branches, "binary": self.binary, "reduction": self.reduction}
        return {**document, "factor": self.factor.as_json()} if self.factor else document

    @property
    def branches(self) -> tuple[Branch, Branch]:
        return self.left, self.right

    @property
    def active(self) -> tuple[Branch, ...]:
        """The branches that are not pruned."""
        return tuple(branch for branch in self.branches if not branch.is_pruned)

    @property
    def active_and_factor(self) -> tuple[Branch, ...]:
        """Every branch whose numbers the score needs."""
        return (*self.active, self.factor) if self.factor else self.active

    @property
    def empty(self) -> bool:
        return not self.active

    @property
    def size(self) -> int:
        """Nodes of its tree: inputs, operations but pass-throughs, and what joins two branches."""
        branches = self.active_and_factor
        operations = sum(name != "no_op" for branch in branches for name in branch.chain)
        return operations + max(0, 2 * len(branches) - 1)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Those that its score depends on."""
        return tuple(dict.fromkeys(branch.input for branch in self.active_and_factor))

    @property
    def passes(self) -> tuple[str, ...]:
        """Those that `record` has to run for it."""
        return required_passes(self.inputs)

    @property
    def roles(self) -> tuple[str, ...]:
        """Those that `record` has to keep for it."""
        return required_roles(self.inputs)

    def canonical(self) -> "Formula":
        """The formula that stands for all with the same score; see `simplification` for the chains.

        The two products are one; what may be exchanged stands in the order of the inputs; a pruned branch leaves the
        other one alone; minus signs at the end of a branch go into the binary operation, or to the right of a product;
        where all layers have the same number, the first, the last, the largest and the mean of them are one.
        """
        factor = self.factor and self.factor.canonical()
        equal = REDUCTIONS[self.reduction].of_equals
        if equal and self.active and all(FORMULA_INPUTS[branch.input].per_network for branch in self.active):
            return replace(self, reduction=equal).canonical()
        if self.empty:
            return single_branch(Branch(INPUTS[0], PRUNED), self.reduction)
        if len(self.active) == 1:
            return replace(single_branch(self.active[0].canonical(), self.reduction), factor=factor)
        binary = BINARY[self.binary].synonym or self.binary
        left, right = self.left.canonical(), self.right.canonical()
        if binary == "mul" and ZERO in (left.chain, right.chain):  # a product with zero has no sign
            left, right = left.without_sign(), right.without_sign()
        joined = Formula(left, right, binary, self.reduction, factor)
        return order_branches(move_signs(joined))

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
        score = self.reduce([layer_values(probe, branch.input, branch.canonical().chain) for branch in self.active])
        factor = 1.0
        if self.factor:
            factor = layer_values(probe, self.factor.input, self.factor.canonical().chain)[0]
            if not math.isfinite(factor):
                raise Unscored(f"There is no finite {self.factor.input} of this network.")
        return require_finite(score * factor)

    def reduce(self, columns: list[list[float]]) -> float:
        """The score, but for the factor, of the numbers of each active branch by layer; NaN where a layer does not
        have the role."""
        layers = [numbers for numbers in zip(*columns, strict=True) if not any(map(math.isnan, numbers))]
        if not layers:
            pairs = zip(self.active, columns, strict=True)
            lacking = [branch.input for branch, numbers in pairs if all(map(math.isnan, numbers))]
            raise Unscored(f"No layer of this network has {' and '.join(lacking or self.inputs)}.")
        if len(layers) < REDUCTIONS[self.reduction].least:
            raise Unscored(f"{self.reduction} needs {REDUCTIONS[self.reduction].least} layers, got {len(layers)}.")
        join = BINARY[self.binary].apply
        terms = [numbers[0] if len(numbers) == 1 else join(*numbers) for numbers in layers]
        if not all(map(math.isfinite, terms)):
            raise Unscored("The number of a layer is not finite.")
        return require_finite(REDUCTIONS[self.reduction].reduce(terms))


def require_finite(score: float) -> float:
    if not math.isfinite(score):
        raise Unscored(f"The score is {score}, not a finite number.")
    return score


def single_branch(branch: Branch, reduction: str) -> Formula:
    """The formula of one branch."""
    return Formula(branch, Branch(branch.input, PRUNED), "add", reduction)


def move_signs(formula: Formula) -> Formula:
    """With as few minus signs at the end of branches as can be."""
    left, right = formula.left, formula.right
    turned = BINARY[formula.binary].negated_right
    if right.is_negated and turned:
        return move_signs(replace(formula, right=right.without_sign(), binary=turned))
    if left.is_negated and formula.binary == "add":
        return replace(formula, left=right, right=left.without_sign(), binary="sub")
    if left.is_negated and right.is_negated and formula.binary == "mul":
        return replace(formula, left=left.without_sign(), right=right.without_sign())
    return formula


def order_branches(formula: Formula) -> Formula:
    """Exchanged where that changes nothing, the sign of a product on the right."""
    left, right = formula.left, formula.right
    first, second = sorted([left.without_sign(), right.without_sign()], key=lambda branch: branch.sort_key)
    if formula.binary == "sub" and left.is_negated:  # -x - y is -y - x
        return replace(formula, left=first.with_sign(), right=second)
    if not BINARY[formula.binary].commutes:
        return formula
    negated = left.is_negated or right.is_negated
    return replace(formula, left=first, right=second.with_sign() if negated else second)


def check_name(name: str, known: Mapping[str, Any], kind: str) -> None:
    if name not in known:
        raise BadInput(f"There is no {kind} {name!r}; choose from {', '.join(known)}.")


def fill_template(template: str, **operands: str) -> str:
    """The template with operands for its letters x and y, where those stand alone."""
    return re.sub(r"(?<![a-zA-Z_\\])[xy](?![a-zA-Z_])", lambda letter: operands[letter[0]], template)


def parse(text: str) -> Formula:
    """The formula that `str` wrote; blanks around the binary operation are needed."""
    whole, _, factor = text.rpartition(" * ")
    if whole.endswith(")") and factor.count("(") == factor.count(")"):
        return replace(parse(whole), factor=parse_branch(factor.strip()))
    outer = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", text)
    parts = outer[2].split() if outer else []
    symbols = {binary.symbol: name for name, binary in BINARY.items()}
    if outer and len(parts) == 1:
        return single_branch(parse_branch(parts[0]), outer[1])
    if outer and len(parts) == 3 and parts[1] in symbols:
        return Formula(parse_branch(parts[0]), parse_branch(parts[2]), symbols[parts[1]], outer[1])
    raise BadInput(f"A formula reads like 'sum(square(H) + frobenius(A))', got {text!r}.")


def parse_branch(text: str) -> Branch:
    *outer, inner = text.split("(")
    name, closing = inner.rstrip(")"), inner.count(")")
    if closing != len(outer):
        raise BadInput(f"Brackets of {text!r} do not match; a branch reads like 'square(inverse(H))'.")
    return Branch(name, tuple(reversed(outer)))


def from_json(data: Mapping[str, Any]) -> Formula:
    """The formula that `as_json` wrote."""
    try:
        left, right = (Branch(data[side]["input"], tuple(data[side]["chain"])) for side in ("left", "right"))
        count = data.get("factor")
        factor = Branch(count["input"], tuple(count["chain"])) if count else None
        return Formula(left, right, data["binary"], data.get("reduction", "sum"), factor)
    except (KeyError, TypeError) as failure:
        raise BadInput(f"A formula needs left and right (input, chain) and binary, got {data!r:.200}.") from failure
