"""A genetic algorithm on configs, as searches for small language models use it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Choices, Config, crossover, mutate_each, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.nsga2 import Generations
from archwright.search.samplers.sampler import ProposalRule, Sampler

POPULATION = 50
MUTATION = 0.1


class Genetic(ProposalRule):
    """W-PCA, Section 6.2.1: generations of 50, uniform crossover of two parents, each choice changed at rate 0.1.

    The best 50 designs of all so far are the population, so none that is good is lost; parents are two different ones
    of its better half. With several objectives better is: lower rank by non-dominated sorting, then more room.
    """

    def __init__(self, choices: Choices, population: int | None = None) -> None:
        super().__init__(choices)
        self._generations = Generations(population or POPULATION)

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        population = self._generations.parents(tried)
        if not population:
            return sample(self.choices, rng)
        better = population[: max(2, (len(population) + 1) // 2)]
        first, second = rng.permutation(len(better))[:2] if len(better) > 1 else (0, 0)
        child = crossover(self.choices, better[first].trial.config, better[second].trial.config, rng)
        return mutate_each(self.choices, child, rng, rate=MUTATION)


SAMPLER = Sampler(
    "genetic algorithm: generations of 50 from the better half, each choice mutated at 0.1", Genetic, together=True
)
