"""A sampler: hill climbing with random weights of the objectives (random scalarization, Paria et al. 2020)."""

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Config, mutate, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler


class Climber(ProposalRule):
    """A random neighbour of the best config so far, best by other weights in every trial."""

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        scored = [trial for trial in tried if trial.losses is not None]
        if not scored:
            return sample(self.choices, rng)
        losses = np.array([trial.losses for trial in scored])  # trials x objectives, lower is better
        spread = np.ptp(losses, axis=0)
        scaled = (losses - losses.min(axis=0)) / np.where(spread > 0, spread, 1)
        best = int((scaled @ rng.dirichlet(np.ones(losses.shape[1]))).argmin())
        return mutate(self.choices, scored[best].config, rng)


CLIMBER = Sampler("hill climbing: a neighbour of the best config under random weights", Climber)
