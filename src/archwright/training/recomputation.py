"""Gradient checkpointing: what layers computed is computed again on the way back instead of being kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from archwright.networks.pruned import PrunedConfig


@contextmanager
def recompute_layers(model: Any, wanted: bool) -> Iterator[None]:
    """Inside, layers of a network in training mode keep only their inputs for the way back, where that is wanted.

    A sub-network's backward pass must lie in the `with` block that slices it, as every training step of ours has it:
    its layers run once more there, with the same slices and the same dropout.
    """
    if not wanted:
        yield
        return
    model.gradient_checkpointing_enable({"use_reentrant": False})
    try:
        yield
    finally:
        model.gradient_checkpointing_disable()


def can_recompute(config: PrunedConfig) -> bool:
    """Whether all layers of this network can do without what they computed."""
    with torch.device("meta"):
        body = config.family.body(config.stock())
    layers = list(body.get_submodule(config.family.layers))
    return bool(layers) and all(isinstance(layer, GradientCheckpointingLayer) for layer in layers)
