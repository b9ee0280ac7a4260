"""Principal components of FFN pre-activations: V-PCA and W-PCA, without any gradient (W-PCA Eq. 1 to 4).

Tokens of the whole batch are pooled: one covariance per layer, of the output of the first FFN linear. The score is the
smallest number of components whose share of the variance exceeds eta, at most min(tokens - 1, units, input width).
"""

from collections.abc import Callable

import torch

from archwright.probe import Layer, Probe, once_per_probe
from archwright.proxies.correlations import eigenvalues
from archwright.proxies.counts import counts_of
from archwright.proxies.proxy import Unscored

ETA = 0.99


@once_per_probe
def spectra(probe: Probe) -> list[torch.Tensor]:
    """Eigenvalues of the covariance, descending, of every layer that has an FFN: any eta at no further pass."""
    layers = [layer for layer in probe.layers if layer.pre_activation is not None]
    if not layers:
        raise Unscored("No layer of this network has an FFN.")
    return [spectrum(layer) for layer in layers]


def factor_of(weight: torch.Tensor) -> torch.Tensor | None:
    """L with L L^T = W^T W; nothing where W has not full rank."""
    factor, failed = torch.linalg.cholesky_ex(weight.double().mT @ weight.double())
    return None if int(failed) else factor


Factor = Callable[[torch.Tensor], torch.Tensor | None]


def spectrum(layer: Layer, factor: Factor = factor_of) -> torch.Tensor:
    """By the smallest of the matrices with the same eigenvalues: units, tokens, or input width.

    `factor` is `factor_of`, or something that remembers what that gave for the weight of this layer.
    """
    assert layer.pre_activation is not None
    outputs = layer.pre_activation.value.flatten(0, -2)  # tokens x units
    if layer.first is not None and layer.ffn_input is not None and layer.first.shape[1] < min(outputs.shape):
        known = factor(layer.first)
        if known is not None:
            return input_spectrum(layer.ffn_input.flatten(0, -2), known)
    centred = outputs.double() - outputs.double().mean(dim=0)
    smaller = centred.mT @ centred if outputs.shape[1] <= outputs.shape[0] else centred @ centred.mT
    return eigenvalues(smaller / len(outputs))


def input_spectrum(inputs: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """W C W^T and L^T C L with L L^T = W^T W have the same eigenvalues but zeros."""
    inputs = inputs.double()
    small = (inputs - inputs.mean(dim=0)) @ factor
    return eigenvalues(small.mT @ small / len(inputs))


def dimensions(spectrum: torch.Tensor, eta: float = ETA) -> int:
    """Smallest number of components whose share of the variance exceeds eta."""
    shares = spectrum.cumsum(dim=0) / spectrum.sum()
    if not bool(shares.isfinite().all()):
        raise Unscored("Shares of variance are undefined: the pre-activations are the same for all tokens.")
    return min(int((shares <= eta).sum()) + 1, len(spectrum))


@once_per_probe
def v_pca(probe: Probe) -> list[int]:
    return [dimensions(found) for found in spectra(probe)]


def w_pca(probe: Probe) -> int:
    """All parameters times V-PCA."""
    return counts_of(probe).parameters * sum(v_pca(probe))


def w_pca_nonembedding(probe: Probe) -> int:
    return counts_of(probe).nonembedding * sum(v_pca(probe))
