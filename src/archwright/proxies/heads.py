"""Attention heads: confidence, softmax confidence, importance (training-free-nas Section 3.6); one term per head."""

import torch

from archwright.probe import Layer, Probe, Signal, once_per_probe
from archwright.proxies.proxy import Unscored


def contexts(probe: Probe) -> list[tuple[Layer, Signal]]:
    """Outputs of all heads, for the layers that have some."""
    found = [(layer, layer.context) for layer in probe.layers if layer.context is not None and layer.heads]
    if not found:
        raise Unscored("No layer of this network has attention heads with an output.")
    return found


def probabilities(probe: Probe) -> list[torch.Tensor]:
    """batch x heads x time x time, for the layers that have them."""
    found = [layer.probabilities.value for layer in probe.layers if layer.probabilities is not None]
    if not found:
        raise Unscored("No layer of this network has attention probabilities.")
    return found


def by_head(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.unflatten(-1, (heads, -1))  # batch x time x heads x width of a head


def attention_confidence(probe: Probe) -> list[float]:
    """Mean over tokens of |largest feature of the head's output|."""
    found = [by_head(context.value, layer.heads).amax(dim=-1).abs() for layer, context in contexts(probe)]
    return [float(head) for peaks in found for head in peaks.mean(dim=(0, 1))]


def attention_confidence_published(probe: Probe) -> list[float]:
    """Maximum over tokens of q, k, v (or a transform's input), then the mean, as the public code has it."""
    found = [signal.value for layer in probe.layers for signal in layer.projections]
    if not found:
        raise Unscored("No layer of this network has projections for its heads.")
    return [float(value.amax(dim=1).mean()) for value in found]


@once_per_probe
def peaks(probe: Probe) -> list[torch.Tensor]:
    """Mean over tokens of the largest attention probability, per head; one tensor per layer."""
    return [value.amax(dim=-1).mean(dim=(0, 2)) for value in probabilities(probe)]


def softmax_confidence(probe: Probe) -> list[float]:
    return [float(head) for layer in peaks(probe) for head in layer]


def softmax_confidence_published(probe: Probe) -> list[float]:
    """One term per layer, the mean over its heads, as the public code has it."""
    return [float(layer.mean()) for layer in peaks(probe)]


def contexts_with_gradient(probe: Probe) -> list[tuple[Layer, Signal]]:
    found = [(layer, context) for layer, context in contexts(probe) if context.gradient is not None]
    if not found:
        raise Unscored("No attention head of this network has a gradient of the loss.")
    return found


def head_importance(probe: Probe) -> list[float]:
    """|Att . dL/dAtt| per head, the product summed within each example (Michel et al. 2019; Section 3.6)."""
    found = []
    for layer, context in contexts_with_gradient(probe):
        product = by_head(context.value * context.gradient, layer.heads)
        found += [float(head) for head in product.sum(dim=(1, 3)).abs().sum(dim=0)]
    return found


def head_importance_gradient(probe: Probe) -> list[float]:
    """|dL/dAtt| per head (LPZero Eq. 13)."""
    found = []
    for layer, context in contexts_with_gradient(probe):
        found += [float(head) for head in by_head(context.gradient, layer.heads).abs().sum(dim=(0, 1, 3))]
    return found
