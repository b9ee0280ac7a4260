"""LPZero's Algorithm 1: one offspring per generation, with or without its pruning strategy; random search beside it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import count
from time import perf_counter
from typing import Any

import numpy as np

from archwright.discovery.cross_fitting import best_first
from archwright.discovery.fitness import Fitness, FitnessFunction, canonical_formula
from archwright.discovery.offspring import (
    FRESH,
    Offspring,
    Proposer,
    Refusals,
    child_proposer,
    draw_offspring,
    random_proposer,
)
from archwright.proxies.formulas.formula import Formula
from archwright.search.front import standing
from archwright.spaces.formulas import FormulaSpace

AHEAD = 12
"""New formulas that are foreseen, where their statistics have to be taken: many at once are cheaper."""


@dataclass(frozen=True)
class EvolutionSettings:
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
    """Not in the paper: an offspring that was scored before is drawn again."""


@dataclass(frozen=True)
class Individual:
    """One of a population."""

    fitness: Fitness
    offspring: Offspring

    @property
    def formula(self) -> Formula:
        return self.offspring.formula


Population = list[Individual]
"""The best first."""


@dataclass(frozen=True)
class EvolutionResult:
    """What a search found, and what it took."""

    best: list[list[Any]]
    """[fitness, size, formula] of everything scored, the best first."""
    curve: list[float | None]
    """Best fitness so far, after every generation."""
    evaluations: list[int]
    """Different formulas scored on the whole sample until then."""
    winning_rate: float
    """Share of offspring that improve on the best so far (Table 5)."""
    different: int
    """Formulas in the last population that differ."""
    front: list[str]
    """With several objectives: formulas that no other beats in all."""
    family: dict[str, Any] | None
    """Parents of the best and how it came of them; None where it was drawn at random."""
    counts: dict[str, int]
    seconds: float = field(compare=False)

    def as_dict(self) -> dict[str, Any]:
        """What a report tells."""
        return {
            **{name: getattr(self, name) for name in ("curve", "evaluations", "winning_rate", "different", "family")},
            **self.counts,
            "initial": self.curve[0],
            "seconds": self.seconds,
            "best": self.best[:1],
        }


def evolve(
    space: FormulaSpace, fitness: FitnessFunction, settings: EvolutionSettings, rng: np.random.Generator
) -> EvolutionResult:
    """Algorithm 1: parents from the best share of the population, their offspring joins it, the worst leaves."""
    proposer = child_proposer(space, settings.crossover, settings.mutation)
    return Search(space, fitness, settings, int(rng.integers(1 << 62)), proposer).run()


def search_randomly(
    space: FormulaSpace, fitness: FitnessFunction, settings: EvolutionSettings, rng: np.random.Generator
) -> EvolutionResult:
    """The baseline: as many formulas, each drawn by itself."""
    proposer = random_proposer(space)
    return Search(space, fitness, settings, int(rng.integers(1 << 62)), proposer, ahead=8 * AHEAD).run()


@dataclass
class Search:
    """One search; every generation has random numbers of its own, so that what comes next can be foreseen."""

    space: FormulaSpace
    fitness: FitnessFunction
    settings: EvolutionSettings
    seed: int
    proposer: Proposer
    ahead: int = AHEAD
    refusals: Refusals = field(default_factory=Refusals)

    def run(self) -> EvolutionResult:
        start = perf_counter()
        population = self._first_population()
        curve = [max(individual.fitness.value for individual in population)]
        evaluations = [self.fitness.counts.scored]
        wins: list[tuple[int, Individual]] = []
        for generation in range(1, self.settings.generations + 1):
            offspring = self._next_offspring(population, generation)
            individual = Individual(self.fitness(offspring.formula), offspring)
            if individual.fitness.value > curve[-1]:
                wins.append((generation, individual))
            curve.append(max(curve[-1], individual.fitness.value))
            evaluations.append(self.fitness.counts.scored)
            population = self._insert(population, individual)
        known = self.fitness.known
        valid = {formula: fitness for formula, fitness in known.items() if fitness.objectives}
        best = [[fitness.value, formula.size, str(formula)] for formula, fitness in valid.items()]
        return EvolutionResult(
            best=sorted(best, key=best_first),
            curve=[finite_or_none(value) for value in curve],
            evaluations=evaluations,
            winning_rate=len(wins) / max(1, self.settings.generations),
            different=len({canonical_formula(individual.formula) for individual in population}),
            front=front_of(valid) if self._several_objectives else [],
            family=describe_family(*wins[-1], self.fitness) if wins else None,
            counts=asdict(self.fitness.counts) | asdict(self.refusals),
            seconds=perf_counter() - start,
        )

    @property
    def _several_objectives(self) -> bool:
        return bool(self.fitness.folded.measure.objectives)

    def _first_population(self) -> Population:
        """Formulas drawn at random."""
        rng, drawn, propose = np.random.default_rng((self.seed, 0)), [], random_proposer(self.space)
        formulas: set[Formula] = set()
        for _ in range(self.settings.population):
            drawn.append(self._draw(lambda: propose((), rng), formulas, self.refusals))
            formulas.add(canonical_formula(drawn[-1].formula))
        self.fitness.prefetch([offspring.formula for offspring in drawn])
        return self._sort([Individual(self.fitness(offspring.formula), offspring) for offspring in drawn])

    def _next_offspring(self, population: Population, generation: int) -> Offspring:
        offspring = self._make_offspring(population, generation, set(), self.refusals)
        if self.fitness.table.lazy and canonical_formula(offspring.formula) not in self.fitness.known:
            self.fitness.prefetch(self._foresee(population, generation))
        return offspring

    def _make_offspring(
        self, population: Population, generation: int, foreseen: set[Formula], refusals: Refusals
    ) -> Offspring:
        """The offspring of a generation, from the best share of the population."""
        rng = np.random.default_rng((self.seed, generation))
        parents = max(2, round(self.settings.parents * len(population)))
        pool = [individual.formula for individual in population[:parents]]
        tries = count()

        def draw() -> Offspring:  # at random once the pool seems to have no new children
            fresh = not self.settings.distinct or next(tries) < FRESH
            return (self.proposer if fresh else random_proposer(self.space))(pool, rng)

        return self._draw(draw, foreseen, refusals)

    def _draw(self, draw: Callable[[], Offspring], also_known: set[Formula], refusals: Refusals) -> Offspring:
        """The next draw that is allowed; what is refused on the way is added to the refusals."""
        known, distinct = self.fitness.known, self.settings.distinct

        def is_known(formula: Formula) -> bool:
            return distinct and (canonical_formula(formula) in known or canonical_formula(formula) in also_known)

        offspring, refused = draw_offspring(draw, pps=self.settings.pps, is_known=is_known)
        refusals.rejected += refused.rejected
        refusals.repeated += refused.repeated
        return offspring

    def _foresee(self, population: Population, generation: int) -> list[Formula]:
        """New formulas of the next generations, as long as none of them gets among the parents."""
        foreseen: dict[Formula, None] = {}
        last = min(self.settings.generations, generation + 4 * self.ahead)
        while len(foreseen) < self.ahead and generation <= last:
            offspring = self._make_offspring(population, generation, set(foreseen), Refusals())
            canonical = canonical_formula(offspring.formula)
            if canonical in self.fitness.known:
                population = self._insert(population, Individual(self.fitness.known[canonical], offspring))
            else:
                foreseen[canonical] = None
            generation += 1
        return list(foreseen)

    def _insert(self, population: Population, individual: Individual) -> Population:
        """The worst leaves."""
        return self._sort([*population, individual])[: self.settings.population]

    def _sort(self, population: Population) -> Population:
        """The best first; with several objectives those on the front, the lonely ones before the crowded (NSGA-II)."""
        if self._several_objectives:
            return sort_by_fronts(population)
        return sorted(population, key=lambda individual: -individual.fitness.value)


def sort_by_fronts(population: Population) -> Population:
    """Front by front; what is no proxy stands last."""
    valid = [individual for individual in population if individual.fitness.objectives]
    if not valid:
        return population
    rank, room = standing(-np.array([individual.fitness.objectives for individual in valid]))
    order = sorted(range(len(valid)), key=lambda index: (rank[index], -room[index]))
    invalid = (individual for individual in population if not individual.fitness.objectives)
    return [*(valid[index] for index in order), *invalid]


def front_of(valid: dict[Formula, Fitness]) -> list[str]:
    """Those that no other beats in all objectives."""
    if not valid:
        return []
    rank, _ = standing(-np.array([fitness.objectives for fitness in valid.values()]))
    return [str(formula) for formula, level in zip(valid, rank, strict=True) if not level]


def finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def describe_family(generation: int, child: Individual, fitness: FitnessFunction) -> dict[str, Any]:
    """Two parents and the child, with the fitness of each."""

    def describe(formula: Formula, value: float) -> dict[str, Any]:
        return {"formula": str(formula), "json": formula.as_json(), "fitness": finite_or_none(value)}

    parents = child.offspring.parents
    crossed = child.offspring.crossed
    return {
        "generation": generation,
        "parents": [describe(parent, fitness.known[canonical_formula(parent)].value) for parent in parents],
        "crossed": {"formula": str(crossed), "json": crossed.as_json()} if crossed else None,
        "child": describe(child.formula, child.fitness.value),
    }
