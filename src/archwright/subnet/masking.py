"""The papers' way of running a sub-network: the whole network, with zeros. Slower; kept as the yardstick."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.keep import Keep, count, positions
from archwright.subnet.slicing import head_features, head_size_of, kept_layers, swap


@contextmanager
def masked(model: PrunedNetwork, keep: Keep) -> Iterator[PrunedNetwork]:
    """The model with heads and units outside `keep` set to zero just before the linear that reads them."""
    family = model.config.family
    with ExitStack() as undo:
        for layer, part in kept_layers(model, keep, undo):
            if count(part.heads):
                features = positions(head_features(part.heads, head_size_of(layer)))
                mask_input(layer.get_submodule(family.mix), features, undo)
            if count(part.units):
                mask_input(layer.get_submodule(family.down), positions(part.units), undo)
            for path, module in family.without_attention.items() if not count(part.heads) else ():
                swap(layer, path, module(), undo)
            for path, module in family.without_ffn.items() if not count(part.units) else ():
                swap(layer, path, module(), undo)
        yield model


def mask_input(linear: nn.Module, kept: tuple[int, ...], undo: ExitStack) -> None:
    mask = torch.zeros(linear.in_features, dtype=linear.weight.dtype)
    mask[list(kept)] = 1
    handle = linear.register_forward_pre_hook(lambda _, inputs: (inputs[0] * mask.to(inputs[0].device),))
    undo.callback(handle.remove)


@contextmanager
def zeroed(model: PrunedNetwork, keep: Keep) -> Iterator[PrunedNetwork]:
    """The public code's way, for timing only: every layer is computed, and what is gone is multiplied by zero.

    Where a sub-layer has nothing left its LayerNorm still acts, so the answer is another one than `masked`'s.
    """
    family = model.config.family
    with ExitStack() as undo:
        for layer, part in zip(model.backbone.get_submodule(family.layers), keep, strict=True):
            features = positions(head_features(part.heads, head_size_of(layer)))
            mask_input(layer.get_submodule(family.mix), features, undo)
            mask_input(layer.get_submodule(family.down), positions(part.units), undo)
        yield model
