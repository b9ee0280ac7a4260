"""The papers' way of running a sub-network: the whole network, with zeros. Slower; kept as the yardstick."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.slicing import attention_slice, remove_layers, replace_removed
from archwright.subnet.spec import SubnetSpec, count, positions


@contextmanager
def masked_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The model with heads and units outside `spec` set to zero just before the linear that reads them."""
    config = model.config
    with ExitStack() as undo:
        for placed, part in remove_layers(model, spec, undo):
            if count(part.heads):
                features = positions(attention_slice(config, placed.shape, part.heads).queries)
                mask_input(placed.layer.get_submodule(placed.parts.mix), features, undo)
            if count(part.units):
                mask_input(placed.layer.get_submodule(placed.parts.down), positions(part.units), undo)
            replace_removed(placed, part, undo)
        yield model


def mask_input(linear: nn.Module, kept: tuple[int, ...], undo: ExitStack) -> None:
    mask = torch.zeros(linear.in_features, dtype=linear.weight.dtype)
    mask[list(kept)] = 1
    handle = linear.register_forward_pre_hook(lambda _, inputs: (inputs[0] * mask.to(inputs[0].device),))
    undo.callback(handle.remove)


@contextmanager
def zeroed_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The public code's way, for timing only: every layer is computed, and what is gone is multiplied by zero.

    Where a sub-layer has nothing left its LayerNorm still acts, so the answer is another one than `masked`'s.
    """
    with ExitStack() as undo:
        for placed, part in zip(model.placed_layers(), spec, strict=True):
            if placed.heads:
                features = positions(attention_slice(model.config, placed.shape, part.heads).queries)
                mask_input(placed.layer.get_submodule(placed.parts.mix), features, undo)
            mask_input(placed.layer.get_submodule(placed.parts.down), positions(part.units), undo)
        yield model
