"""The papers' way of running a sub-network: the whole network, with zeros. Slower; kept as the yardstick."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.slicing import put_stand_ins, remove_layers, slice_layer
from archwright.subnet.spec import Part, SubnetSpec, positions


@contextmanager
def masked_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The model with heads and units outside `spec` set to zero just before the linear that reads them."""
    with ExitStack() as undo:
        for placed, part in remove_layers(model, spec, undo):
            for path, features in slice_layer(model.config, placed, part).inputs.items():
                mask_input(placed.layer.get_submodule(path), features, undo)
            put_stand_ins(placed, part, undo)
        yield model


def mask_input(linear: nn.Module, features: Part, undo: ExitStack) -> None:
    mask = torch.zeros(linear.in_features, dtype=linear.weight.dtype)
    mask[list(positions(features))] = 1
    handle = linear.register_forward_pre_hook(lambda _, inputs: (inputs[0] * mask.to(inputs[0].device),))
    undo.callback(handle.remove)


@contextmanager
def zeroed_subnetwork(model: PrunedNetwork, spec: SubnetSpec) -> Iterator[PrunedNetwork]:
    """The public code's way, for timing only: every layer is computed, and what is gone is multiplied by zero.

    Where a sub-layer has nothing left its LayerNorm still acts, so the answer is another one than `masked`'s.
    """
    with ExitStack() as undo:
        for placed, part in zip(model.placed_layers(), spec, strict=True):
            left = slice_layer(model.config, placed, part).inputs
            for path in ([placed.parts.mix] if placed.heads else []) + [placed.parts.down]:
                mask_input(placed.layer.get_submodule(path), left.get(path, 0), undo)
        yield model
