"""A FlexiBERT encoder with the head of one pre-training loss, as a Hugging Face model."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from transformers import PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.modeling_outputs import ModelOutput

from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.layers import Embeddings, Encoder
from archwright.networks.roles import Roles

IGNORED = -100
"""The label of a token that the loss leaves out."""


@dataclass
class FlexiBertAnswer(ModelOutput):
    """The loss is there when labels were given."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    last_hidden_state: torch.Tensor | None = None


class ReplacedTokens(nn.Module):
    """ELECTRA's discriminator (Clark et al. 2020): was this token replaced? Labels 0 and 1, one per token."""

    def __init__(self, config: FlexiBertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.output = nn.Linear(config.hidden_size, 1)

    def forward(self, hidden: torch.Tensor, _: Embeddings) -> torch.Tensor:
        return self.output(nn.functional.gelu(self.dense(hidden))).squeeze(-1)  # batch x time

    def loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        asked = labels != IGNORED
        return binary_cross_entropy_with_logits(logits[asked], labels[asked].to(logits.dtype))


class MaskedTokens(nn.Module):
    """Which token stood here? The output matrix is the table of token embeddings."""

    def __init__(self, config: FlexiBertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.embedding_size)
        self.norm = nn.LayerNorm(config.embedding_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden: torch.Tensor, embeddings: Embeddings) -> torch.Tensor:
        states = self.norm(nn.functional.gelu(self.dense(hidden)))
        return nn.functional.linear(states, embeddings.tokens.weight, self.bias)  # batch x time x vocabulary

    def loss(self, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


class SummedState(nn.Module):
    """No loss, but what the public scoring script back-propagates: the sum of the last hidden state.

    At initialisation that state comes out of a LayerNorm and its sum is a constant, so the true gradient is zero.
    """

    def __init__(self, _: FlexiBertConfig):
        super().__init__()

    def forward(self, hidden: torch.Tensor, _: Embeddings) -> torch.Tensor:
        return hidden

    def loss(self, logits: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return logits.sum()


HEADS: dict[str, Callable[[FlexiBertConfig], nn.Module]] = {
    "electra": ReplacedTokens,
    "mlm": MaskedTokens,
    "published": SummedState,
}


class FlexiBertNetwork(PreTrainedModel):
    """Trained and saved like any Hugging Face model; tells a probe its roles."""

    config_class = FlexiBertConfig
    base_model_prefix = "encoder"

    def __init__(self, config: FlexiBertConfig):
        super().__init__(config)
        self.encoder = Encoder(config)
        self.head = HEADS[config.loss](config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embeddings.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.embeddings.tokens = value

    def roles(self) -> Roles:
        return self.encoder.roles()

    def forward(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> FlexiBertAnswer:
        """`attention_mask` is 0 where padding is; padding has no part in any loss but `published`."""
        mask = padding(attention_mask)
        hidden = self.encoder(input_ids, mask, token_type_ids)
        logits = self.head(hidden, self.encoder.embeddings)
        if labels is not None and mask is not None:
            labels = labels.masked_fill(~mask, IGNORED)
        loss = None if labels is None else self.head.loss(logits, labels)
        return FlexiBertAnswer(loss=loss, logits=logits, last_hidden_state=hidden)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)


def padding(attention_mask: torch.Tensor | None) -> torch.Tensor | None:
    """True at real tokens; nothing when there is no padding, which is the faster way."""
    if attention_mask is None or bool(attention_mask.bool().all()):
        return None
    return attention_mask.bool()


def fill(module: nn.Module, *, std: float, generator: torch.Generator | None = None) -> None:
    """Biases 0, norms 1, everything else normal around 0."""
    drawn = partial(nn.init.normal_, std=std, generator=generator)
    fills = {"bias": nn.init.zeros_, "weight": nn.init.ones_ if isinstance(module, nn.LayerNorm) else drawn}
    for name, weight in module.named_parameters(recurse=False):
        fills[name](weight)


def untrained(config: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
    """A network in evaluation mode, every weight drawn once.

    The lookup tables are drawn last: one seed gives the same layers whatever the vocabulary.
    """
    with torch.device(generator.device), no_init_weights():
        network = FlexiBertNetwork(config)
    for module in sorted(network.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return network.eval()
