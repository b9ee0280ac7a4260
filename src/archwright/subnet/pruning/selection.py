"""From scores to what a sub-network of a wanted size keeps."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, WeightCount, as_part, nonembedding_parameters

Scores = Sequence[NDArray[np.float64]]
"""One number for every head (or unit) of a layer, layer by layer."""
Switches = Sequence[NDArray[np.bool_]]


def spec_from_masks(heads: Switches, units: Switches) -> SubnetSpec:
    """What is switched on in every layer as positions."""
    pairs = zip(heads, units, strict=True)
    return tuple(LayerSpec(as_part(np.flatnonzero(h).tolist()), as_part(np.flatnonzero(u).tolist())) for h, u in pairs)


def select_heads(anatomy: Anatomy, scores: Scores, share: float) -> SubnetSpec | None:
    """Without the lowest heads, as few as reach this share of the non-embedding parameters; None: out of reach."""
    numbers = np.concatenate(
        [first + np.arange(layer.heads) for layer, first in zip(anatomy.full_layers, firsts(anatomy), strict=True)]
    )
    return shortest_removal(anatomy, numbers[np.argsort(np.concatenate(scores), kind="stable")], share)


def select_by_scores(anatomy: Anatomy, head_scores: Scores, unit_scores: Scores, share: float) -> SubnetSpec | None:
    """Without the heads and units of lowest score per parameter, as few as reach this share; None: out of reach."""
    worth = []
    for layer, heads, units in zip(anatomy.full_layers, head_scores, unit_scores, strict=True):
        whole = total(layer.cost(layer.heads, layer.units))
        per_head = whole - total(layer.cost(max(0, layer.heads - 1), layer.units))  # parameters that go with one
        per_unit = whole - total(layer.cost(layer.heads, max(0, layer.units - 1)))
        worth += [heads / max(1, per_head), units / max(1, per_unit)]
    return shortest_removal(anatomy, np.argsort(np.concatenate(worth), kind="stable"), share)


def select_randomly(anatomy: Anatomy, share: float, rng: np.random.Generator) -> SubnetSpec | None:
    """Without random heads and units, all equally likely, as few as reach this share; None: out of reach."""
    count = sum(layer.heads + layer.units for layer in anatomy.full_layers)
    return shortest_removal(anatomy, rng.permutation(count), share)


def total(cost: WeightCount) -> int:
    return cost.matrices + cost.vectors


def firsts(anatomy: Anatomy) -> NDArray[np.int64]:
    """The number of the first head of every layer, where heads and units are numbered as in `shortest_removal`."""
    ends = np.cumsum([layer.heads + layer.units for layer in anatomy.full_layers])
    return np.concatenate([[0], ends[:-1]]).astype(np.int64)


def shortest_removal(anatomy: Anatomy, order: NDArray[np.int64], share: float) -> SubnetSpec | None:
    """The whole network without the first n of `order`, with the smallest n that reaches the share.

    Heads and units are numbered layer by layer, a layer's heads before its units.
    """
    most = share * nonembedding_parameters(anatomy, anatomy.full)

    def fits(removed: int) -> bool:
        return nonembedding_parameters(anatomy, without(anatomy, order[:removed])) <= most

    removed = bisect_left(range(len(order) + 1), True, key=fits)
    return without(anatomy, order[:removed]) if removed <= len(order) else None


def without(anatomy: Anatomy, gone: NDArray[np.int64]) -> SubnetSpec:
    on = np.ones(sum(layer.heads + layer.units for layer in anatomy.full_layers), bool)
    on[gone] = False
    rows = np.split(on, firsts(anatomy)[1:])
    return spec_from_masks(
        [row[: layer.heads] for row, layer in zip(rows, anatomy.full_layers, strict=True)],
        [row[layer.heads :] for row, layer in zip(rows, anatomy.full_layers, strict=True)],
    )
