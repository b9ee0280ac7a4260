"""How formulas come into being: drawn at random, or as children of two others (LPZero, Figure 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
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


@lru_cache(maxsize=1 << 16)
def same(formula: Formula) -> Formula:
    """The formula that stands for all with the same score."""
    return formula.canonical()


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


Born = Callable[[Sequence[Formula], np.random.Generator], Offspring]
"""The next formula, given the pool of parents."""
Draw = Callable[[], Offspring]


def by_chance(space: FormulaSpace) -> Born:
    choices = space.choices
    return lambda pool, rng: Offspring(space.build(sample(choices, rng)))


def of_parents(space: FormulaSpace, crossover: float, mutation: float) -> Born:
    """Two of the pool, crossed or the first of them, then perhaps mutated (Algorithm 1, lines 7 to 9)."""
    choices = space.choices

    def born(pool: Sequence[Formula], rng: np.random.Generator) -> Offspring:
        one, other = (pool[int(place)] for place in rng.choice(len(pool), size=2, replace=False))
        mixed = crossed(space, one, other, rng) if rng.random() < crossover else None
        child = mixed or one
        if rng.random() < mutation:
            child = space.build(mutate(choices, space.config(child), rng))
        return Offspring(child, (one, other), mixed)

    return born


def unless_exhausted(born: Born, space: FormulaSpace, pool: Sequence[Formula], rng: np.random.Generator) -> Draw:
    """Children of the pool, and strangers once it seems to have no new ones."""
    tries, strange = count(), by_chance(space)
    return lambda: (born if next(tries) < FRESH else strange)(pool, rng)


def crossed(space: FormulaSpace, one: Formula, other: Formula, rng: np.random.Generator) -> Formula:
    """Each of (input, chain, input, chain, binary) from either parent; drawn again where both inputs are the same."""
    while True:
        left, right = (mixed(*pair, rng) for pair in zip(one.branches, other.branches, strict=True))
        if left.input != right.input:
            break
    left, right = sorted((left, right), key=lambda branch: space.inputs.index(branch.input))
    binary, factor = (either(getattr(one, name), getattr(other, name), rng) for name in ("binary", "factor"))
    return replace(one, left=left, right=right, binary=binary, factor=factor)


def mixed(one: Branch, other: Branch, rng: np.random.Generator) -> Branch:
    return Branch(either(one.input, other.input, rng), either(one.chain, other.chain, rng))


def either(one: Any, other: Any, rng: np.random.Generator) -> Any:
    return one if rng.random() < 0.5 else other


def allowed(draw: Draw, *, pps: bool, seen: Callable[[Formula], bool]) -> tuple[Offspring, Refusals]:
    """The next one that the pruning strategy lets through and that was not seen before, and what was refused."""
    refused = Refusals()
    for _ in range(PATIENCE):
        birth = draw()
        if pps and reject(birth.formula) is not None:
            refused.rejected += 1
        elif seen(birth.formula):
            refused.repeated += 1
        else:
            return birth, refused
    raise Failed(f"{PATIENCE} formulas in a row were rejected or known; use --no-pps or --no-distinct.")
