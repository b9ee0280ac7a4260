"""Real-valued masks fitted layer by layer: retraining-free pruning's third phase (Kwon et al. 2022)."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.extract import extract
from archwright.subnet.pruning.gradients import Reader
from archwright.subnet.pruning.streams import (
    ATTENTION,
    FFN,
    StreamRecording,
    Sublayer,
    compare_streams,
    run_layer,
)
from archwright.subnet.spec import SubnetSpec, count

DAMPING = 1e-2
"""Pull of a mask towards one, as a share of the mean squared length of the columns of its least squares problem."""
LARGEST = 10.0
"""A sub-layer whose mask would leave [-10, 10] stays untuned: such a fit cancels large numbers against each other."""

Values = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class TunedSubnet:
    """What a sub-network keeps, and what each kept head and unit is multiplied by; one entry per layer."""

    spec: SubnetSpec
    head_values: Values
    unit_values: Values


@torch.no_grad()
def tune_masks(network: PrunedNetwork, spec: SubnetSpec, original: StreamRecording) -> TunedSubnet:
    """Phase 3: the kept heads and units, each with the factor that brings the residual stream closest to the original.

    Sub-layer by sub-layer, attention before FFN, the factors m minimise |x + f(x; m) - (x' + f(x'; 1))|^2 over tokens:
    x' is what the original network has there, x what this sub-network has there after all earlier sub-layers were
    pruned and tuned, and x + f is the residual stream after the sub-layer (where the norm comes last: before the norm).
    """
    small = extract(network, spec).eval()
    hidden = [call.hidden for call in original.calls]
    values: dict[Sublayer, list[tuple[float, ...]]] = {ATTENTION: [], FFN: []}
    left = 0
    for place, part in enumerate(spec):
        for sub, size in ((ATTENTION, count(part.heads)), (FFN, count(part.units))):
            values[sub].append(tune(small, left, sub, hidden, original, place) if size else ())
        if count(part.heads) or count(part.units):
            layer = small.placed_layers()[left].layer
            hidden = [run_layer(layer, x, call.given[place]) for x, call in zip(hidden, original.calls, strict=True)]
            left += 1
    return TunedSubnet(spec, tuple(values[ATTENTION]), tuple(values[FFN]))


def tune(
    small: PrunedNetwork, left: int, sub: Sublayer, hidden: list[torch.Tensor], original: StreamRecording, place: int
) -> tuple[float, ...]:
    """The factors of one sub-layer, which are multiplied into it at once."""
    reader = sub.reader(small, left)
    factors = fit_factors(reader, (pair[:2] for pair in compare_streams(small, left, sub, hidden, original, place)))
    scale(reader, factors)
    return tuple(factors.tolist())


def fit_factors(reader: Reader, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Factors 1 + r that minimise |reader(reads x r) - lacking|^2 + damping |r|^2; all one where they grow too large.

    A head's column of the problem is what it writes at all tokens. The products of all columns are the entrywise
    product of two small matrices, reads' reads and weight' weight, summed over the columns of each head.
    """
    weight = at_least_float32(reader.linear.weight)
    products = weight.new_zeros(weight.shape[1], weight.shape[1], dtype=torch.float64)
    slopes = weight.new_zeros(weight.shape[1], dtype=torch.float64)
    for reads, lacking in pairs:
        products += reads.mT @ reads
        slopes += (reads * (lacking @ weight)).sum(0)
    products = reader.sum_parts(reader.sum_parts(products * (weight.mT @ weight)).mT)
    pull = DAMPING * products.diagonal().mean() + torch.finfo(torch.float64).tiny
    factors = 1 + torch.linalg.solve(products + pull * torch.eye(len(products)).to(products), reader.sum_parts(slopes))
    return factors if bool((factors.abs() <= LARGEST).all()) else torch.ones_like(factors)


def scale(reader: Reader, factors: torch.Tensor) -> None:
    """Multiply heads or units by these factors, in place, in the linear that reads them."""
    weight = reader.linear.weight
    weight.copy_(at_least_float32(weight) * factors.to(at_least_float32(weight))[reader.owners])


@torch.no_grad()
def fold(network: PrunedNetwork, found: TunedSubnet) -> PrunedNetwork:
    """A new network of its own that computes the sub-network with its heads and units multiplied by their factors."""
    small = extract(network, found.spec)
    left = [pair for pair in zip(found.head_values, found.unit_values, strict=True) if any(pair)]
    for place, pair in enumerate(left):
        for sub, factors in zip((ATTENTION, FFN), pair, strict=True):
            if factors:
                scale(sub.reader(small, place), torch.tensor(factors, dtype=torch.float64))
    return small
