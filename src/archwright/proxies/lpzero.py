"""Proxies that others found by evolution: LPZero's two and EZNAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archwright.proxies.gradients import linears
from archwright.proxies.lazy_torch import torch
from archwright.proxies.proxy import FORWARD, LOSS, LPZERO, once_per_probe, proxy, require, total

if TYPE_CHECKING:
    from archwright.probe import Probe

GUARD = 1e-9
"""Added before a reciprocal."""


@once_per_probe
def layer_terms(probe: Probe) -> tuple[list[float], list[float]]:
    """Per layer: mean of (1 / H)^2, H what its heads work on, and Frobenius norm of its activations.

    The mean of 1 / x^2 is as large as its smallest |x| makes it: mostly a matter of chance.
    """
    layers = require(
        (layer for layer in probe.layers if layer.projections and layer.activations),
        "No layer of this network has both projections for heads and an activation function.",
    )
    inverses = [[(1 / (s.value.double() + GUARD)).square().mean() for s in layer.projections] for layer in layers]
    norms = [[torch.linalg.vector_norm(s.value) for s in layer.activations] for layer in layers]
    return [mean([float(x) for x in layer]) for layer in inverses], [mean([float(x) for x in layer]) for layer in norms]


def lpzero_flexibert(probe: Probe, over_layers: bool) -> list[float]:
    """(1 / H)^2 + log softmax(||A||_F) per layer (LPZero Eq. 2); the softmax of one number is 1, its logarithm 0.

    Over the layers' norms the second term says something.
    """
    inverses, norms = layer_terms(probe)
    column = torch.tensor(norms, dtype=torch.float64)[:, None]  # layers x 1
    logarithms = torch.log_softmax(column, dim=0 if over_layers else 1).flatten()
    return [first + float(second) for first, second in zip(inverses, logarithms, strict=True)]


proxy(
    "(1/H)^2 + log softmax ||A||_F, the second always 0", f"{LPZERO} Eq. 2", FORWARD,
    roles=("projections", "activations"), join=total, name="lpzero_flexibert", arguments=(False,),
)(lpzero_flexibert)  # fmt: skip
proxy(
    "(1/H)^2 + log softmax of the layers' ||A||_F", f"{LPZERO} Eq. 2, softmax over layers", FORWARD,
    roles=("projections", "activations"), join=total, name="lpzero_flexibert_layers", arguments=(True,),
)(lpzero_flexibert)  # fmt: skip


@proxy("mean w^2 + mean softmax(g)^2, mean over linears, layers", f"{LPZERO}, public code", LOSS)
def lpzero_gpt2(probe: Probe) -> float:
    """The softmax is over dim 0."""
    linears(probe)
    means = []
    for layer in probe.layers:
        pairs = [(w.value, w.gradient) for w in layer.linears if w.gradient is not None]
        terms = [float(w.square().mean()) + float(g.softmax(dim=0).square_().mean()) for w, g in pairs]
        means += [mean(terms)] if terms else []
    return mean(means)


@proxy(
    "sigmoid log|det(sign g sign g^T)|",
    f"Akhauri et al. 2022, as in {LPZERO}'s code",
    LOSS,
    join=total,
    on_request=True,
)
def eznas(probe: Probe) -> list[float]:
    """Zero where a gradient has more rows than columns, so that the matrix is singular; nearly always one elsewhere."""
    volumes = []
    for linear in linears(probe):
        rows, columns = linear.gradient.shape
        signs = linear.gradient.sign()
        volume = 0.0 if rows > columns else float(torch.sigmoid(torch.linalg.slogdet(signs @ signs.mT).logabsdet))
        volumes.append(volume)
    return volumes


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
