"""What the encoders of our spaces share: heads of pre-training losses, padding, and how first weights are filled in."""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers.modeling_outputs import ModelOutput

IGNORED = -100
"""The label of a token that the loss leaves out."""


class Sizes(Protocol):
    """What a head wants to know of a config."""

    hidden_size: int
    embedding_size: int
    vocab_size: int
    layer_norm_eps: float


class Embedding(Protocol):
    """Where a head finds the table of tokens."""

    tokens: nn.Embedding


class PretrainingHead(Protocol):
    """From hidden states, of any number of dimensions, to logits and their loss; labels are one per state."""

    def __call__(self, hidden: torch.Tensor, embeddings: Embedding) -> torch.Tensor: ...

    def loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor: ...


@dataclass
class Answer(ModelOutput):
    """The loss is there when labels were given."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    last_hidden_state: torch.Tensor | None = None


class ReplacedTokens(nn.Module):
    """ELECTRA's discriminator (Clark et al. 2020): was this token replaced? Labels 0 and 1, one per token."""

    def __init__(self, config: Sizes):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, 1)

    def forward(self, hidden: torch.Tensor, _: Embedding) -> torch.Tensor:
        return self.output(nn.functional.gelu(self.dense(hidden))).squeeze(-1)  # batch x time

    def loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        asked = labels != IGNORED
        return binary_cross_entropy_with_logits(logits[asked], labels[asked].to(logits.dtype))


class MaskedTokens(nn.Module):
    """Which token stood here? The output matrix is the table of token embeddings."""

    def __init__(self, config: Sizes):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = nn.LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: torch.Tensor, embeddings: Embedding) -> torch.Tensor:
        states = self.norm(nn.functional.gelu(self.dense(hidden)))
        return nn.functional.linear(states, embeddings.tokens.weight, self.bias)  # batch x time x vocabulary

    def loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED)


def apply_head(
    head: PretrainingHead,
    hidden: torch.Tensor,
    embeddings: Embedding,
    *,
    labels: torch.Tensor | None,
    mask: torch.Tensor | None,
    loss_alone: bool,
) -> Answer:
    """What a network answers; with `loss_alone` there are no logits, and they are made only where a label is."""
    if labels is not None and mask is not None:
        labels = labels.masked_fill(~mask, IGNORED)
    if not loss_alone:
        logits = head(hidden, embeddings)
        return Answer(None if labels is None else head.loss(logits, labels), logits, hidden)
    loss = None
    if labels is not None:
        asked = labels != IGNORED
        loss = head.loss(head(hidden[asked], embeddings), labels[asked])
    return Answer(loss=loss, last_hidden_state=hidden)


def padding(attention_mask: torch.Tensor | None) -> torch.Tensor | None:
    """True at real tokens; nothing when there is no padding, which is the faster way.

    An exported graph cannot look whether there is any, so it has the mask always.
    """
    if attention_mask is None:
        return None
    mask = attention_mask.bool()
    return None if not torch.compiler.is_compiling() and bool(mask.all()) else mask


def fill(module: nn.Module, *, std: float, generator: torch.Generator | None = None) -> None:
    """Biases 0, norms 1, everything else normal around 0."""
    drawn = partial(nn.init.normal_, std=std, generator=generator)
    fills = {"bias": nn.init.zeros_, "weight": nn.init.ones_ if isinstance(module, nn.LayerNorm) else drawn}
    for name, weight in module.named_parameters(recurse=False):
        fills[name](weight)
