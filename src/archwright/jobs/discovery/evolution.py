"""LPZero's Algorithm 1 on statistics in memory: one offspring per generation, with or without its pruning strategy."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from archwright.errors import Failed
from archwright.jobs.discovery.exhaustive import order
from archwright.jobs.discovery.table import Mask, Table, exists
from archwright.jobs.discovery.trial import FITNESS, Trial
from archwright.proxies.formula import Branch, Formula, reject
from archwright.search import mutate
from archwright.spaces.formulas import FormulaSpace

FIRST = 4
"""Architectures on which a formula must differ, and be finite, before it is scored on the others."""
PATIENCE = 10_000
"""Offspring in a row that the pruning strategy may reject."""


@dataclass(frozen=True)
class Evolving:
    """Settings of a search; those of the paper unless said otherwise."""

    generations: int = 1000
    population: int = 80
    parents: float = 0.1
    crossover: float = 0.5
    mutation: float = 0.5
    pps: bool = True
    sample: int = 50
    """Architectures the fitness is taken on; 0 for all."""
    distinct: bool = False
    """Not in the paper: a copy of a living formula takes its generation, but no second place."""


@dataclass
class Judge:
    """Fitness of formulas on some rows; what it cost is counted."""

    table: Table
    trial: Trial
    rows: Mask
    pps: bool
    stopped: int = 0
    """Formulas that were constant or not finite on the first four architectures."""
    scored: int = 0
    invalid: int = 0
    known: dict[Formula, float] = field(default_factory=dict)

    @cached_property
    def first(self) -> Any:
        return np.unique(self.trial.networks[self.rows])[:FIRST]

    @cached_property
    def rankings(self) -> Any:
        return self.trial.rankings(np.ones(len(self.trial.names), dtype=bool), [self.rows])

    def __call__(self, formula: Formula) -> float:
        """Minus infinity for a formula that is no proxy of these rows."""
        if formula.empty:
            self.invalid += 1
            return -np.inf
        scores = self.table.scores(formula)
        if self.pps and early(scores[self.first]):
            self.stopped += 1
            return -np.inf
        self.scored += 1
        fitness = self.fitness(scores)
        self.invalid += not np.isfinite(fitness)
        if np.isfinite(fitness):
            self.known[formula] = fitness
        return fitness

    def fitness(self, scores: Any) -> float:
        if not exists(scores, self.trial.rows):
            return -np.inf
        there = ~np.isnan(scores)
        rankings = self.rankings if there.all() else self.trial.rankings(there, [self.rows])
        found = float(FITNESS[self.trial.fitness](rankings, scores[there][None])[0, 0])
        return found if np.isfinite(found) else -np.inf


def early(scores: Any) -> bool:
    """Whether a formula says nothing of a few architectures."""
    known = scores[~np.isnan(scores)]
    return not np.isfinite(known).all() or (len(known) > 1 and bool(np.ptp(known) == 0))


@dataclass(frozen=True)
class Evolved:
    """What a search found, and what it took."""

    best: list[list[Any]]
    """[fitness, size, formula] of everything scored, the best first."""
    curve: list[float | None]
    """Best fitness so far, after every generation."""
    winning_rate: float
    """Share of offspring that improve on the best so far (Table 5)."""
    counts: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {"curve": self.curve, "winning_rate": self.winning_rate, **self.counts, "best": self.best[:1]}


Next = Callable[[list[tuple[float, Formula]], np.random.Generator], Formula]


def evolve(space: FormulaSpace, judge: Judge, settings: Evolving, rng: np.random.Generator) -> Evolved:
    """Algorithm 1: parents from the best share of the population, their offspring joins it, the worst leaves."""
    return run(space, judge, settings, rng, lambda population, draw: offspring(space, population, settings, draw))


def at_random(space: FormulaSpace, judge: Judge, settings: Evolving, rng: np.random.Generator) -> Evolved:
    """The baseline: as many formulas, each drawn by itself."""
    return run(space, judge, settings, rng, lambda population, draw: space.sample(draw))


def run(space: FormulaSpace, judge: Judge, settings: Evolving, rng: np.random.Generator, following: Next) -> Evolved:
    drawn = [allowed(partial(space.sample, rng), settings.pps) for _ in range(settings.population)]
    rejected = sum(tries for _, tries in drawn)
    population = ranked([(judge(formula), formula) for formula, _ in drawn])
    curve, wins = [population[0][0]], 0
    for _ in range(settings.generations):
        formula, tries = allowed(partial(following, population, rng), settings.pps)
        fitness = judge(formula)
        rejected += tries
        wins += fitness > curve[-1]
        curve.append(max(curve[-1], fitness))
        if not (settings.distinct and any(formula == other for _, other in population)):
            population = ranked([*population, (fitness, formula)])[: settings.population]
    counts = {"rejected": rejected, "stopped": judge.stopped, "scored": judge.scored, "invalid": judge.invalid}
    return Evolved(kept(judge), [finite(value) for value in curve], wins / max(1, settings.generations), counts)


def ranked(population: list[tuple[float, Formula]]) -> list[tuple[float, Formula]]:
    return sorted(population, key=lambda one: -one[0])


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def kept(judge: Judge) -> list[list[Any]]:
    shorter: dict[Formula, float] = {}
    for formula, fitness in judge.known.items():
        shorter.setdefault(formula.canonical(), fitness)
    return sorted(([fitness, formula.size, str(formula)] for formula, fitness in shorter.items()), key=order)


def allowed(draw: Callable[[], Formula], pps: bool) -> tuple[Formula, int]:
    """The next formula that the pruning strategy lets through, and how many it did not."""
    for tries in range(PATIENCE):
        formula = draw()
        if not pps or reject(formula) is None:
            return formula, tries
    raise Failed(f"the pruning strategy rejected {PATIENCE} formulas in a row; use --no-pps.")


def offspring(
    space: FormulaSpace, population: list[tuple[float, Formula]], settings: Evolving, rng: np.random.Generator
) -> Formula:
    """Two of the best, crossed or the first of them, then perhaps mutated (lines 7 to 9)."""
    pool = population[: max(2, round(settings.parents * len(population)))]
    one, other = (pool[int(place)][1] for place in rng.choice(len(pool), size=2, replace=False))
    child = crossed(space, one, other, rng) if rng.random() < settings.crossover else one
    if rng.random() < settings.mutation:
        return space.build(mutate(space.choices, space.config(child), rng))
    return child


def crossed(space: FormulaSpace, one: Formula, other: Formula, rng: np.random.Generator) -> Formula:
    """Each of (input, chain, input, chain, binary) from either parent; drawn again where both inputs are the same."""
    while True:
        left, right = (mixed(*pair, rng) for pair in zip(one.branches, other.branches, strict=True))
        if left.input != right.input:
            break
    left, right = sorted((left, right), key=lambda branch: space.inputs.index(branch.input))
    return replace(one, left=left, right=right, binary=either(one.binary, other.binary, rng))


def mixed(one: Branch, other: Branch, rng: np.random.Generator) -> Branch:
    return Branch(either(one.input, other.input, rng), either(one.chain, other.chain, rng))


def either(one: Any, other: Any, rng: np.random.Generator) -> Any:
    return one if rng.random() < 0.5 else other


def sampled(trial: Trial, rows: Mask, count: int, rng: np.random.Generator) -> Mask:
    """So many of the networks that have these rows, with all of their rows there; 0 for all."""
    names = np.unique(trial.networks[rows])
    if count == 0 or count >= len(names):
        return rows
    return np.asarray(rows & np.isin(trial.networks, rng.choice(names, size=count, replace=False)))
