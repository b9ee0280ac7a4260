"""NSGA-II on configs: works on every choice, bit by bit on packed switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from archwright.search.choices import Choices, Config, crossover, dimensions, mutate, sample
from archwright.search.front import standing
from archwright.search.history import Tried
from archwright.search.samplers.sampler import Rule

POPULATION = 20
CROSSOVER = 0.9


@dataclass(frozen=True)
class Parent:
    """A survivor: the lower its rank, then the more room around it, the better."""

    one: Tried
    rank: int
    room: float


class Nsga2(Rule):
    """Deb et al. 2002: generations of 20, the best of parents and children survive, tournaments choose who mates.

    The generation of a trial is its index divided by the population size, so nothing has to be stored, and trials that
    failed leave no gap. Those over a limit follow all others, the nearest to passing first (constrained domination).
    """

    def __init__(self, choices: Choices) -> None:
        super().__init__(choices)
        size = max(dimensions(choices), 1)
        self._mutation = 1 - (1 - 1 / size) ** size  # that any dimension changes when each does at rate 1/size
        self._parents: dict[int, list[Parent]] = {0: []}

    def propose(self, tried: Sequence[Tried], rng: np.random.Generator) -> Config:
        parents = self._parents_of(len(tried) // POPULATION, tried)
        if not parents:
            return sample(self.choices, rng)
        one, other = _tournament(parents, rng), _tournament(parents, rng)
        child = crossover(self.choices, one, other, rng) if rng.random() < CROSSOVER else one
        return mutate(self.choices, child, rng) if rng.random() < self._mutation else child

    def _parents_of(self, generation: int, tried: Sequence[Tried]) -> list[Parent]:
        """Survivors after each generation in turn; kept once all of a generation was told."""
        start = max(known for known in self._parents if known <= generation)
        parents, settled = self._parents[start], True
        for step in range(start, generation):
            children = tried[step * POPULATION : (step + 1) * POPULATION]
            parents = survivors([parent.one for parent in parents] + [child for child in children if child.told])
            settled = settled and all(child.told for child in children)
            if settled:
                self._parents[step + 1] = parents
        return parents


def survivors(pool: Sequence[Tried], count: int = POPULATION) -> list[Parent]:
    """The best `count`: by rank, within a rank by room; then those over a limit, the nearest to passing first."""
    scored = [one for one in pool if one.losses is not None]
    misfits = sorted((one for one in pool if one.losses is None), key=lambda one: one.misfit)
    chosen = _ranked(scored)[:count]
    worst = max((parent.rank for parent in chosen), default=0)
    return chosen + [Parent(one, worst + 1 + place, 0.0) for place, one in enumerate(misfits[: count - len(chosen)])]


def _ranked(scored: Sequence[Tried]) -> list[Parent]:
    if not scored:
        return []
    losses = np.array([one.losses for one in scored])
    rank, room = standing(losses)
    order = np.lexsort((-room, rank))
    return [Parent(scored[place], int(rank[place]), float(room[place])) for place in order]


def _tournament(parents: Sequence[Parent], rng: np.random.Generator) -> Config:
    rivals = [parents[int(place)] for place in rng.integers(len(parents), size=2)]
    return min(rivals, key=lambda parent: (parent.rank, -parent.room)).one.config
