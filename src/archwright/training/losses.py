"""Losses of tasks and of distillation: means over the targets of all processes, in pieces where there are many."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from archwright.data.encoding import NO_TARGET
from archwright.networks.precision import at_least_float32
from archwright.tasks import TASK_KINDS
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup

PIECE = 2**22
"""Logits worked on at once: a language model has so many that every copy of all of them would be felt."""


def task_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    group: ProcessGroup = SINGLE_PROCESS,
    *,
    weights: tuple[float, ...] | None = None,
) -> torch.Tensor:
    """Mean cross-entropy of all positions that have a target (not -100), or squared error for a single output.

    Logits and targets: rows x classes and rows (classification, multiple choice), rows x 2 x time and rows x 2 (starts
    and ends of answers), rows x time x vocabulary and rows x time (language modelling, tags of words). Targets that are
    numbers, rows x labels, are probabilities of labels (multi-label): the mean binary cross-entropy. With weights of
    classes it is the weighted mean over the positions. Targets of rows x texts x width are vectors to learn.
    """
    if targets.dim() == 3 and targets.is_floating_point():
        return vector_distance(logits, targets, group)
    if targets.dim() == 2 and targets.is_floating_point():
        count = group.count(size_of(targets), rows_in)
        return binary_cross_entropy(logits, targets) / (count * targets.shape[1])
    flat = targets.flatten()
    if logits.shape[-1] == 1:
        return squared_error(logits.flatten(), flat) / group.count(size_of(flat), numbers_in)
    if weights is not None:
        logits = at_least_float32(logits)
        each = torch.tensor(weights, dtype=logits.dtype, device=logits.device)
        count = at_least_one(group.count(each[flat[flat != NO_TARGET]].sum(), WeightsIn(weights)))
        return nn.functional.cross_entropy(logits, flat, weight=each, ignore_index=NO_TARGET, reduction="sum") / count
    count = at_least_one(group.count((flat != NO_TARGET).sum(), targets_in))
    return mean_in_pieces(cross_entropy, logits.flatten(0, -2), flat, count=count)


def at_least_one(count: torch.Tensor) -> torch.Tensor:
    """1 in place of 0: the loss of a batch without any target is 0."""
    return count + (count == 0).to(count.dtype)


def vector_distance(vectors: torch.Tensor, targets: torch.Tensor, group: ProcessGroup = SINGLE_PROCESS) -> torch.Tensor:
    """Squared distance from the target as a share of its squared length, mean over texts.

    Of vectors of length 1 it is twice the cosine distance; of others it also teaches their length.
    """
    flat, wanted = (at_least_float32(x.flatten(0, -2)) for x in (vectors, targets))  # texts x width
    lengths = wanted.square().sum(-1).clamp(min=torch.finfo(wanted.dtype).tiny)
    shares = (flat - wanted).square().sum(-1) / lengths
    return shares.sum() / group.count(size_of(flat), texts_in)


def distillation(
    logits: torch.Tensor, teacher: torch.Tensor, temperature: float, group: ProcessGroup = SINGLE_PROCESS
) -> torch.Tensor:
    """KL divergence from the softened teacher, mean over positions (Equation 2, no T^2 factor), or squared error."""
    flat, targets = logits.flatten(0, -2), teacher.flatten(0, -2)
    count = group.count(size_of(flat), numbers_in)
    if logits.shape[-1] == 1:
        return squared_error(flat, targets) / count

    def divergence(logits: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
        soft, target = (torch.log_softmax(at_least_float32(x) / temperature, dim=-1) for x in (logits, teacher))
        return nn.functional.kl_div(soft, target, log_target=True, reduction="sum")

    return mean_in_pieces(divergence, flat, targets, count=count)


def find_distillation(kind: str) -> Callable[..., torch.Tensor]:
    """Logits, the teacher's, the temperature and the processes to the loss that suits a kind of task."""
    return sigmoid_distillation if TASK_KINDS[kind].independent else distillation


def sigmoid_distillation(
    logits: torch.Tensor, teacher: torch.Tensor, temperature: float, group: ProcessGroup = SINGLE_PROCESS
) -> torch.Tensor:
    """KL divergence from the softened teacher where every label is a yes or no, mean over rows and labels."""
    ours, theirs = (at_least_float32(x) / temperature for x in (logits, teacher))
    wanted, count = torch.sigmoid(theirs), group.count(size_of(logits), rows_in) * logits.shape[-1]
    return (binary_cross_entropy(ours, wanted) - binary_cross_entropy(theirs, wanted)) / count  # minus the entropy


def targets_in(batch: Any) -> int:
    """How many targets a batch has."""
    return int((batch.targets != NO_TARGET).sum())


def texts_in(batch: Any) -> int:
    """How many vectors are learnt from a batch."""
    return int(batch.targets.shape[0] * batch.targets.shape[1])


def numbers_in(batch: Any) -> int:
    """The same, those that are none included: a network answers at every position."""
    return int(batch.targets.numel())


@dataclass(frozen=True)
class WeightsIn:
    """The weights of all targets of a batch."""

    weights: tuple[float, ...]

    def __call__(self, batch: Any) -> float:
        return float(sum(self.weights[target] for target in batch.targets.tolist() if target != NO_TARGET))


def rows_in(batch: Any) -> int:
    return len(batch.targets)


def size_of(rows: torch.Tensor) -> torch.Tensor:
    return torch.tensor(len(rows), device=rows.device)


def squared_error(values: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    values = at_least_float32(values)
    return nn.functional.mse_loss(values, targets.to(values.dtype), reduction="sum")


def binary_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    logits = at_least_float32(logits)
    return nn.functional.binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), reduction="sum")


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(at_least_float32(logits), targets, ignore_index=NO_TARGET, reduction="sum")


Total = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def mean_in_pieces(total: Total, logits: torch.Tensor, targets: torch.Tensor, *, count: torch.Tensor) -> torch.Tensor:
    """`total` over all positions by `count`; for many logits in pieces, so that its temporaries stay small."""
    if logits.numel() <= PIECE:
        return total(logits, targets) / count
    mean: torch.Tensor = InPieces.apply(total, logits, targets, count)
    return mean


class InPieces(torch.autograd.Function):
    """A mean over positions; its gradient is made piece by piece on the way forward: one copy of the logits."""

    @staticmethod
    def forward(
        ctx: Any, total: Total, logits: torch.Tensor, targets: torch.Tensor, count: torch.Tensor
    ) -> torch.Tensor:
        size, differentiable = max(1, PIECE // logits.shape[-1]), ctx.needs_input_grad[1]
        gradient = torch.empty_like(logits) if differentiable else None
        mean: Any = 0.0
        for start in range(0, len(logits), size):
            with torch.set_grad_enabled(differentiable):
                piece = logits[start : start + size].detach().requires_grad_(differentiable)
                part = total(piece, targets[start : start + size]) / count
            if gradient is not None:
                gradient[start : start + size] = torch.autograd.grad(part, piece)[0]
            mean = mean + part.detach()
        ctx.save_for_backward(gradient)
        return mean

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[None, torch.Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return None, gradient if float(slopes[0]) == 1.0 else gradient * slopes[0], None, None
