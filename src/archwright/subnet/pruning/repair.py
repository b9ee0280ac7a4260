"""Closed-form repair: after a cut, least squares for the linears that read the heads and units that are left.

As in K-prune (Park et al. 2024), FASP (Hu et al. 2025) and OSSCAR (Meng et al. 2024) what the removed heads and units
wrote is written, as far as it can be, by those that stay. The walk is that of mask tuning (`tune_masks`), with a whole
matrix in place of one factor per head or unit.
"""

from collections.abc import Iterable
from functools import cache

import torch

from archwright.logs import logger
from archwright.networks.precision import at_least_float32
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.subnet.extract import extract
from archwright.subnet.importance import evaluating
from archwright.subnet.pruning.streams import (
    ATTENTION,
    FFN,
    StreamComparison,
    StreamRecording,
    compare_streams,
    run_layer,
)
from archwright.subnet.pruning.tuning import fold, tune_masks
from archwright.subnet.spec import SubnetSpec, count

RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
"""Pulls of a linear towards the weights it has, as shares of the mean squared length of the columns it reads; the one
that serves best on every fourth batch, fitted to the others, is taken."""
RIDGE = 1e-1
"""Where the search among them begins, and the pull when there are too few batches to try several."""

HELD_OUT = 4
"""Each how many-th batch is held out while the ridge is chosen."""


@torch.no_grad()
def repair_least_squares(
    network: PrunedNetwork, spec: SubnetSpec, original: StreamRecording, *, ridge: float | None = None
) -> PrunedNetwork:
    """The sub-network as a network of its own, whose residual stream is as close to the original's as it can be.

    Sub-layer by sub-layer, attention before FFN, weight and bias of the linear that reads the heads (or units) minimise
    |x + f(x) - (x' + f'(x'))|^2 / |x' + f'(x')|^2 over tokens: x' is what the original has there, x what this network
    has there after all earlier sub-layers were cut and repaired. `original` is `record_streams` of `network`.
    Without a ridge each linear takes the one that serves best on tokens it was not fitted to.
    """
    small = extract(network, spec)
    hidden = [call.hidden for call in original.calls]
    warn_of_few_tokens(spec, original)
    left = 0
    with evaluating(small), progress("repair", len(spec), "layers") as bar:
        for place, part in enumerate(spec):
            for sub, size in ((ATTENTION, count(part.heads)), (FFN, count(part.units))):
                if size:
                    comparisons = list(compare_streams(small, left, sub, hidden, original, place))
                    correction = add_correction(sub.reader(small, left).linear, comparisons, ridge)
            if count(part.heads) or count(part.units):
                placed, calls = small.placed_layers()[left], zip(hidden, original.calls, strict=True)
                direct = placed.parts.attention and not placed.parts.ffn_out_norm
                if direct:  # the linears write to the stream: after the layer it is known already
                    streams = [corrected_stream(comparison, correction) for comparison in comparisons]
                    hidden = [put_back(x, call.real, y) for (x, call), y in zip(calls, streams, strict=True)]
                else:
                    hidden = [run_layer(placed.layer, x, call.given[place]) for x, call in calls]
                left += 1
            bar.advance()
    return small


def add_correction(
    linear: torch.nn.Module, comparisons: Iterable[StreamComparison], ridge: float | None
) -> torch.Tensor:
    """Add to weight and bias, in place, what minimises |reads W' + b - lacking|^2 + ridge x mean diagonal x |W|^2.

    With a bias a column of ones stands beside what is read, which the ridge does not pull. With more tokens than
    features only sums over tokens are kept, with fewer the tokens themselves, whose products are the smaller matrix.
    Returns what was added: features (and one for the bias) x width.
    """
    comparisons = list(comparisons)
    few = sum(len(comparison.reads) for comparison in comparisons) < linear.in_features
    fitting, checking = (TokenGram(linear), TokenGram(linear)) if few else (Gram(linear), Gram(linear))
    for number, comparison in enumerate(comparisons):
        (checking if number % HELD_OUT == HELD_OUT - 1 else fitting).add(comparison)
    if ridge is None:
        ridge = best_ridge(fitting, checking) if checking.tokens else RIDGE
    fitting.merge(checking)
    correction = fitting.solve(ridge).to(at_least_float32(linear.weight).dtype)
    correction[: linear.in_features] = add_rounded(linear.weight, correction[: linear.in_features].mT).mT
    if linear.bias is not None:
        correction[linear.in_features] = add_rounded(linear.bias, correction[linear.in_features])
    return correction


def add_rounded(parameter: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
    """Adds to a parameter in place; returns what was added after rounding, where its precision rounds."""
    if parameter.dtype == change.dtype:
        parameter += change
        return change
    before = parameter.to(change.dtype)
    parameter.copy_(before + change)
    return parameter.to(change.dtype) - before


def corrected_stream(comparison: StreamComparison, correction: torch.Tensor) -> torch.Tensor:
    """The residual stream after a sub-layer that was corrected, at the real tokens."""
    features = comparison.reads.shape[1]
    stream = torch.addmm(comparison.wanted - comparison.lacks, comparison.reads, correction[:features])
    return stream + correction[features] if len(correction) > features else stream


def put_back(like: torch.Tensor, real: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
    """Hidden states of this shape with the stream at the real tokens; nobody reads the others."""
    hidden = torch.zeros_like(like)
    hidden.view(-1, hidden.shape[-1])[real] = stream.to(hidden.dtype)
    return hidden


class Gram:
    """Sums over tokens, in float64: what is read x what is read, what is read x what is lacking."""

    def __init__(self, linear: torch.nn.Module):
        self.features, self.bias, self.tokens = linear.in_features, linear.bias is not None, 0
        size = self.features + self.bias
        self.reads = linear.weight.new_zeros(size, size, dtype=torch.float64)
        self.lacking = linear.weight.new_zeros(size, linear.out_features, dtype=torch.float64)

    def add(self, comparison: StreamComparison) -> None:
        reads, lacks, wanted = comparison
        columns = torch.cat([reads, reads.new_ones(len(reads), 1)], 1) if self.bias else reads
        weights = token_weights(wanted)
        columns = columns * weights
        self.reads += columns.mT @ columns
        self.lacking += columns.mT @ (lacks * weights)
        self.tokens += len(reads)

    def merge(self, other: "Gram") -> None:
        self.reads += other.reads
        self.lacking += other.lacking
        self.tokens += other.tokens

    def solve(self, ridge: float) -> torch.Tensor:
        """Least squares with this pull: features (and the bias) x width."""
        matrix = self.reads.clone()
        diagonal = matrix.diagonal()
        diagonal[: self.features] += ridge * diagonal[: self.features].mean() + torch.finfo(torch.float64).tiny
        factor, failed = torch.linalg.cholesky_ex(matrix)
        return torch.linalg.solve(matrix, self.lacking) if failed else torch.cholesky_solve(self.lacking, factor)

    def error(self, correction: torch.Tensor) -> float:
        """Squared distance left at these tokens, but for what does not depend on the correction."""
        return float((correction * (self.reads @ correction - 2 * self.lacking)).sum())

    def error_at(self, other: "Gram", ridge: float) -> float:
        """The error at the other tokens of what is fitted to these with this ridge."""
        return other.error(self.solve(ridge))


class TokenGram(Gram):
    """The same for fewer tokens than features: rows are kept as they are, and equations are one per token.

    Of X W + u b = Y with the ridge s the solution is W = X' A, (X X' + s 1) A = Y, all with the direction of u, which
    the bias writes to, taken out. A layer of 8,192 units has 1 GB of sums over tokens and minutes of equations; 1,000
    tokens have 8 MB and a second.
    """

    def __init__(self, linear: torch.nn.Module):
        self.features, self.bias, self.tokens = linear.in_features, linear.bias is not None, 0
        wide = at_least_float32(linear.weight).dtype
        self.reads = linear.weight.new_zeros(0, self.features, dtype=wide)
        self.lacking = linear.weight.new_zeros(0, linear.out_features, dtype=wide)
        self.ones = linear.weight.new_zeros(0, 1, dtype=wide)
        self.products: torch.Tensor | None = None

    def add(self, comparison: StreamComparison) -> None:
        reads, lacks, wanted = comparison
        weights = token_weights(wanted)
        self._append(reads * weights, lacks * weights, weights)

    def merge(self, other: "Gram") -> None:
        assert isinstance(other, TokenGram)
        self._append(other.reads, other.lacking, other.ones)

    def _append(self, *more: torch.Tensor) -> None:
        rows = zip((self.reads, self.lacking, self.ones), more, strict=True)
        self.reads, self.lacking, self.ones = (torch.cat(pair) for pair in rows)
        self.tokens, self.products = len(self.reads), None

    def solve(self, ridge: float) -> torch.Tensor:
        reads, found = self.reads.double(), self._token_factors(ridge)
        weight = reads.mT @ found
        return torch.cat([weight, self._bias(reads @ weight)]) if self.bias else weight

    def error_at(self, other: Gram, ridge: float) -> float:
        """Without the weights themselves, which are far more numbers than those it takes."""
        assert isinstance(other, TokenGram)
        reads, found = self.reads.double(), self._token_factors(ridge)
        written = (other.reads.double() @ reads.mT) @ found
        if self.bias:
            written += other.ones.double() @ self._bias((reads @ reads.mT) @ found)
        return float((written * (written - 2 * other.lacking.double())).sum())

    def _token_factors(self, ridge: float) -> torch.Tensor:
        """A of the equations above, the direction of u taken out: tokens x width."""
        if self.products is None:
            rows = self.reads.double()
            self.products = rows @ rows.mT
        pull = ridge * self.products.trace() / self.features + torch.finfo(torch.float64).tiny
        matrix = self._without_ones(self._without_ones(self.products).mT)
        matrix.diagonal().add_(pull)
        lacking = self._without_ones(self.lacking.double())
        factor, failed = torch.linalg.cholesky_ex(matrix)
        found = torch.linalg.solve(matrix, lacking) if failed else torch.cholesky_solve(lacking, factor)
        return self._without_ones(found)

    def _without_ones(self, rows: torch.Tensor) -> torch.Tensor:
        """A copy of these rows, one per token, less their part along u where there is a bias."""
        if not self.bias:
            return rows.clone()
        ones = self.ones.double()
        return rows - ones @ (ones.mT @ rows) / ones.square().sum().clamp(min=torch.finfo(torch.float64).tiny)

    def _bias(self, written: torch.Tensor) -> torch.Tensor:
        """What brings the mean of what is written to that of what is lacking: 1 x width."""
        ones = self.ones.double()
        return (
            ones.mT @ (self.lacking.double() - written) / ones.square().sum().clamp(min=torch.finfo(torch.float64).tiny)
        )


def token_weights(wanted: torch.Tensor) -> torch.Tensor:
    """Tokens count by their relative distance, because what reads the stream next is a norm: tokens x 1."""
    return wanted.square().mean(1, keepdim=True).clamp(min=torch.finfo(wanted.dtype).tiny).rsqrt()


def best_ridge(fitting: Gram, checking: Gram) -> float:
    """Of RIDGES the one whose correction, fitted to some tokens, leaves the least error at others.

    From the usual one downhill, since every try is a solution of thousands of equations.
    """
    error = cache(lambda place: fitting.error_at(checking, RIDGES[place]))
    place = RIDGES.index(RIDGE)
    while (best := min(range(max(0, place - 1), min(len(RIDGES), place + 2)), key=error)) != place:
        place = best
    return RIDGES[place]


def leave_as_cut(network: PrunedNetwork, spec: SubnetSpec, original: StreamRecording) -> PrunedNetwork:
    """The sub-network as a network of its own, not repaired."""
    return extract(network, spec)


def repair_by_factors(network: PrunedNetwork, spec: SubnetSpec, original: StreamRecording) -> PrunedNetwork:
    """The sub-network as a network of its own with its tuned masks folded in."""
    return fold(network, tune_masks(network, spec, original))


def warn_of_few_tokens(spec: SubnetSpec, original: StreamRecording) -> None:
    """One line where a linear has more columns than there are tokens to fit them to."""
    tokens, most = sum(len(call.real) for call in original.calls), max(count(part.units) for part in spec)
    if tokens < most:
        logger.warning(
            "repair: %d calibration tokens for up to %d units per layer, so the ridge decides; more rows help.",
            *(tokens, most),
        )
