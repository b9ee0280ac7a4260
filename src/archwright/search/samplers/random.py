"""Random search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from archwright.search.choices import Choices, Config, sample
from archwright.search.history import PastTrial
from archwright.search.samplers.sampler import ProposalRule, Sampler


class Random(ProposalRule):
    """Draws every config anew (Bergstra & Bengio 2012)."""

    def __init__(self, choices: Choices, population: int | None = None) -> None:
        """A population means nothing here: no config depends on another."""
        super().__init__(choices)

    def propose(self, tried: Sequence[PastTrial], rng: np.random.Generator) -> Config:
        return sample(self.choices, rng)


SAMPLER = Sampler("random search: every config drawn anew", Random, together=True)
