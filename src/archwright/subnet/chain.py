"""A chain of sub-networks, one for every size: heads and units by Fisher information, how many of each by a knapsack.

Inside a layer the heads (and the units) stand in the order of their Fisher information, so every sub-network keeps a
prefix of them, and a smaller one lies inside a larger one. How long each prefix is differs from layer to layer: for a
given cost the knapsack of Kwon et al. (2022, Algorithm 1) spends it where the least information is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec

Array = NDArray[np.float64]

FEWEST = 0.03
"""A sub-layer of which less than this share is left goes as a whole: it costs time and does next to nothing."""
SMALLEST = 0.1
"""Share of the cost at the lower end of the chain."""
FIRST_SMALLEST = 0.7
"""Where the lower end is when the training of a super-network begins; it falls to SMALLEST over its first half."""
STEP = 2.0
"""What one step of balance or tilt multiplies the Fisher information of a sub-layer by."""


@dataclass(frozen=True)
class CostTable:
    """What heads and units cost, layer by layer: entry k of an array is the cost of keeping k of them, entry 0 is 0."""

    heads: tuple[Array, ...]
    units: tuple[Array, ...]
    fixed: float = 0.0
    """What every sub-network costs beside them, where shares are meant to include it."""

    @property
    def total(self) -> float:
        """Of the whole network."""
        return self.fixed + float(sum(costs[-1] for costs in (*self.heads, *self.units)))


def count_costs(anatomy: Anatomy, measure: Callable[[SubnetSpec], float], *, fixed: bool = False) -> CostTable:
    """The table of a counted cost, which is linear in heads and units but for what goes with the last of them."""
    empty = [LayerSpec(0, 0)] * anatomy.layers
    nothing = measure(tuple(empty))

    def column(layer: int, spec: Callable[[int], LayerSpec], full: int) -> Array:
        if not full:
            return np.zeros(1)
        first, last = (measure((*empty[:layer], spec(k), *empty[layer + 1 :])) - nothing for k in (1, full))
        return np.concatenate([[0.0], np.linspace(first, last, full)])

    layers = list(enumerate(anatomy.full_layers))
    return CostTable(
        heads=tuple(column(place, lambda k: LayerSpec(k, 0), layer.heads) for place, layer in layers),
        units=tuple(column(place, lambda k: LayerSpec(0, k), layer.units) for place, layer in layers),
        fixed=nothing if fixed else 0.0,
    )


@dataclass(frozen=True, eq=False)
class Chain:
    """Sub-networks by depth, share of the cost, and a balance between heads and units."""

    head_scores: tuple[Array, ...]
    """Fisher information of every head, layer by layer, the largest first."""
    unit_scores: tuple[Array, ...]
    layer_order: tuple[int, ...]
    """The layer to keep longest first."""
    costs: CostTable

    def spec(
        self, share: float, depth: int | None = None, *, balance: float = 0.0, tilts: Sequence[Sequence[float]] = ()
    ) -> SubnetSpec:
        """The sub-network within this share of the whole network's cost that loses the least Fisher information.

        `depth` is how many layers may be in it. `balance` counts heads for more than units, by factors of STEP; `tilts`
        (a pair for the heads and the units of every layer) does so for single sub-layers: what they win the others
        lose, at the same cost.
        """
        layers = sorted(self.layer_order[:depth])
        tilts = tilts or [(0.0, 0.0)] * len(self.layer_order)
        heads = Ranking.of(layers, self.head_scores, self.costs.heads, [balance + tilt for tilt, _ in tilts])
        units = Ranking.of(layers, self.unit_scores, self.costs.units, [tilt for _, tilt in tilts])
        budget = share * self.costs.total - self.costs.fixed
        budget += 1e-9 * self.costs.total  # sums of costs are rounded, and the whole must fit into a share of one
        fitting = np.flatnonzero(heads.cost <= budget)
        rooms = np.searchsorted(units.cost, budget - heads.cost[fitting], side="right") - 1
        if not len(fitting):
            return (LayerSpec(0, 0),) * len(self.layer_order)
        best = int(np.argmin(heads.lost[fitting] + units.lost[rooms]))
        return tuple(
            LayerSpec(*pair)
            for pair in zip(heads.counts(int(fitting[best])), units.counts(int(rooms[best])), strict=True)
        )

    def draw(self, rng: np.random.Generator, progress: float, smallest: float = SMALLEST) -> SubnetSpec:
        """A random one for a step of training, uniform in its share of the cost; `progress` of the training is 0 to 1.

        Half of them have all layers, the others any depth at which the share can be reached.
        """
        lowest = smallest + (FIRST_SMALLEST - smallest) * max(0.0, 1 - 2 * progress)
        share, layers = float(rng.uniform(lowest, 1.0)), len(self.layer_order)
        depth = int(rng.integers(max(1, int(np.ceil(share * layers))), layers + 1))
        return self.spec(share, layers if rng.random() < 0.5 else depth)


@dataclass(frozen=True)
class Ranking:
    """The heads (or the units) of some layers from the most to the least informative, and what the first n mean."""

    layer: NDArray[np.int64]
    """The layer of each."""
    cost: Array
    """At n: of the first n."""
    lost: Array
    """At n: the summed information of all but the first n."""
    full: tuple[int, ...]
    """How many of them every layer of the network has."""

    @classmethod
    def of(
        cls, layers: Sequence[int], scores: Sequence[Array], costs: Sequence[Array], tilts: Sequence[float]
    ) -> Ranking:
        layer = np.concatenate([np.full(len(scores[place]), place) for place in layers])
        worth = np.concatenate([scores[place] * STEP ** tilts[place] for place in layers])
        steps = np.concatenate([np.diff(costs[place]) for place in layers])
        order = np.argsort(-worth, kind="stable")
        lost = np.append(np.cumsum(worth[order][::-1])[::-1], 0.0)
        return cls(layer[order], np.append(0.0, np.cumsum(steps[order])), lost, tuple(map(len, scores)))

    def counts(self, n: int) -> list[int]:
        """How many of the first n each layer has; none where it would be fewer than FEWEST of the layer's."""
        kept = np.bincount(self.layer[:n], minlength=len(self.full))
        return [int(count) if count >= FEWEST * full else 0 for count, full in zip(kept, self.full, strict=True)]
