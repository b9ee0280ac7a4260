"""LPZero's Algorithm 1: one offspring per generation, with or without its pruning strategy; random search beside it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from archwright.discovery.exhaustive import order
from archwright.discovery.fitness import Fitness, FitnessFunction
from archwright.discovery.folds import AIMS
from archwright.discovery.offspring import (
    Born,
    Offspring,
    Refusals,
    allowed,
    by_chance,
    of_parents,
    same,
    unless_exhausted,
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

    worth: Fitness
    birth: Offspring

    @property
    def formula(self) -> Formula:
        return self.birth.formula


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
    """With several aims: formulas that no other beats in all."""
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
    space: FormulaSpace, judge: FitnessFunction, settings: EvolutionSettings, rng: np.random.Generator
) -> EvolutionResult:
    """Algorithm 1: parents from the best share of the population, their offspring joins it, the worst leaves."""
    born = of_parents(space, settings.crossover, settings.mutation)
    return Search(space, judge, settings, int(rng.integers(1 << 62)), born).run()


def at_random(
    space: FormulaSpace, judge: FitnessFunction, settings: EvolutionSettings, rng: np.random.Generator
) -> EvolutionResult:
    """The baseline: as many formulas, each drawn by itself."""
    born = by_chance(space)
    return Search(space, judge, settings, int(rng.integers(1 << 62)), born, ahead=8 * AHEAD).run()


Population = list[Individual]


@dataclass
class Search:
    """One search; every generation has random numbers of its own, so that what comes next can be foreseen."""

    space: FormulaSpace
    judge: FitnessFunction
    settings: EvolutionSettings
    seed: int
    born: Born
    ahead: int = AHEAD
    refused: Refusals = field(default_factory=Refusals)

    def run(self) -> EvolutionResult:
        begun = perf_counter()
        population = self._first()
        curve, evaluations = [best(population)], [self.judge.counts.scored]
        wins: list[tuple[int, Individual]] = []
        for generation in range(1, self.settings.generations + 1):
            birth = self._next(population, generation)
            living = Individual(self.judge(birth.formula), birth)
            if living.worth.fitness > curve[-1]:
                wins.append((generation, living))
            curve.append(max(curve[-1], living.worth.fitness))
            evaluations.append(self.judge.counts.scored)
            population = self.joined(population, living)
        return self._told(population, curve, evaluations, wins, perf_counter() - begun)

    def _first(self) -> Population:
        """Formulas drawn at random."""
        rng, births, seen = np.random.default_rng((self.seed, 0)), [], self._seen(set())
        draw = partial(by_chance(self.space), (), rng)
        for _ in range(self.settings.population):
            births.append(self._counted(*allowed(draw, pps=self.settings.pps, seen=seen)))
            seen = self._seen({same(birth.formula) for birth in births})
        self.judge.prepare([birth.formula for birth in births])
        return self.ranked([Individual(self.judge(birth.formula), birth) for birth in births])

    def _next(self, population: Population, generation: int) -> Offspring:
        birth = self._counted(*self._birth(population, generation, set()))
        if self.judge.table.lazy and same(birth.formula) not in self.judge.known:
            self.judge.prepare(self.foreseen(population, generation))
        return birth

    def _birth(self, population: Population, generation: int, foreseen: set[Formula]) -> tuple[Offspring, Refusals]:
        rng = np.random.default_rng((self.seed, generation))
        pool = [one.formula for one in population[: max(2, round(self.settings.parents * len(population)))]]
        exhausting = unless_exhausted(self.born, self.space, pool, rng)
        draw = exhausting if self.settings.distinct else partial(self.born, pool, rng)
        return allowed(draw, pps=self.settings.pps, seen=self._seen(foreseen))

    def _seen(self, also: set[Formula]) -> Callable[[Formula], bool]:
        known = self.judge.known
        if not self.settings.distinct:
            return lambda formula: False
        return lambda formula: same(formula) in known or same(formula) in also

    def _counted(self, birth: Offspring, refused: Refusals) -> Offspring:
        self.refused.rejected += refused.rejected
        self.refused.repeated += refused.repeated
        return birth

    def foreseen(self, population: Population, generation: int) -> list[Formula]:
        """New formulas of the next generations, as long as none of them gets among the parents."""
        found: dict[Formula, None] = {}
        last = min(self.settings.generations, generation + 4 * self.ahead)
        while len(found) < self.ahead and generation <= last:
            birth, _ = self._birth(population, generation, set(found))
            known = self.judge.known.get(same(birth.formula))
            if known is None:
                found[same(birth.formula)] = None
            else:
                population = self.joined(population, Individual(known, birth))
            generation += 1
        return list(found)

    def joined(self, population: Population, one: Individual) -> Population:
        return self.ranked([*population, one])[: self.settings.population]

    def ranked(self, population: Population) -> Population:
        """The best first; with several aims those on the front, the lonely ones before the crowded (NSGA-II)."""
        if self.judge.trial.fitness in AIMS:
            return nondominated(population)
        return sorted(population, key=lambda one: -one.worth.fitness)

    def _told(
        self,
        population: Population,
        curve: list[float],
        evaluations: list[int],
        wins: list[tuple[int, Individual]],
        seconds: float,
    ) -> EvolutionResult:
        aims = self.judge.trial.fitness in AIMS
        known = {str(formula): worth.aims for formula, worth in self.judge.known.items() if worth.aims} if aims else {}
        return EvolutionResult(
            best=kept(self.judge.known.items()),
            curve=[finite(value) for value in curve],
            evaluations=evaluations,
            winning_rate=len(wins) / max(1, self.settings.generations),
            different=len({same(one.formula) for one in population}),
            front=fronted(known),
            family=family(wins[-1], self.judge) if wins else None,
            counts=asdict(self.judge.counts) | asdict(self.refused),
            seconds=seconds,
        )


def best(population: Population) -> float:
    return max(one.worth.fitness for one in population)


def nondominated(population: Population) -> Population:
    """What is no proxy stands last."""
    able = [one for one in population if one.worth.aims]
    if not able:
        return population
    rank, room = standing(-np.array([one.worth.aims for one in able]))
    places = sorted(range(len(able)), key=lambda place: (rank[place], -room[place]))
    return [*(able[place] for place in places), *(one for one in population if not one.worth.aims)]


def fronted(known: dict[str, tuple[float, ...]]) -> list[str]:
    if not known:
        return []
    rank, _ = standing(-np.array(list(known.values())))
    return [text for text, place in zip(known, rank, strict=True) if not place]


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def kept(known: Iterable[tuple[Formula, Fitness]]) -> list[list[Any]]:
    rows = [[worth.fitness, formula.size, str(formula)] for formula, worth in known if worth.aims]
    return sorted(rows, key=order)


def family(win: tuple[int, Individual], judge: FitnessFunction) -> dict[str, Any]:
    """Two parents and the child, with what each is worth."""
    generation, one = win
    birth = one.birth
    parents = [told(parent, judge.known[same(parent)].fitness) for parent in birth.parents]
    crossed = {"formula": str(birth.crossed), "json": birth.crossed.as_json()} if birth.crossed else None
    child = told(birth.formula, one.worth.fitness)
    return {"generation": generation, "parents": parents, "crossed": crossed, "child": child}


def told(formula: Formula, fitness: float) -> dict[str, Any]:
    return {"formula": str(formula), "json": formula.as_json(), "fitness": finite(fitness)}


def finalists(found: Sequence[EvolutionResult], most: int) -> list[list[Any]]:
    """Of each search: the best, the best of every size, and the front; [fitness, size, formula]."""
    rows: dict[str, list[Any]] = {}
    for one in found:
        sizes = {row[1]: row for row in reversed(one.best)}
        front = set(one.front)
        chosen = [*one.best[:most], *sizes.values(), *(row for row in one.best if row[2] in front)]
        rows |= {row[2]: row for row in chosen}
    return list(rows.values())
