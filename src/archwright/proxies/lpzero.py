"""Proxies that others found by evolution: LPZero's two and EZNAS."""

import torch

from archwright.probe import Layer, Probe, once_per_probe
from archwright.proxies.gradients import with_gradient
from archwright.proxies.proxy import Unscored

GUARD = 1e-9
"""Added before a reciprocal."""


@once_per_probe
def reciprocals(probe: Probe) -> list[float]:
    """Mean of (1 / H)^2 per layer, H what its heads work on; several projections of a layer are averaged.

    The mean of 1 / x^2 is as large as its smallest |x| makes it: mostly a matter of chance.
    """
    return [
        mean([float((1 / (signal.value.double() + GUARD)).square().mean()) for signal in layer.projections])
        for layer in layers_with_heads(probe)
    ]


def layers_with_heads(probe: Probe) -> list[Layer]:
    """Layers with projections and an activation function."""
    layers = [layer for layer in probe.layers if layer.projections and layer.activations]
    if not layers:
        raise Unscored("No layer of this network has both projections for heads and an activation function.")
    return layers


def activation_norms(probe: Probe) -> list[float]:
    """Frobenius norm of the activations, per layer."""
    return [
        mean([float(torch.linalg.vector_norm(s.value)) for s in layer.activations])
        for layer in layers_with_heads(probe)
    ]


def lpzero_flexibert(probe: Probe) -> list[float]:
    """(1 / H)^2 + log softmax(||A||_F) per layer (LPZero Eq. 2); the softmax of one number is 1, its logarithm 0."""
    norms = torch.tensor(activation_norms(probe), dtype=torch.float64)
    second = [float(torch.log_softmax(norm[None], dim=0)) for norm in norms]
    return [first + other for first, other in zip(reciprocals(probe), second, strict=True)]


def lpzero_flexibert_layers(probe: Probe) -> list[float]:
    """The same with the softmax over the layers' norms, so that its second term says something."""
    second = torch.log_softmax(torch.tensor(activation_norms(probe), dtype=torch.float64), dim=0)
    return [first + float(other) for first, other in zip(reciprocals(probe), second, strict=True)]


def lpzero_gpt2(probe: Probe) -> float:
    """Mean of w^2 plus mean of softmax(g)^2 (over dim 0), averaged over the linears of a layer, then over layers."""
    with_gradient(probe.linears)
    means = []
    for layer in probe.layers:
        pairs = [(w.value, w.gradient) for w in layer.linears if w.gradient is not None]
        terms = [float(w.square().mean()) + float(g.softmax(dim=0).square_().mean()) for w, g in pairs]
        means += [mean(terms)] if terms else []
    return mean(means)


def eznas(probe: Probe) -> list[float]:
    """Sigmoid of log|det(S S^T)|, S the sign of the gradient, per linear (EZNAS, as LPZero's code has it).

    Zero where S has more rows than columns, which makes the matrix singular; nearly always one elsewhere.
    """
    volumes = []
    for linear in with_gradient(probe.linears):
        rows, columns = linear.gradient.shape
        signs = linear.gradient.sign()
        volume = 0.0 if rows > columns else float(torch.sigmoid(torch.linalg.slogdet(signs @ signs.mT).logabsdet))
        volumes.append(volume)
    return volumes


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
