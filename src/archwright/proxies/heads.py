"""Attention heads: confidence, softmax confidence, importance (training-free-nas Section 3.6); one term per head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archwright.proxies.gradients import saliency
from archwright.proxies.lazy_torch import torch
from archwright.proxies.proxy import FORWARD, LOSS, LPZERO, SERIANNI, once_per_probe, proxy, require, total

if TYPE_CHECKING:
    from archwright.probe import Layer, Probe, Signal

PUBLIC = f"{SERIANNI}, public code"


def contexts(probe: Probe) -> list[tuple[Layer, Signal]]:
    """Outputs of all heads, for the layers that have some."""
    pairs = ((layer, layer.context) for layer in probe.layers if layer.context is not None and layer.heads)
    return require(pairs, "No layer of this network has attention heads with an output.")


def by_head(tensor: torch.Tensor, heads: int) -> torch.Tensor:
    return tensor.unflatten(-1, (heads, -1))  # batch x time x heads x width of a head


@proxy(
    "|largest feature| of a head's output, mean over tokens, over heads",
    f"Voita et al. 2019; {SERIANNI}, Section 3.6", FORWARD, roles=("context",), join=total,
)  # fmt: skip
def attention_confidence(probe: Probe) -> list[float]:
    largest = [by_head(context.value, layer.heads).amax(dim=-1).abs() for layer, context in contexts(probe)]
    return [float(head) for layer in largest for head in layer.mean(dim=(0, 1))]


@proxy(
    "largest over tokens of each projection, mean, over projections", PUBLIC, FORWARD, roles=("projections",),
    join=total,
)  # fmt: skip
def attention_confidence_published(probe: Probe) -> list[float]:
    """Of q, k, v, or of a transform's input."""
    values = (signal.value for layer in probe.layers for signal in layer.projections)
    present = require(values, "No layer of this network has projections for its heads.")
    return [float(value.amax(dim=1).mean()) for value in present]


@once_per_probe
def peaks(probe: Probe) -> list[torch.Tensor]:
    """Mean over tokens of the largest attention probability, per head; one tensor per layer."""
    values = (layer.probabilities.value for layer in probe.layers if layer.probabilities is not None)
    present = require(values, "No layer of this network has attention probabilities.")
    return [value.amax(dim=-1).mean(dim=(0, 2)) for value in present]  # of batch x heads x time x time


@proxy(
    "largest attention probability, mean over tokens, over heads",
    f"Behnke and Heafield 2020; {SERIANNI}, Section 3.6", FORWARD, roles=("probabilities",), join=total,
)  # fmt: skip
def softmax_confidence(probe: Probe) -> list[float]:
    return [float(head) for layer in peaks(probe) for head in layer]


@proxy(
    "largest attention probability, mean over tokens and heads, over layers", PUBLIC, FORWARD,
    roles=("probabilities",), join=total,
)  # fmt: skip
def softmax_confidence_published(probe: Probe) -> list[float]:
    return [float(layer.mean()) for layer in peaks(probe)]


def contexts_with_gradient(probe: Probe) -> list[tuple[Layer, torch.Tensor, torch.Tensor]]:
    """Layer, output of its heads, and gradient of the loss at it."""
    signals = ((layer, s.value, s.gradient) for layer, s in contexts(probe) if s.gradient is not None)
    return require(signals, "No attention head of this network has a gradient of the loss.")


@proxy(
    "|Att . dL/dAtt| over heads", f"Michel et al. 2019; {SERIANNI}, Section 3.6", LOSS, roles=("context",), join=total
)
def head_importance(probe: Probe) -> list[float]:
    """The product is summed within each example."""
    products = [by_head(value * gradient, layer.heads) for layer, value, gradient in contexts_with_gradient(probe)]
    return [float(head) for product in products for head in product.sum(dim=(1, 3)).abs().sum(dim=0)]


@proxy("|dL/dAtt| over heads", f"{LPZERO} Eq. 13", LOSS, roles=("context",), join=total)
def head_importance_gradient(probe: Probe) -> list[float]:
    gradients = [by_head(gradient, layer.heads) for layer, _, gradient in contexts_with_gradient(probe)]
    return [float(head) for gradient in gradients for head in gradient.abs().sum(dim=(0, 1, 3))]


proxy(
    "|w g| over attention linears", PUBLIC, LOSS, join=total, name="head_importance_published",
    arguments=("attention",),
)(saliency)  # fmt: skip
