"""How new formulas are proposed: drawn at random, or as children of two others (LPZero, Figure 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archwright.errors import Failed
from archwright.proxies.formulas.formula import Branch, Formula
from archwright.proxies.formulas.pruning_rules import reject
from archwright.search import mutate, sample
from archwright.spaces.formulas import FormulaSpace

FRESH = 100
"""Children in a row that were scored before, after which formulas are drawn at random: the parents have no others."""
PATIENCE = 10_000
"""Offspring in a row that may be refused."""


@dataclass(frozen=True)
class Offspring:
    """A formula and where it comes from."""

    formula: Formula
    parents: tuple[Formula, ...] = ()
    """None: drawn at random."""
    crossed: Formula | None = None
    """What both parents gave, before it was mutated; None where it is a copy of the first one."""


@dataclass
class Refusals:
    """How often each reason to draw again was met."""

    rejected: int = 0
    """By the pruning strategy."""
    repeated: int = 0
    """Because the same formula was scored before."""


Proposer = Callable[[Sequence[Formula], np.random.Generator], Offspring]
"""The next formula, given the pool of parents."""


def random_proposer(space: FormulaSpace) -> Proposer:
    choices = space.choices
    return lambda pool, rng: Offspring(space.build(sample(choices, rng)))


def child_proposer(space: FormulaSpace, crossover: float, mutation: float) -> Proposer:
    """Two of the pool, crossed or the first of them, then perhaps mutated (Algorithm 1, lines 7 to 9)."""
    choices = space.choices

    def propose(pool: Sequence[Formula], rng: np.random.Generator) -> Offspring:
        first, second = (pool[int(index)] for index in rng.choice(len(pool), size=2, replace=False))
        crossed = cross(space, first, second, rng) if rng.random() < crossover else None
        child = crossed or first
        if rng.random() < mutation:
            child = space.build(mutate(choices, space.config(child), rng))
        return Offspring(child, (first, second), crossed)

    return propose


def cross(space: FormulaSpace, first: Formula, second: Formula, rng: np.random.Generator) -> Formula:
    """Each of (input, chain, input, chain, binary, reduction) from either parent; again where both inputs are the
    same."""

    def either(one: Any, other: Any) -> Any:
        return one if rng.random() < 0.5 else other

    def cross_branches(one: Branch, other: Branch) -> Branch:
        return Branch(either(one.input, other.input), either(one.chain, other.chain))

    while True:
        left, right = cross_branches(first.left, second.left), cross_branches(first.right, second.right)
        if left.input != right.input:
            break
    left, right = sorted((left, right), key=lambda branch: space.inputs.index(branch.input))
    binary, factor = either(first.binary, second.binary), either(first.factor, second.factor)
    reduction = first.reduction
    if first.reduction != second.reduction:  # in a space of one reduction nothing is drawn
        reduction = either(first.reduction, second.reduction)
    return replace(first, left=left, right=right, binary=binary, factor=factor, reduction=reduction)


def draw_offspring(
    draw: Callable[[], Offspring], *, pps: bool, is_known: Callable[[Formula], bool]
) -> tuple[Offspring, Refusals]:
    """The next one that the pruning strategy lets through and that is not known, and what was refused."""
    refusals = Refusals()
    for _ in range(PATIENCE):
        offspring = draw()
        if pps and reject(offspring.formula) is not None:
            refusals.rejected += 1
        elif is_known(offspring.formula):
            refusals.repeated += 1
        else:
            return offspring, refusals
    raise Failed(f"{PATIENCE} formulas in a row were rejected or known; use --no-pps or --no-distinct.")
