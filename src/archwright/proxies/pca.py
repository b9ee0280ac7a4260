"""Principal components of FFN pre-activations: V-PCA and W-PCA, without any gradient (W-PCA Eq. 1 to 4).

Tokens of the whole batch are pooled: one covariance per layer, of the output of the first FFN linear. The score is the
smallest number of components whose share of the variance exceeds eta, at most min(tokens - 1, units, input width).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from archwright.proxies.correlations import eigenvalues
from archwright.proxies.counts import count
from archwright.proxies.lazy_torch import torch
from archwright.proxies.proxy import FORWARD, Unscored, once_per_probe, proxy, require, total

if TYPE_CHECKING:
    from archwright.probe import Layer, Probe

ETA = 0.99


@once_per_probe
def spectra(probe: Probe) -> list[torch.Tensor]:
    """Eigenvalues of the covariance, descending, of every layer that has an FFN: any eta at no further pass."""
    layers = (layer for layer in probe.layers if layer.pre_activation is not None)
    return [spectrum(layer) for layer in require(layers, "No layer of this network has an FFN.")]


def factor_of(weight: torch.Tensor) -> torch.Tensor | None:
    """L with L L^T = W^T W; nothing where W has not full rank."""
    factor, failed = torch.linalg.cholesky_ex(weight.double().mT @ weight.double())
    return None if int(failed) else factor.to(weight.dtype)


Factor = Callable[["torch.Tensor"], "torch.Tensor | None"]


def spectrum(layer: Layer, factor: Factor = factor_of) -> torch.Tensor:
    """By the smallest of the matrices with the same eigenvalues: units, tokens, or input width.

    Products are in the precision of the network, which halves their time and moves no component over a threshold of
    99.999 %; eigenvalues are in double precision. `factor` is `factor_of`, or something that remembers what that gave
    for the weight of this layer.
    """
    assert layer.pre_activation is not None
    outputs = layer.pre_activation.value.flatten(0, -2)  # tokens x units
    if layer.first is not None and layer.ffn_input is not None and layer.first.shape[1] < min(outputs.shape):
        known = factor(layer.first)
        if known is not None:  # W C W^T and L^T C L with L L^T = W^T W have the same eigenvalues but zeros
            inputs = layer.ffn_input.flatten(0, -2)
            small = (inputs - inputs.mean(dim=0)) @ known
            return eigenvalues(small.mT @ small / len(inputs))
    centred = outputs - outputs.mean(dim=0)
    smaller = centred.mT @ centred if outputs.shape[1] <= outputs.shape[0] else centred @ centred.mT
    return eigenvalues(smaller / len(outputs))


def dimensions(spectrum: torch.Tensor, eta: float = ETA) -> int:
    """Smallest number of components whose share of the variance exceeds eta."""
    shares = spectrum.cumsum(dim=0) / spectrum.sum()
    if not bool(shares.isfinite().all()):
        raise Unscored("Shares of variance are undefined: the pre-activations are the same for all tokens.")
    return min(int((shares <= eta).sum()) + 1, len(spectrum))


@proxy("components of the pre-activations for 99 %", "W-PCA Eq. 1, 2", FORWARD, roles=("pre_activation",), join=total)
@once_per_probe
def v_pca(probe: Probe) -> list[int]:
    return [dimensions(spectrum) for spectrum in spectra(probe)]


def w_pca(probe: Probe, name: str) -> int:
    """A count of parameters times V-PCA."""
    return count(probe, name) * sum(v_pca(probe))


proxy("parameters x v_pca", "W-PCA Eq. 4", FORWARD, roles=("pre_activation",), name="w_pca", arguments=("parameters",))(
    w_pca
)
proxy(
    "nonembedding x v_pca", "W-PCA Eq. 4", FORWARD, roles=("pre_activation",), origin="own",
    name="w_pca_nonembedding", arguments=("nonembedding",),
)(w_pca)  # fmt: skip
