"""Multi-objective local search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Config, mutate, sample
from archwright.search.front import pareto_mask
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule


class Local(ProposalRule):
    """A random neighbour of a random member of the current front (Klein et al. 2024, Algorithm 5)."""

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        scored = [one for one in tried if one.losses is not None]
        if not scored:
            return sample(self.choices, rng)
        members = np.flatnonzero(pareto_mask(np.array([one.losses for one in scored])))
        return mutate(self.choices, scored[int(rng.choice(members))].config, rng)
