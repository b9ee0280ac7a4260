"""A FlexiBERT encoder, alone or with the head of one pre-training loss, as a Hugging Face model."""

from collections.abc import Callable

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.initialization import no_init_weights
from transformers.modeling_outputs import BaseModelOutput

from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.layers import Embeddings, Encoder
from archwright.networks.pretraining import Answer, MaskedTokens, ReplacedTokens, answered, fill, padding
from archwright.networks.roles import Roles


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


class FlexiBertModel(PreTrainedModel):
    """The body: embeddings and layers, named as in the encoder of a FlexiBertNetwork."""

    config_class = FlexiBertConfig
    base_model_prefix = "encoder"

    def __init__(self, config: FlexiBertConfig):
        super().__init__(config)
        encoder = Encoder(config)
        self.embeddings, self.layers = encoder.embeddings, encoder.layers
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.tokens = value

    def roles(self) -> Roles:
        return Roles(self.embeddings, [layer.roles() for layer in self.layers])

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """`attention_mask` is 0 where padding is. Hidden states are those of the embeddings and of every layer."""
        mask = padding(attention_mask)
        states = [self.embeddings(input_ids, token_type_ids)]
        for layer in self.layers:
            states = [*(states if output_hidden_states else []), layer(states[-1], mask)]
        return BaseModelOutput(states[-1], hidden_states=tuple(states) if output_hidden_states else None)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)


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
        loss_alone: bool = False,
    ) -> Answer:
        """`attention_mask` is 0 where padding is; padding has no part in any loss but `published`.

        With `loss_alone` the same loss comes without logits, for training: they are made only where a label is.
        """
        mask = padding(attention_mask)
        hidden = self.encoder(input_ids, mask, token_type_ids)
        return answered(self.head, hidden, self.encoder.embeddings, labels=labels, mask=mask, loss_alone=loss_alone)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)


def untrained(config: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
    """A network in evaluation mode, every weight drawn once.

    The lookup tables are drawn last: one seed gives the same layers whatever the vocabulary.
    """
    with torch.device(generator.device), no_init_weights():
        network = FlexiBertNetwork(config)
    for module in sorted(network.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return network.eval()
