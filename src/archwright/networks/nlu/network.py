"""An NLU network: the body, and the body with the head of one pre-training loss, as Hugging Face models."""

from collections.abc import Callable

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.layers import NluEmbeddings, layer_of
from archwright.networks.pretraining import Answer, MaskedTokens, ReplacedTokens, answered, fill, padding
from archwright.networks.roles import Roles

HEADS: dict[str, Callable[[NluConfig], nn.Module]] = {"mlm": MaskedTokens, "electra": ReplacedTokens}


class NluModel(PreTrainedModel):
    """The body: embeddings and layers."""

    config_class = NluConfig
    base_model_prefix = "encoder"

    def __init__(self, config: NluConfig):
        super().__init__(config)
        self.embeddings = NluEmbeddings(config)
        self.layers = nn.ModuleList(layer_of(config, plan) for plan in config.plans)
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


class NluNetwork(PreTrainedModel):
    """Trained and saved like any Hugging Face model; tells a probe its roles."""

    config_class: type[NluConfig] = NluConfig
    base_model_prefix = "encoder"

    def __init__(self, config: NluConfig):
        super().__init__(config)
        self.encoder = NluModel(config)
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
        """`attention_mask` is 0 where padding is; padding has no part in any loss.

        With `loss_alone` the same loss comes without logits, for training: they are made only where a label is.
        """
        hidden = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        mask = padding(attention_mask)
        return answered(self.head, hidden, self.encoder.embeddings, labels=labels, mask=mask, loss_alone=loss_alone)

    def _init_weights(self, module: nn.Module) -> None:
        fill(module, std=self.config.initializer_range)
