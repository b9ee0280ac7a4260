"""Weights and their gradients: GradNorm, SNIP, Plain, GraSP, SynFlow, saliency; Fisher likewise.

Linears are those of the layers: attention or other operators, FFN, recurrent. Embeddings, normalisations, biases and
the head count only where "all parameters" is said. A weight the loss does not depend on contributes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from archwright.proxies.lazy_torch import torch
from archwright.proxies.proxy import (
    ABDELFATTAH,
    LOSS,
    LPZERO,
    SERIANNI,
    ZHOU,
    Unscored,
    once_per_probe,
    proxy,
    require,
    total,
)

if TYPE_CHECKING:
    from archwright.probe import Probe, Weight


def with_gradient(weights: Iterable[Weight], what: str) -> list[Any]:
    """Those with a gradient (typed so that nobody asks again whether there is one)."""
    present = (weight for weight in weights if weight.gradient is not None)
    return require(present, f"No {what} of this network has a gradient of the loss.")


def linears(probe: Probe, role: str = "") -> list[Any]:
    """Linears of all layers with a gradient: all, or those of a role (attention, ffn)."""
    weights = (weight for layer in probe.layers for weight in getattr(layer, role or "linears"))
    return with_gradient(weights, f"{role} linear".strip())


@once_per_probe
def products(probe: Probe) -> dict[Weight, tuple[float, float]]:
    """Sum of w g and sum of |w g|, of every parameter."""
    sums = {}
    for weight in with_gradient(probe.parameters, "parameter"):
        product = weight.value * weight.gradient
        sums[weight] = (float(product.sum()), float(torch.linalg.vector_norm(product, 1)))
    return sums


def saliency(probe: Probe, role: str = "") -> list[float]:
    """Sum of |w g|, of every linear of the role."""
    return [products(probe)[w][1] for w in linears(probe, role)]


@proxy("||g||_F over linears", ABDELFATTAH, LOSS, join=total)
def grad_norm(probe: Probe) -> list[float]:
    return [float(torch.linalg.vector_norm(w.gradient)) for w in linears(probe)]


proxy("|w g| over linears", f"Lee et al. 2019; {LPZERO} Eq. 14", LOSS, join=total, name="snip")(saliency)


@proxy("w g over linears", ABDELFATTAH, LOSS, join=total)
def plain(probe: Probe) -> list[float]:
    return [products(probe)[w][0] for w in linears(probe)]


@proxy("-(H g) w over linears", f"Wang et al. 2020; {LPZERO} Eq. 15", ("hessian",), join=total)
def grasp(probe: Probe) -> list[float]:
    curved = (w for w in probe.linears if w.curvature is not None)
    weights: list[Any] = require(curved, "No linear of this network has a second derivative of the loss.")
    return [-float((w.curvature * w.value).sum()) for w in weights]


@once_per_probe
def activation_products(probe: Probe) -> list[torch.Tensor]:
    """a dL/da of every activation function, batch x time x units."""
    signals = (s for layer in probe.layers for s in layer.activations if s.gradient is not None)
    present: list[Any] = require(signals, "No layer of this network has an activation function with a gradient.")
    return [s.value * s.gradient for s in present]


@proxy("half the mean of (sum over time of a dL/da)^2", "Turner et al. 2020", LOSS, roles=("activations",), join=total)
def fisher(probe: Probe) -> list[float]:
    """Mean over inputs, sum over units."""
    return [0.5 * float(p.sum(dim=1).square().mean(dim=0).sum()) for p in activation_products(probe)]


@proxy("a dL/da", f"{LPZERO} Table 1", LOSS, roles=("activations",), join=total)
def fisher_product(probe: Probe) -> list[float]:
    return [float(p.sum()) for p in activation_products(probe)]


def synflow(probe: Probe, log: bool) -> list[float]:
    """|w| dR/d|w|, R the summed output at absolute weights and ones; the logarithm keeps the flow from exploding."""
    pairs = require(
        ((w.value.abs(), w.flow) for w in probe.linears if w.flow is not None),
        "Nothing flows from the embeddings through the linears to the last hidden state.",
    )
    return [float((weight * (flow.abs().log1p() if log else flow)).sum()) for weight, flow in pairs]


proxy(
    "|w| dR/d|w| over linears", "Tanaka et al. 2020", ("synflow",), join=total, arguments=(False,), name="synflow",
)(synflow)  # fmt: skip
proxy("w g over linears, the same as plain", f"{LPZERO} Table 1", LOSS, join=total, name="synflow_loss")(plain)


@once_per_probe
def log_products(probe: Probe) -> list[tuple[float, float]]:
    """Sum of w log|g| and sum of w |log|g||, of every linear."""
    sums = []
    for linear in linears(probe):
        weight, gradient = linear.value.flatten(), linear.gradient.flatten()
        if not bool(gradient.all()):  # the logarithm of zero says nothing
            weight, gradient = weight[gradient != 0], gradient[gradient != 0]
        logarithm = gradient.abs().log_()
        sums.append((float(weight.dot(logarithm)), float(weight.dot(logarithm.abs_()))))
    return sums


def logsynflow(probe: Probe, absolute: bool) -> list[float]:
    return [sums[absolute] for sums in log_products(probe)]


proxy(
    "w log|g| over linears", f"{LPZERO} Table 1", LOSS, join=total, arguments=(False,), name="logsynflow",
)(logsynflow)  # fmt: skip
proxy(
    "w |log|g|| over linears", f"{LPZERO} Eq. 16", LOSS, join=total, arguments=(True,), name="logsynflow_absolute",
)(logsynflow)  # fmt: skip
proxy(
    "|w| log(1 + dR/d|w|) over linears", "Cavagnero et al. 2023", ("synflow",), join=total,
    name="logsynflow_freerea", arguments=(True,),
)(synflow)  # fmt: skip


@proxy("w g over all parameters", f"Tanaka et al. 2020; {SERIANNI}, Eq. 1", LOSS, join=total)
def synaptic_saliency(probe: Probe) -> list[float]:
    return [signed for signed, _ in products(probe).values()]


proxy(
    "|w g| over FFN linears", f"{SERIANNI}, public code", LOSS, join=total,
    name="synaptic_saliency_published", arguments=("ffn",),
)(saliency)  # fmt: skip


def nuclear(matrix: torch.Tensor) -> float:
    if not bool(matrix.isfinite().all()):
        raise Unscored("A weight or gradient is not finite.")
    return float(torch.linalg.svdvals(matrix).sum())


@once_per_probe
def weight_norms(probe: Probe) -> list[float]:
    """Nuclear norm of every attention weight."""
    return [nuclear(w.value) for w in linears(probe, "attention")]


@proxy(
    "||g||_nuc ||w||_nuc over attention linears", f"{ZHOU}; {SERIANNI}, Section 3.4", LOSS, join=total, on_request=True
)
@once_per_probe
def synaptic_diversity(probe: Probe) -> list[float]:
    pairs = zip(linears(probe, "attention"), weight_norms(probe), strict=True)
    return [nuclear(w.gradient) * norm for w, norm in pairs]


@proxy("||g||_F ||w||_nuc over attention linears", f"{LPZERO} Eq. 6", LOSS, join=total, on_request=True)
def synaptic_diversity_norm(probe: Probe) -> list[float]:
    pairs = zip(linears(probe, "attention"), weight_norms(probe), strict=True)
    return [float(torch.linalg.vector_norm(w.gradient)) * norm for w, norm in pairs]


@proxy("synaptic_diversity + synaptic_saliency_published", ZHOU, LOSS, join=total, on_request=True)
def dss(probe: Probe) -> list[float]:
    return [*synaptic_diversity(probe), *saliency(probe, "ffn")]
