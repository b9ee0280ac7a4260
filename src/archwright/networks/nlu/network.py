"""An NLU network: the body, and the body with the head of one pre-training loss, as Hugging Face models."""

from collections.abc import Callable

from torch import nn

from archwright.networks.encoders import EncoderModel, EncoderNetwork
from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.layers import NluEmbeddings, layer_of
from archwright.networks.pretraining import MaskedTokens, ReplacedTokens

HEADS: dict[str, Callable[[NluConfig], nn.Module]] = {"mlm": MaskedTokens, "electra": ReplacedTokens}


class NluModel(EncoderModel):
    """Embeddings and layers."""

    config_class = NluConfig

    def __init__(self, config: NluConfig):
        super().__init__(config, NluEmbeddings(config), nn.ModuleList(layer_of(config, plan) for plan in config.plans))


class NluNetwork(EncoderNetwork):
    """With the head of `config.loss`."""

    config_class: type[NluConfig] = NluConfig
    body, heads = NluModel, HEADS
