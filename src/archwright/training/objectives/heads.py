"""Networks of our spaces by their parts: the body, and the head that guesses tokens."""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn


@runtime_checkable
class Headed(Protocol):
    """A network of our spaces: the hidden states without the head on `loss_alone`, and the head by itself."""

    encoder: Any
    head: nn.Module

    def __call__(self, input_ids: torch.Tensor, *, loss_alone: bool) -> Any: ...


def masked_token_logits(network: Any, inputs: dict[str, torch.Tensor], hidden: torch.Tensor) -> torch.Tensor:
    """Logits at the hidden positions, positions x vocabulary; no others go through the vocabulary where possible."""
    if isinstance(network, Headed):
        states = network(**inputs, loss_alone=True).last_hidden_state
        logits: torch.Tensor = network.head(states[hidden], network.encoder.embeddings)
        return logits
    logits = network(**inputs).logits
    return logits[hidden]
