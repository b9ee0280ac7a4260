"""What the encoders of our spaces are as Hugging Face models: the body, and the body with the head of one loss."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from archwright.networks.pretraining import Answer, apply_head, fill, padding
from archwright.networks.roles import Roles


class EncoderModel(PreTrainedModel):
    """The body. A space says what its embeddings (ids, mask, segments) and its layers (hidden state, mask) are."""

    base_model_prefix = "encoder"

    def __init__(self, config: Any, embeddings: nn.Module, layers: nn.ModuleList):
        super().__init__(config)
        self.embeddings, self.layers = embeddings, layers
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
        states = [self.embeddings(input_ids, mask, token_type_ids)]
        for layer in self.layers:
            states = [*(states if output_hidden_states else []), layer(states[-1], mask)]
        return BaseModelOutput(states[-1], hidden_states=tuple(states) if output_hidden_states else None)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)


class EncoderNetwork(PreTrainedModel):
    """Trained and saved like any Hugging Face model; tells a probe its roles."""

    base_model_prefix = "encoder"
    body: ClassVar[type[Any]]
    heads: ClassVar[Mapping[str, Callable[[Any], nn.Module]]]
    """By the loss that the config names."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.encoder = self.body(config)
        self.head = self.heads[config.loss](config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

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
        """`attention_mask` is 0 where padding is; padding has no part in any loss of tokens.

        With `loss_alone` the same loss comes without logits, for training: they are made only where a label is.
        """
        hidden = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        mask = None if attention_mask is None else attention_mask.bool()
        return apply_head(self.head, hidden, self.encoder.embeddings, labels=labels, mask=mask, loss_alone=loss_alone)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)
