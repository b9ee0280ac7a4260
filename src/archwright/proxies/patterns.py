"""Which units are on (activation above zero): activation distance and NWOT (Mellor et al. 2021a)."""

from dataclasses import dataclass

import torch

from archwright.probe import Probe, once_per_probe
from archwright.proxies.proxy import Unscored


@dataclass(frozen=True, eq=False)
class Agreement:
    """In how many units every two rows agree, and how many units there are."""

    kernel: torch.Tensor
    units: int


def agreement(on: torch.Tensor) -> Agreement:
    """Of rows x units: both on, or both off. ReLU, GELU, tanh and leaky ReLU are above zero where their input is."""
    code = on.float()
    return Agreement((code @ code.mT + (1 - code) @ (1 - code).mT).double(), code.shape[1])


def activations(probe: Probe) -> list[torch.Tensor]:
    found = [signal.value for layer in probe.layers for signal in layer.activations]
    if not found:
        raise Unscored("No layer of this network has an activation function.")
    return found


@once_per_probe
def agreements(probe: Probe) -> list[Agreement]:
    """Between examples, all tokens side by side; one per activation function."""
    return [agreement((value > 0).flatten(1)) for value in activations(probe)]


def activation_distance(probe: Probe) -> list[float]:
    """Hamming distances summed over pairs of examples: the less alike, the better (training-free-nas Section 3.3)."""
    return [float((found.units - found.kernel).sum()) / 2 for found in agreements(probe)]


def nwot(probe: Probe) -> float:
    """log|K|, K_ij the number of units in which examples i and j agree (Mellor et al. 2021a; LPZero Eq. 3)."""
    kernel = torch.stack([found.kernel for found in agreements(probe)]).sum(dim=0)
    return float(torch.linalg.slogdet(kernel).logabsdet)


def activation_distance_published(probe: Probe) -> list[float]:
    """Agreement summed over pairs of tokens of the first example, as the public FlexiBERT code has it.

    Its sign is that of the published column: more alike is higher.
    """
    return [float(agreement(value[0] > 0).kernel.sum()) for value in activations(probe)]
