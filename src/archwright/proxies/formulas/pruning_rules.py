"""LPZero's Predictive-Pruning Strategy: the rows of its Table 6 and what each of them does to a formula.

Inverse and Conflict rows reject a formula with these two operations in a row; Equivalent and Special-case rows merge
formulas (see `simplification`); the others say how operations are related, which prunes nothing.
"""

from dataclasses import dataclass

from archwright.proxies.formulas.formula import Formula


@dataclass(frozen=True)
class Relation:
    """One row of Table 6."""

    first: str
    second: str
    kind: str
    """As the paper calls it."""
    effect: str
    """rejects | merges | none."""
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()
    """Operations, the inner one first."""


def either(first: str, second: str) -> tuple[tuple[str, str], ...]:
    return (first, second), (second, first)


OUTSIDE = "names an operation outside the space"

TABLE_6: tuple[Relation, ...] = (
    Relation("log", "exp", "Inverse", "rejects", "log and exp undo each other", either("log", "exp")),
    Relation("abs", "abs(log)", "Derivative", "none", "a relation that makes neither superfluous"),
    Relation("square", "sqrt", "Inverse", "rejects", "square and sqrt undo each other", either("square", "sqrt")),
    Relation("ReLU", "identity", "Special case", "merges", "ReLU of what is never negative is itself"),
    Relation(
        "inverse",
        "identity",
        "Inverse for non-zero",
        "rejects",
        "1/x beside a pass-through is listed as an inverse pair",
        either("inverse", "no_op"),
    ),
    Relation("norm_sum", "average", "Equivalent", "merges", "both are the mean"),
    Relation("softmax", "log_softmax", "Derivative", "none", "a relation that makes neither superfluous"),
    Relation("sigmoid", "logistic function", "Equivalent", "none", OUTSIDE),
    Relation("min-max scaling", "normalization", "Type", "none", OUTSIDE),
    Relation("standard deviation", "variance", "Square root", "none", OUTSIDE),
    Relation("L1-norm", "abs", "Generalization", "none", "a relation that makes neither superfluous"),
    Relation("F-norm", "Euclidean norm", "Equivalent", "none", OUTSIDE),
    Relation("-()", "log", "Conflict", "rejects", "the log of a negated positive is undefined", (("negate", "log"),)),
    Relation(
        "-()", "sqrt", "Conflict", "rejects", "the root of a negated positive is undefined", (("negate", "sqrt"),)
    ),
    Relation("identity (if zero)", "inverse", "Conflict", "rejects", "zero has no reciprocal", (("no_op", "inverse"),)),
    Relation(
        "-() (for positive)",
        "sqrt",
        "Conflict",
        "rejects",
        "the root of a negated positive is undefined",
        (("negate", "sqrt"),),
    ),
)

REJECTED: dict[tuple[str, str], Relation] = {
    pair: relation for relation in reversed(TABLE_6) for pair in relation.rejected
}


def reject(formula: Formula) -> str | None:
    """Why the Predictive-Pruning Strategy throws this formula away; None where it does not.

    Of the formula as it is written, not of its canonical form: a pass-through counts as an operation.
    """
    if formula.empty:
        return "both branches are pruned, so that nothing is left"
    for branch in formula.branches:
        for pair in zip(branch.chain, branch.chain[1:], strict=False):
            if pair in REJECTED:
                return f"{pair[0]}, then {pair[1]}: {REJECTED[pair].reason}"
    return None
