"""NSGA-II on configs: works on every choice, bit by bit on packed switches. The genetic algorithm shares survivors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archwright.search.choices import Choices, Config, crossover, dimensions, mutate, sample
from archwright.search.front import standing
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler

POPULATION = 20
CROSSOVER = 0.9


class Nsga2(ProposalRule):
    """Deb et al. 2002: generations of 20, the best of parents and children survive, tournaments choose who mates."""

    def __init__(self, choices: Choices, population: int | None = None) -> None:
        super().__init__(choices)
        size = max(dimensions(choices), 1)
        self._mutation = 1 - (1 - 1 / size) ** size  # that any dimension changes when each does at rate 1/size
        self._generations = Generations(population or POPULATION)

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        parents = self._generations.parents(tried)
        if not parents:
            return sample(self.choices, rng)
        first, second = _tournament(parents, rng), _tournament(parents, rng)
        child = crossover(self.choices, first, second, rng) if rng.random() < CROSSOVER else first
        return mutate(self.choices, child, rng) if rng.random() < self._mutation else child


def _tournament(parents: Sequence[Parent], rng: np.random.Generator) -> Config:
    rivals = [parents[int(place)] for place in rng.integers(len(parents), size=2)]
    return min(rivals, key=lambda parent: (parent.rank, -parent.crowding)).trial.config


@dataclass(frozen=True)
class Parent:
    """A survivor: the lower its rank, then the larger its crowding distance, the better."""

    trial: PastTrial
    rank: int
    crowding: float


class Generations:
    """Survivors after each generation in turn; kept once all of a generation was told.

    Those who survive are the best of all before, found from the order of the trials alone: the generation of a trial is
    its index divided by the size of the population, so nothing has to be stored, and trials that failed leave no gap.
    Trials over a limit follow all others, the nearest to passing first (constrained domination).
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._parents: dict[int, list[Parent]] = {0: []}

    def parents(self, tried: Sequence[PastTrial]) -> list[Parent]:
        """Those whose children the next trial is one of, the best first; none in the first generation."""
        generation = len(tried) // self.size
        start = max(known for known in self._parents if known <= generation)
        parents, settled = self._parents[start], True
        for step in range(start, generation):
            children = tried[step * self.size : (step + 1) * self.size]
            pool = [parent.trial for parent in parents] + [child for child in children if child.finished]
            different = {trial.key: trial for trial in reversed(pool)}  # each config once, where it first appeared
            parents = survivors(list(different.values())[::-1], self.size)
            settled = settled and all(child.finished for child in children)
            if settled:
                self._parents[step + 1] = parents
        return parents


def survivors(pool: Sequence[PastTrial], count: int) -> list[Parent]:
    """The best `count`: by rank, then crowding; then those that violate a constraint, the nearest to passing first."""
    scored = [trial for trial in pool if trial.losses is not None]
    infeasible = sorted((trial for trial in pool if trial.losses is None), key=lambda trial: trial.violation)
    best: list[Parent] = []
    if scored:
        rank, room = standing(np.array([trial.losses for trial in scored]))
        order = np.lexsort((-room, rank))[:count]
        best = [Parent(scored[i], int(rank[i]), float(room[i])) for i in order]
    worst = max((parent.rank for parent in best), default=0)
    return best + [Parent(trial, worst + 1 + i, 0.0) for i, trial in enumerate(infeasible[: count - len(best)])]


SAMPLER = Sampler("NSGA-II: generations of 20 with crossover and mutation", Nsga2, together=True)
