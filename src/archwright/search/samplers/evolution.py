"""Multi-objective regularized evolution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Config, mutate, sample
from archwright.search.front import ranks
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule

POPULATION = 10
SAMPLE = 5


class Evolution(ProposalRule):
    """Mutates the best-ranked of a random few; the oldest leave (Real et al. 2019, ranks as in Klein et al. 2024, D).

    Members over a limit were never scored and do not join the population.
    """

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        told = sum(one.told for one in tried)
        population = [one for one in tried if one.losses is not None][-POPULATION:]
        if told < POPULATION or not population:
            return sample(self.choices, rng)
        rank = ranks(np.array([one.losses for one in population]))
        few = rng.permutation(len(population))[:SAMPLE]  # in random order, so that ties are broken at random
        return mutate(self.choices, population[min(few, key=lambda place: rank[place])].config, rng)
