"""A FlexiBERT encoder, alone or with the head of one pre-training loss, as a Hugging Face model."""

from collections.abc import Callable

import torch
from torch import nn
from transformers.initialization import no_init_weights

from archwright.networks.encoders import EncoderModel, EncoderNetwork
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.layers import FlexiBertEmbeddings, FlexiBertLayer
from archwright.networks.pretraining import MaskedTokens, ReplacedTokens, fill


class SummedState(nn.Module):
    """No loss, but what the public scoring script back-propagates: the sum of the last hidden state.

    At initialisation that state comes out of a LayerNorm and its sum is a constant, so the true gradient is zero.
    """

    def __init__(self, _: FlexiBertConfig):
        super().__init__()

    def forward(self, hidden: torch.Tensor, _: FlexiBertEmbeddings) -> torch.Tensor:
        return hidden

    def loss(self, logits: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return logits.sum()


HEADS: dict[str, Callable[[FlexiBertConfig], nn.Module]] = {
    "electra": ReplacedTokens,
    "mlm": MaskedTokens,
    "published": SummedState,
}


class FlexiBertModel(EncoderModel):
    """Embeddings and layers."""

    config_class = FlexiBertConfig

    def __init__(self, config: FlexiBertConfig):
        super().__init__(
            config, FlexiBertEmbeddings(config), nn.ModuleList(FlexiBertLayer(config, plan) for plan in config.plans)
        )


class FlexiBertNetwork(EncoderNetwork):
    """With the head of `config.loss`; padding has a part in the sum of `published`."""

    config_class = FlexiBertConfig
    body, heads = FlexiBertModel, HEADS


def build_flexibert(config: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
    """A network in evaluation mode, every weight drawn once.

    The lookup tables are drawn last: one seed gives the same layers whatever the vocabulary.
    """
    with torch.device(generator.device), no_init_weights():
        network = FlexiBertNetwork(config)
    for module in sorted(network.modules(), key=lambda module: isinstance(module, nn.Embedding)):
        fill(module, std=config.initializer_range, generator=generator)
    return network.eval()
