"""How much each head and unit matters."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss
from archwright.subnet.keep import make_of
from archwright.subnet.pruning.gradients import MaskGradients, head_reader, layers_of, per_text


def head_scores(network: PrunedNetwork, batches: Iterable[Any], loss: Loss) -> torch.Tensor:
    """Layers x heads: mean over texts of |d loss / d mask|, each layer divided by its l2 norm (Michel et al. 2019)."""
    readers = [head_reader(network, place) for place in range(len(network.config.layers))]
    rows = per_text(network, batches, loss, readers)
    gradients = torch.cat([torch.stack(row, 1) for row in rows])  # texts x layers x heads
    return torch.nn.functional.normalize(gradients.abs().mean(0), dim=-1)


def fisher_diagonal(gradients: MaskGradients) -> tuple[torch.Tensor, torch.Tensor]:
    """Layers x heads and layers x units: mean over texts of the squared gradient (Kwon et al. 2022, Equation 6)."""
    return gradients.heads.square().mean(0), gradients.units.square().mean(0)


@torch.no_grad()
def magnitude_scores(network: PrunedNetwork) -> tuple[torch.Tensor, torch.Tensor]:
    """Layers x heads and layers x units: sum of the squared weights that go with each, biases left out.

    The square of the l2 norm, because sums of squares of parts of different size can be compared per parameter. Keys
    and values that several heads share go with none of them.
    """
    places = range(len(network.config.layers))
    heads = torch.stack([head_weights(network, place) for place in places])
    return heads, torch.stack([unit_weights(network, place) for place in places])


def head_weights(network: PrunedNetwork, place: int) -> torch.Tensor:
    family, layer, reader = network.config.family, layers_of(network)[place], head_reader(network, place)
    own = reader.gathered(squares(layer, family.mix, 0) + squares(layer, family.query, 1))
    if not make_of(network.config).shared_keys:
        keys = squares(layer, family.key, 1) + squares(layer, family.value, 1)
        own += keys.reshape(reader.parts, -1).sum(-1)
    return own


def unit_weights(network: PrunedNetwork, place: int) -> torch.Tensor:
    family, layer = network.config.family, layers_of(network)[place]
    writers = [path for path in (family.up, family.gate) if path]
    return squares(layer, family.down, 0) + sum(squares(layer, path, 1) for path in writers)


def squares(layer: nn.Module, path: str, dim: int) -> torch.Tensor:
    """Of a linear's columns (dim 0 is summed) or rows (dim 1 is): squared length."""
    return layer.get_submodule(path).weight.square().sum(dim)
