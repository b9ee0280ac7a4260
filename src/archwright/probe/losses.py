"""What the loss pass goes back from: a scalar of a network and a batch."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from archwright.errors import BadInput

Batch = Mapping[str, torch.Tensor]
"""input_ids and labels, batch x time each, without padding."""


def own_loss(network: Any, batch: Batch) -> torch.Tensor:
    """The loss the network itself gives for these labels; its head was chosen when it was built."""
    loss = network(batch["input_ids"], batch["labels"]).loss
    if loss is None:
        raise BadInput("The network gives no loss for these labels; build it with the head of the loss wanted.")
    return loss


def summed_state(network: Any, batch: Batch) -> torch.Tensor:
    """Sum of the last hidden state, as the public scoring script of the FlexiBERT benchmark has it.

    Where a LayerNorm comes last its true gradient is zero and what comes out is rounding noise. That script also
    left dropout on; here it is off, as everywhere.
    """
    return network(batch["input_ids"]).last_hidden_state.sum()


LOSSES: dict[str, Callable[[Any, Batch], torch.Tensor]] = {
    "electra": own_loss,
    "mlm": own_loss,
    "lm": own_loss,
    "published": summed_state,
}
"""Replaced-token detection, masked and causal language modelling, and what the public script does."""
