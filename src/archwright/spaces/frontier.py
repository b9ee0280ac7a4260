"""Which sub-networks of a space do well for their size, as far as the training of the super-network has shown."""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from archwright.search import Config, mutate, sample
from archwright.spaces.subnetwork import SubnetSpace
from archwright.subnet.spec import SubnetSpec, nonembedding_parameters, sizes

MEMORY = 400
"""Sub-networks remembered; the oldest were seen with weights that are no longer there."""
BANDS = 8
"""Groups of about equal size that are compared among themselves."""
PENDING = 32
"""Draws whose loss may still be recorded: those of a few steps. Most strategies record none."""
BEST = 0.25
"""Share of a band that counts as near the front: a loss on one batch is too noisy for the very best alone."""


class Frontier:
    """Draws sub-networks at random or near the current front, and learns from the losses they had."""

    def __init__(self, space: SubnetSpace) -> None:
        self._space = space
        self._seen: deque[tuple[Config, float, float]] = deque(maxlen=MEMORY)
        self._drawn: dict[SubnetSpec, Config] = {}

    def random(self, rng: np.random.Generator, progress: float = 0.0) -> SubnetSpec:
        """Uniform, as the paper draws."""
        return self._remember(sample(self._space.choices, rng))

    def near(self, rng: np.random.Generator) -> SubnetSpec:
        """A neighbour (one choice changed) of a sub-network that did well for its size; uniform while none is known."""
        good = self.good()
        if not good:
            return self.random(rng)
        return self._remember(mutate(self._space.choices, good[int(rng.integers(len(good)))], rng))

    def record_loss(self, keep: SubnetSpec, excess: float) -> None:
        """The loss of a drawn sub-network minus the whole network's loss on the same batch.

        The network without any layer is not remembered: all of its neighbours but a few are itself.
        """
        config = self._drawn.pop(keep, None)
        if config is not None and any(map(any, sizes(keep))):
            self._seen.append((config, nonembedding_parameters(self._space.anatomy, keep), excess))

    def good(self) -> list[Config]:
        """The best quarter of every size band; nothing before each band can have four members."""
        if len(self._seen) < 4 * BANDS:
            return []
        by_size = sorted(self._seen, key=lambda one: one[1])
        bands = [by_size[i * len(by_size) // BANDS : (i + 1) * len(by_size) // BANDS] for i in range(BANDS)]
        return [one[0] for band in bands for one in sorted(band, key=lambda one: one[2])[: int(BEST * len(band))]]

    def state(self) -> dict[str, Any]:
        """JSON values from which `restore` goes on."""
        return {"seen": [list(one) for one in self._seen]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._seen = deque(((dict(c), float(size), float(e)) for c, size, e in state["seen"]), maxlen=MEMORY)

    def _remember(self, config: Config) -> SubnetSpec:
        keep = self._space.build(config)
        self._drawn[keep] = config
        while len(self._drawn) > PENDING:
            del self._drawn[next(iter(self._drawn))]
        return keep
