"""Multi-objective regularized evolution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Config, mutate, sample
from archwright.search.front import ranks
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler

POPULATION = 10
SAMPLE = 5


class Evolution(ProposalRule):
    """Mutates the best-ranked of a random few; the oldest leave (Real et al. 2019, ranks as in Klein et al. 2024, D).

    Members over a limit were never scored and do not join the population.
    """

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        told = sum(trial.finished for trial in tried)
        population = [trial for trial in tried if trial.losses is not None][-POPULATION:]
        if told < POPULATION or not population:
            return sample(self.choices, rng)
        rank = ranks(np.array([trial.losses for trial in population]))
        few = rng.permutation(len(population))[:SAMPLE]  # in random order, so that ties are broken at random
        return mutate(self.choices, population[min(few, key=lambda place: rank[place])].config, rng)


SAMPLER = Sampler("regularized evolution: mutates the best of 5 out of the 10 youngest", Evolution)
