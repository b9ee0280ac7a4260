"""How much each head and unit matters."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss, Scores
from archwright.subnet.pruning.gradients import MaskGradients, head_reader, per_text


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
            own_heads = reader.sum_parts(squares(layer, parts.mix, 0) + squares(layer, parts.query, 1))
        if placed.heads and network.config.heads_go_by.takes_keys:
            keys = squares(layer, parts.key, 1) + squares(layer, parts.value, 1)
            own_heads += keys.reshape(reader.parts, -1).sum(-1)
        if placed.units:
            writers = [path for path in (parts.up, parts.gate) if path]
            own_units = squares(layer, parts.down, 0) + sum(squares(layer, path, 1) for path in writers)
        heads.append(own_heads)
        units.append(own_units)
    return heads, units


def as_array(scores: torch.Tensor) -> NDArray[np.float64]:
    return scores.double().cpu().numpy()


def squares(layer: nn.Module, path: str, dim: int) -> torch.Tensor:
    """Of a linear's columns (dim 0 is summed) or rows (dim 1 is): squared length."""
    return layer.get_submodule(path).weight.square().sum(dim)
