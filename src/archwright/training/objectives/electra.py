"""ELECTRA (Clark et al. 2020): a small generator fills in hidden tokens, the discriminator says which were replaced."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update, tokens_of
from archwright.training.losses import NO_TARGET, task_loss
from archwright.training.objectives.mlm import masked_token_logits

WEIGHTS = (1.0, 50.0)
"""Of the generator's loss and of the discriminator's, as published."""


def electra_update(
    generator: Any, discriminator: Any, *, weights: tuple[float, float] = WEIGHTS, group: ProcessGroup = SINGLE_PROCESS
) -> Update:
    """A step of both networks; the loss is the weighted sum. Batches are masked as for `masked_update`.

    The generator learns from the hidden tokens alone: no gradient goes through what it draws.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(discriminator.device)
        hidden = batch.targets != NO_TARGET
        logits = masked_token_logits(generator, batch.inputs, hidden)
        guess = task_loss(logits, batch.targets[hidden], group)
        filled, replaced = fill_in(batch, drawn(logits.detach(), own_share(rng, group)))
        told = detection(discriminator, {**batch.inputs, "input_ids": filled}, replaced, group)
        loss = weights[0] * guess + weights[1] * told
        loss.backward()
        return loss.detach()

    return update


def own_share(rng: np.random.Generator, group: ProcessGroup) -> np.random.Generator:
    """Every process its own randomness; the first one that of a process alone."""
    return rng if group.first else np.random.default_rng((*rng.integers(2**32, size=4), group.rank))


@torch.no_grad()
def drawn(logits: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """One token per row of rows x vocabulary, each with its probability.

    The token at which the summed probabilities pass a random number: one number per row instead of one per logit.
    """
    passed = logits.float().softmax(-1).cumsum(-1)
    marks = torch.from_numpy(rng.random((len(logits), 1), dtype=np.float32)).to(logits.device)
    return torch.searchsorted(passed, marks * passed[:, -1:], right=True)[:, 0].clamp(max=logits.shape[-1] - 1)


def fill_in(batch: Any, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids with these tokens where some were hidden, and whether each is another than the original's."""
    hidden = batch.targets != NO_TARGET
    ids = batch.inputs["input_ids"].clone()
    ids[hidden] = tokens
    return ids, hidden & (ids != batch.targets)


def detection(
    network: Any, inputs: dict[str, torch.Tensor], replaced: torch.Tensor, group: ProcessGroup
) -> torch.Tensor:
    """Mean over all tokens that are not padding of the binary cross-entropy of `replaced`."""
    logits: torch.Tensor = network(**inputs).logits
    mask = inputs.get("attention_mask")
    real = torch.ones_like(replaced) if mask is None else mask.bool()
    sizes = binary_cross_entropy_with_logits(logits, replaced.to(logits.dtype), reduction="none")
    return sizes.masked_fill(~real, 0.0).sum() / group.count(real.sum(), tokens_of)


def share_embeddings(generator: Any, discriminator: Any) -> nn.ModuleDict:
    """Both as one module to train, with one table of tokens; the generator's own table is gone."""
    generator.set_input_embeddings(discriminator.get_input_embeddings())
    return nn.ModuleDict({"discriminator": discriminator, "generator": generator})
