"""One training step of a super-network."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.importance import Loss
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import SubnetSpec
from archwright.subnet.strategies import Strategy, SubnetDraws

Distil = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""The sub-network's logits and the teacher's to a scalar."""


Seen = Callable[[SubnetSpec, float], None]
"""A sub-network, and its task loss minus that of the first one of the step."""


def supernet_update(
    model: PrunedNetwork, draw: SubnetDraws, strategy: Strategy, *, loss: Loss, distil: Distil, seen: Seen | None = None
) -> Callable[[Any, np.random.Generator, float], float]:
    """A step that leaves the summed gradients of the strategy's sub-networks; returns the first one's task loss.

    `seen` is told how much worse than the first each of the others was, for strategies that learn from it.
    """

    def update(batch: Any, rng: np.random.Generator, progress: float) -> float:
        batch = batch.to(model.device)
        teacher: Any = None
        first: Any = None
        for spec, learns in strategy(draw, rng, progress):
            with subnetwork(model, spec):
                logits = model(**batch.inputs).logits
                value = loss(logits, batch.targets)
                if first is None:
                    first = value.detach()
                elif seen is not None:
                    seen(spec, float(value.detach() - first))
                if learns and teacher is not None:
                    value = value + distil(logits, teacher)
                value.backward()  # at once: a joint backward would only hold more memory
            teacher = logits.detach() if teacher is None else teacher
        return float(first)

    return update


def plain_update(
    model: Any, *, loss: Loss, distil: Distil | None = None, teacher: Any = None
) -> Callable[[Any, np.random.Generator, float], float]:
    """A step of ordinary fine-tuning, optionally also towards the answers of a teacher network."""

    def update(batch: Any, rng: np.random.Generator, progress: float) -> float:
        batch = batch.to(model.device)
        logits = model(**batch.inputs).logits
        value = loss(logits, batch.targets)
        total = value
        if teacher is not None and distil is not None:
            with torch.no_grad():
                answers = teacher(**batch.inputs).logits
            total = value + distil(logits, answers)
        total.backward()
        return float(value.detach())

    return update
