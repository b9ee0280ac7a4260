"""Masked language modelling (Devlin et al. 2019): which token stood here?"""

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.loop import Update
from archwright.training.losses import NO_TARGET, task_loss


@runtime_checkable
class Headed(Protocol):
    """A network of our spaces: the hidden states without the head on `loss_alone`, and the head by itself."""

    encoder: Any
    head: nn.Module

    def __call__(self, input_ids: torch.Tensor, *, loss_alone: bool) -> Any: ...


def mlm_update(network: Any, *, group: ProcessGroup = SINGLE_PROCESS) -> Update:
    """A step of guessing the tokens that were hidden.

    Targets of a batch are the tokens that stood where a guess is wanted, -100 elsewhere; its inputs are masked already.
    """

    def update(batch: Any, rng: np.random.Generator, share: float) -> torch.Tensor:
        batch = batch.to(network.device)
        wanted = batch.targets != NO_TARGET
        loss = task_loss(masked_token_logits(network, batch.inputs, wanted), batch.targets[wanted], group)
        loss.backward()
        return loss.detach()

    return update


def masked_token_logits(network: Any, inputs: dict[str, torch.Tensor], wanted: torch.Tensor) -> torch.Tensor:
    """Logits where they are wanted, places x vocabulary; only those places go through the vocabulary if it can be."""
    if isinstance(network, Headed):
        hidden = network(**inputs, loss_alone=True).last_hidden_state
        found: torch.Tensor = network.head(hidden[wanted], network.encoder.embeddings)
        return found
    logits: torch.Tensor = network(**inputs).logits
    return logits[wanted]
