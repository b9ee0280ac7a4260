"""The gradient of every text's own loss with respect to a mask over all heads and units, at mask one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss, evaluating, record_effects, sum_texts
from archwright.subnet.slicing import head_owners


@dataclass(frozen=True)
class MaskGradients:
    """One recording from which head scores, the Fisher diagonal and its blocks follow."""

    heads: list[torch.Tensor]
    """Per layer: texts x heads"""
    units: list[torch.Tensor]
    """Per layer: texts x units"""


@dataclass(frozen=True)
class Reader:
    """The linear that reads a layer's heads or units, and which of them each of its columns belongs to."""

    linear: Any
    """None where there are none."""
    owners: torch.Tensor
    """One number per column."""
    parts: int
    """How many heads or units there are."""

    def sum_parts(self, columns: torch.Tensor) -> torch.Tensor:
        """Sums over the columns of each head or unit; the columns lie in the last dimension."""
        sums = columns.new_zeros(*columns.shape[:-1], self.parts)
        return sums.index_add_(-1, self.owners.to(columns.device), columns)


def head_reader(network: PrunedNetwork, place: int) -> Reader:
    """What mixes the heads of a layer."""
    placed = network.placed_layers()[place]
    mix = placed.layer.get_submodule(placed.parts.mix) if placed.heads else None
    return Reader(mix, torch.tensor(head_owners(network.config, placed.shape), dtype=torch.long), placed.heads)


def unit_reader(network: PrunedNetwork, place: int) -> Reader:
    """What adds up the units of a layer."""
    placed = network.placed_layers()[place]
    down = placed.layer.get_submodule(placed.parts.down) if placed.units else None
    return Reader(down, torch.arange(placed.units), placed.units)


def mask_gradients(
    network: PrunedNetwork, batches: Iterable[Any], loss: Loss, *, span: int | None = None
) -> MaskGradients:
    """Gradients with respect to the masks of all heads and units, text by text, or for every `span` tokens of them."""
    places = range(len(network.config.layers))
    heads, units = ([reader(network, place) for place in places] for reader in (head_reader, unit_reader))
    rows = list(per_text(network, batches, loss, heads + units, span))
    return MaskGradients(
        heads=[torch.cat(parts) for parts in zip(*(row[: len(heads)] for row in rows), strict=True)],
        units=[torch.cat(parts) for parts in zip(*(row[len(heads) :] for row in rows), strict=True)],
    )


def per_text(
    network: PrunedNetwork, batches: Iterable[Any], loss: Loss, readers: list[Reader], span: int | None = None
) -> Iterator[list[torch.Tensor]]:
    """For every batch and reader: texts x heads (or units), the sum over a text's tokens of activation x gradient.

    A mask multiplies what a reader reads, so this sum is the gradient with respect to the mask; the batch's loss is a
    mean over its texts, which share nothing, so each row is the gradient of one text's own loss.
    """
    linears = [reader.linear for reader in readers if reader.linear is not None]
    with evaluating(network), torch.enable_grad():
        for batch in batches:
            effects = record_effects(network, linears, batch, loss)
            texts = len(batch.targets)
            yield [reader.sum_parts(text_effects(reader, effects, texts, span)) for reader in readers]


def text_effects(
    reader: Reader, effects: dict[nn.Module, torch.Tensor], texts: int, span: int | None = None
) -> torch.Tensor:
    """Texts (or pieces of them) x columns: the sum over the tokens of activation x gradient."""
    if reader.linear is None:
        return torch.zeros(texts, 0)
    return sum_texts(effects[reader.linear], texts, span)
