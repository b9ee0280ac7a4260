"""How wrong a network, or a sub-network inside it, is on data."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from archwright.data.batching import Batch
from archwright.errors import Failed
from archwright.judge import METRICS
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.keep import Keep
from archwright.subnet.slicing import subnetwork


def error(
    model: PrunedNetwork,
    batches: Iterable[Batch],
    keep: Keep | None = None,
    *,
    metric: str,
    positive: int | None = None,
) -> float:
    """1 - metric, lower is better, of the sub-network `keep` (None: the whole network); 0 is perfect.

    `positive` is the id of the class that F1 is about, for two classes whose order a checkpoint may have turned.
    """
    batches = list(batches)
    targets = in_row_order([batch.targets for batch in batches], batches)
    answers = predictions(model, batches, keep)
    if positive is not None:
        answers, targets = answers == positive, targets == positive
    return 1.0 - METRICS[metric](answers, targets)


def predictions(model: PrunedNetwork, batches: Iterable[Batch], keep: Keep | None = None) -> NDArray[Any]:
    """Class ids, or numbers where the network has a single output; in the order of the rows, not of the batches."""
    batches = list(batches)
    part = nullcontext() if keep is None else subnetwork(model, keep)
    with evaluating(model), torch.no_grad(), part:  # inference mode would leak into modules that are swapped back
        answers = [decided(model(**batch.to(model.device).inputs).logits).cpu() for batch in batches]
    return in_row_order(answers, batches)


def decided(logits: torch.Tensor) -> torch.Tensor:
    """The answers in rows x labels logits; the largest of NaNs is no answer, so it raises."""
    if not torch.isfinite(logits).all():
        raise Failed("the network answers NaN or infinity; train it again with a smaller --learning-rate.")
    return logits.squeeze(-1) if logits.shape[-1] == 1 else logits.argmax(-1)


def in_row_order(values: Sequence[torch.Tensor], batches: Sequence[Batch]) -> NDArray[Any]:
    """One value per row, sorted by the rows' positions in the data."""
    rows = np.concatenate([batch.rows for batch in batches])
    return torch.cat(list(values)).numpy()[np.argsort(rows)]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode inside; afterwards every module is in the mode it was in."""
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode
