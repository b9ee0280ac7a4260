"""Weights and their gradients: GradNorm, SNIP, Plain, GraSP, SynFlow, saliency; Fisher and hidden saliency likewise.

Linears are those of the layers: attention or other operators, FFN, recurrent. Embeddings, normalisations, biases and
the head count only where "all parameters" is said. A weight the loss does not depend on contributes nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from archwright.probe import Probe, Weight, once_per_probe
from archwright.proxies.proxy import Unscored


def with_gradient(weights: Iterable[Weight], what: str = "linear") -> list[Any]:
    """Those with a gradient (typed so that nobody asks again whether there is one)."""
    present = [weight for weight in weights if weight.gradient is not None]
    if not present:
        raise Unscored(f"No {what} of this network has a gradient of the loss.")
    return present


def role(probe: Probe, name: str) -> list[Any]:
    """Linears of a role, of all layers."""
    return with_gradient((weight for layer in probe.layers for weight in getattr(layer, name)), f"{name} linear")


@once_per_probe
def products(probe: Probe) -> dict[Weight, tuple[float, float]]:
    """Sum of w g and sum of |w g|, of every parameter."""
    sums = {}
    for weight in with_gradient(probe.parameters, "parameter"):
        product = weight.value * weight.gradient
        sums[weight] = (float(product.sum()), float(torch.linalg.vector_norm(product, 1)))
    return sums


def grad_norm(probe: Probe) -> list[float]:
    """Frobenius norms of the gradients (Abdelfattah et al. 2021)."""
    return [float(torch.linalg.vector_norm(w.gradient)) for w in with_gradient(probe.linears)]


def snip(probe: Probe) -> list[float]:
    """Sum of |w g| (Lee et al. 2019; LPZero Eq. 14)."""
    return [products(probe)[w][1] for w in with_gradient(probe.linears)]


def plain(probe: Probe) -> list[float]:
    """Sum of w g with its sign (Abdelfattah et al. 2021); LPZero's table calls it Synflow."""
    return [products(probe)[w][0] for w in with_gradient(probe.linears)]


def grasp(probe: Probe) -> list[float]:
    """Sum of -(H g) w (Wang et al. 2020; LPZero Eq. 15)."""
    linears = [w for w in probe.linears if w.curvature is not None]
    if not linears:
        raise Unscored("No linear of this network has a second derivative of the loss.")
    return [-float((w.curvature * w.value).sum()) for w in linears]


def flows(probe: Probe) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """|w| and dR/d|w| of every linear."""
    pairs = [(w.value.abs(), w.flow) for w in probe.linears if w.flow is not None]
    if not pairs:
        raise Unscored("Nothing flows from the embeddings through the linears to the last hidden state.")
    return pairs


def synflow(probe: Probe) -> list[float]:
    """Sum of |w| dR/d|w|, R the summed output at absolute weights and ones (Tanaka et al. 2020)."""
    return [float((weight * flow).sum()) for weight, flow in flows(probe)]


def logsynflow_freerea(probe: Probe) -> list[float]:
    """Sum of |w| log(1 + |dR/d|w||) (Cavagnero et al. 2023), which keeps the flow from exploding."""
    return [float((weight * flow.abs().log1p()).sum()) for weight, flow in flows(probe)]


@once_per_probe
def log_products(probe: Probe) -> list[tuple[float, float]]:
    """Sum of w log|g| and sum of w |log|g||, of every linear."""
    sums = []
    for linear in with_gradient(probe.linears):
        weight, gradient = linear.value.flatten(), linear.gradient.flatten()
        if not bool(gradient.all()):  # the logarithm of zero says nothing
            weight, gradient = weight[gradient != 0], gradient[gradient != 0]
        logarithm = gradient.abs().log_()
        sums.append((float(weight.dot(logarithm)), float(weight.dot(logarithm.abs_()))))
    return sums


def logsynflow(probe: Probe) -> list[float]:
    """Sum of w log|g| (LPZero Table 1)."""
    return [signed for signed, _ in log_products(probe)]


def logsynflow_absolute(probe: Probe) -> list[float]:
    """Sum of w |log|g|| (LPZero Eq. 16)."""
    return [absolute for _, absolute in log_products(probe)]


def synaptic_saliency(probe: Probe) -> list[float]:
    """Sum of w g with its sign over all parameters (training-free-nas Eq. 1 and below)."""
    return [signed for signed, _ in products(probe).values()]


def synaptic_saliency_published(probe: Probe) -> list[float]:
    """Sum of |w g| over FFN linears, as the public code has it."""
    return [products(probe)[w][1] for w in role(probe, "ffn")]


def head_importance_published(probe: Probe) -> list[float]:
    """Sum of |w g| over the linears of the operators, as the public code has it."""
    return [products(probe)[w][1] for w in role(probe, "attention")]


@once_per_probe
def activation_products(probe: Probe) -> list[torch.Tensor]:
    """a dL/da of every activation function, batch x time x units."""
    signals = [s for layer in probe.layers for s in layer.activations if s.gradient is not None]
    if not signals:
        raise Unscored("No layer of this network has an activation function with a gradient.")
    return [s.value * s.gradient for s in signals]


def fisher(probe: Probe) -> list[float]:
    """Sum over units of half the mean over inputs of (sum over time of a dL/da)^2 (Turner et al. 2020)."""
    return [0.5 * float(p.sum(dim=1).square().mean(dim=0).sum()) for p in activation_products(probe)]


def fisher_product(probe: Probe) -> list[float]:
    """Sum of a dL/da (LPZero Table 1)."""
    return [float(p.sum()) for p in activation_products(probe)]


def hidden_saliency(probe: Probe) -> list[float]:
    """Sum of |h dL/dh| over the hidden states of each layer; the public code's, not defined in the paper."""
    signals = [layer.output for layer in probe.layers if layer.output is not None]
    signals = [signal for signal in signals if signal.gradient is not None]
    if not signals:
        raise Unscored("No hidden state of this network has a gradient of the loss.")
    return [float((s.value * s.gradient).abs_().sum()) for s in signals]


def nuclear(matrix: torch.Tensor) -> float:
    if not bool(matrix.isfinite().all()):
        raise Unscored("A weight or gradient is not finite.")
    return float(torch.linalg.svdvals(matrix).sum())


@once_per_probe
def weight_norms(probe: Probe) -> Sequence[float]:
    """Nuclear norm of every attention weight."""
    return [nuclear(w.value) for w in role(probe, "attention")]


@once_per_probe
def synaptic_diversity(probe: Probe) -> list[float]:
    """Nuclear norm of the gradient times that of the weight, attention linears (Zhou et al. 2022; Section 3.4)."""
    pairs = zip(role(probe, "attention"), weight_norms(probe), strict=True)
    return [nuclear(w.gradient) * norm for w, norm in pairs]


def synaptic_diversity_norm(probe: Probe) -> list[float]:
    """Frobenius norm of the gradient times nuclear norm of the weight (LPZero Eq. 6)."""
    pairs = zip(role(probe, "attention"), weight_norms(probe), strict=True)
    return [float(torch.linalg.vector_norm(w.gradient)) * norm for w, norm in pairs]


def dss(probe: Probe) -> list[float]:
    """Diversity of the attention linears and saliency |w g| of the FFN linears (Zhou et al. 2022)."""
    return [*synaptic_diversity(probe), *synaptic_saliency_published(probe)]
