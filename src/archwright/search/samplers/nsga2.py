"""NSGA-II on configs: works on every choice, bit by bit on packed switches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Choices, Config, crossover, dimensions, mutate, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.generations import Generations, Parent
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


SAMPLER = Sampler("NSGA-II: generations of 20 with crossover and mutation", Nsga2, together=True)
