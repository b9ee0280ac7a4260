"""Multi-objective local search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Config, mutate, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler


class Local(ProposalRule):
    """A random neighbour of a random member of the current front (Klein et al. 2024, Algorithm 5)."""

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        scored = [trial for trial in tried if trial.losses is not None]
        if not scored:
            return sample(self.choices, rng)
        from archwright.statistics.pareto import pareto_mask  # loads scipy, which --help need not wait for

        members = np.flatnonzero(pareto_mask(np.array([trial.losses for trial in scored])))
        return mutate(self.choices, scored[int(rng.choice(members))].config, rng)


SAMPLER = Sampler("local search: a neighbour of a random member of the current front", Local)
