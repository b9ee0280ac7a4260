"""One training step of a super-network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import SubnetSpec
from archwright.subnet.strategies import Strategy, SubnetDraws

Distil = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""The sub-network's logits and the teacher's to a scalar."""


Average = Callable[[list[nn.Parameter]], None]
"""Gradients of Parameters to their means over all processes, in place."""
Seen = Callable[[SubnetSpec, float], None]
"""A sub-network, and its task loss minus that of the first one of the step."""


@dataclass(frozen=True)
class FixedTeacher:
    """A network that is not trained: its answers, and how others learn from labels and answers together."""

    answers: Callable[[Any], torch.Tensor]
    """Batch -> logits."""
    distil: Distil
    label_share: float = 0.5
    """Weight of the task loss; the rest is that of the distillation."""

    def loss(self, task_loss: torch.Tensor, logits: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        return self.label_share * task_loss + (1 - self.label_share) * self.distil(logits, answers)


def labelled_logits(batch: Any, logits: torch.Tensor) -> torch.Tensor:
    """The logits at the tokens that the task asks about: elsewhere there is nothing to learn from a teacher."""
    asked = getattr(batch, "asked", None)
    return logits if asked is None else logits[asked]


def supernet_update(
    model: PrunedNetwork,
    draw: SubnetDraws,
    strategy: Strategy,
    *,
    loss: Loss,
    distil: Distil,
    teacher: FixedTeacher | None = None,
    clip: float | None = None,
    seen: Seen | None = None,
    average: Average | None = None,
) -> Callable[[Any, np.random.Generator, float], float]:
    """A step that leaves the summed gradients of the strategy's sub-networks; returns the first one's task loss.

    Those that learn from a teacher learn from the step's first network, as it is at this moment, or from a fixed
    teacher; from that one the first network learns too. With `clip` the gradient of every sub-network has at most this
    norm, so that no single one outweighs the others. `seen` is told how much worse than the first each of the others
    was, for strategies that learn from it. `average` makes the mean over several processes of the gradient of one
    sub-network, before it is clipped.
    """
    parameters = [p for p in model.parameters() if p.requires_grad]

    def update(batch: Any, rng: np.random.Generator, progress: float) -> float:
        batch = batch.to(model.device)
        updates = strategy(draw, rng, progress)
        fixed = teacher is not None and any(learns for _, learns in updates)
        answers: Any = labelled_logits(batch, teacher.answers(batch)) if teacher is not None and fixed else None
        first: Any = None
        gradients = GradientSum(parameters, clip, average) if clip is not None else None
        for spec, learns in updates:
            with subnetwork(model, spec):
                logits = model(**batch.inputs).logits
                value = loss(logits, batch.targets)
                if first is None:
                    first = value.detach()
                elif seen is not None:
                    seen(spec, float(value.detach() - first))
                answered = labelled_logits(batch, logits)
                if teacher is not None and fixed:
                    value = teacher.loss(value, answered, answers)
                elif learns and answers is not None:
                    value = value + distil(answered, answers)
                value.backward()  # at once: a joint backward would only hold more memory
            if gradients is not None:
                gradients.add()
            answers = answered.detach() if answers is None else answers
        if gradients is not None:
            gradients.restore()
        return float(first)

    return update


class GradientSum:
    """Gradients that are clipped one by one before they are summed; `restore` puts the sum where an optimizer looks."""

    def __init__(self, parameters: list[nn.Parameter], clip: float, average: Average | None = None) -> None:
        self.parameters, self.clip, self.average = parameters, clip, average
        self.sums = [p.grad for p in parameters]  # of earlier batches of the same step
        self._clear()

    def add(self) -> None:
        """Takes over what a backward pass has left, clipped."""
        if self.average is not None:
            self.average(self.parameters)
        nn.utils.clip_grad_norm_(self.parameters, self.clip)
        both = [(place, p.grad) for place, p in enumerate(self.parameters) if p.grad is not None]
        fresh = [(place, gradient) for place, gradient in both if self.sums[place] is None]
        added = [(self.sums[place], gradient) for place, gradient in both if self.sums[place] is not None]
        if added:
            torch._foreach_add_([total for total, _ in added], [gradient for _, gradient in added])
        for place, gradient in fresh:
            self.sums[place] = gradient
        self._clear()

    def restore(self) -> None:
        for parameter, total in zip(self.parameters, self.sums, strict=True):
            parameter.grad = total

    def _clear(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None


def plain_update(
    model: Any, *, loss: Loss, teacher: FixedTeacher | None = None
) -> Callable[[Any, np.random.Generator, float], float]:
    """A step of ordinary fine-tuning, optionally also towards the answers of a teacher."""

    def update(batch: Any, rng: np.random.Generator, progress: float) -> float:
        batch = batch.to(model.device)
        logits = model(**batch.inputs).logits
        value = loss(logits, batch.targets)
        if teacher is None:
            total = value
        else:
            answers = labelled_logits(batch, teacher.answers(batch))
            total = teacher.loss(value, labelled_logits(batch, logits), answers)
        total.backward()
        return float(value.detach())

    return update
