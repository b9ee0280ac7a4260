"""How much each head and unit matters, and what a sub-network of a wanted size keeps by such scores."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss, Scores
from archwright.subnet.pruning.gradients import MaskGradients, head_reader, per_text
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, WeightCount, as_part, nonembedding_parameters

Arrays = Sequence[NDArray[np.float64]]
"""One number for every head (or unit) of a layer, layer by layer."""
Switches = Sequence[NDArray[np.bool_]]


def head_scores(network: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> Scores:
    """Of every head: mean over texts of |d loss / d mask|, each layer divided by its l2 norm (Michel et al. 2019)."""
    readers = [head_reader(network, place) for place in range(len(network.config.layers))]
    rows = zip(*per_text(network, batches, loss, readers), strict=True)
    means = [torch.cat(parts).abs().mean(0) for parts in rows]  # texts x heads of one layer
    return [torch.nn.functional.normalize(mean, dim=-1) for mean in means]


def fisher_diagonal(gradients: MaskGradients) -> tuple[Scores, Scores]:
    """Of every head and unit: mean over texts of the squared gradient (Kwon et al. 2022, Equation 6)."""
    heads, units = ([part.square().mean(0) for part in parts] for parts in (gradients.heads, gradients.units))
    return heads, units


@torch.no_grad()
def magnitude_scores(network: PrunedNetwork) -> tuple[Scores, Scores]:
    """Of every head and unit: sum of the squared weights that go with it, biases left out.

    The square of the l2 norm, because sums of squares of parts of different size can be compared per parameter. Keys
    and values that several heads share go with none of them.
    """
    heads, units = [], []
    for place, placed in enumerate(network.placed_layers()):
        layer, parts, reader = placed.layer, placed.parts, head_reader(network, place)
        own_heads = own_units = torch.zeros(0)
        if placed.heads:
            queries = sum(squares(layer, path, 1) for path in parts.query_writers)
            own_heads = reader.sum_parts(squares(layer, parts.mix, 0) + queries)
        if placed.heads and network.config.heads_go_by.takes_keys:
            keys = torch.stack([squares(layer, path, 1) for path in parts.key_writers]).sum(0)
            own_heads += keys.reshape(reader.parts, -1).sum(-1)
        if placed.units:
            own_units = squares(layer, parts.down, 0) + sum(squares(layer, path, 1) for path in parts.unit_writers)
        heads.append(own_heads)
        units.append(own_units)
    return heads, units


def as_array(scores: torch.Tensor) -> NDArray[np.float64]:
    return scores.double().cpu().numpy()


def squares(layer: nn.Module, path: str, dim: int) -> torch.Tensor:
    """Of a linear's columns (dim 0 is summed) or rows (dim 1 is): squared length."""
    return at_least_float32(layer.get_submodule(path).weight).square().sum(dim)


def spec_from_masks(heads: Switches, units: Switches) -> SubnetSpec:
    """What is switched on in every layer as positions."""
    pairs = zip(heads, units, strict=True)
    return tuple(LayerSpec(as_part(np.flatnonzero(h).tolist()), as_part(np.flatnonzero(u).tolist())) for h, u in pairs)


def select_heads(anatomy: Anatomy, scores: Arrays, share: float) -> SubnetSpec | None:
    """Without the lowest heads, as few as reach this share of the non-embedding parameters; None: out of reach."""
    numbers = np.concatenate(
        [first + np.arange(layer.heads) for layer, first in zip(anatomy.full_layers, firsts(anatomy), strict=True)]
    )
    return shortest_removal(anatomy, numbers[np.argsort(np.concatenate(scores), kind="stable")], share)


def select_by_scores(anatomy: Anatomy, head_scores: Scores, unit_scores: Arrays, share: float) -> SubnetSpec | None:
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
