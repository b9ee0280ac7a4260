"""ALBERT: BERT's layer, one for all places: what goes from it goes everywhere, and it can be run fewer times."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from archwright.networks.families.family import Backbone, Family, NoFfn, PassOn, StateDict

STOCK_LAYER = "encoder.albert_layer_groups.0.albert_layers.0."
LAYER = "encoder.layers.0."


class RepeatedLayer(nn.Module):
    """One layer that is run several times: a list in which it is as often, with its weights once."""

    def __init__(self, layer: nn.Module, times: int):
        super().__init__()
        self.add_module("0", layer)
        self.times = times

    def __len__(self) -> int:
        return self.times

    def __iter__(self) -> Iterator[nn.Module]:
        return iter([self.get_submodule("0")] * self.times)

    def __getitem__(self, place: int) -> nn.Module:
        return list(self)[place]


class RepeatingEncoder(nn.Module):
    """The stock encoder, but for the layers that it runs: those in `layers`, whatever the config says."""

    def __init__(self, stock: nn.Module, times: int):
        super().__init__()
        self.embedding_hidden_mapping_in = stock.embedding_hidden_mapping_in
        layer = stock.get_submodule("albert_layer_groups.0.albert_layers.0")
        self.layers = RepeatedLayer(layer, times) if times else nn.ModuleList()

    def forward(self, hidden: torch.Tensor, mask: Any = None, **options: Any) -> BaseModelOutput:
        hidden = self.embedding_hidden_mapping_in(hidden)  # batch x time x width
        for layer in self.layers:
            hidden = layer(hidden, mask, **options)
        return BaseModelOutput(last_hidden_state=hidden)


class AlbertFamily(Family):
    """Every checkpoint that was published has one layer; the stock class could have several, in groups."""

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        model = super().body(config)
        model.encoder = RepeatingEncoder(model.encoder, config.num_hidden_layers)
        return model

    def complaint(self, config: PreTrainedConfig) -> str:
        groups, inner = config.num_hidden_groups, config.inner_group_num
        return "" if groups == inner == 1 else f"must have one shared layer, got {groups} groups of {inner}"

    def from_stock(self, state: StateDict, backbone: Backbone) -> StateDict:
        kept = state if backbone[self.depth] else {k: v for k, v in state.items() if not k.startswith(STOCK_LAYER)}
        return {name.replace(STOCK_LAYER, LAYER): tensor for name, tensor in kept.items()}

    def to_stock(self, state: StateDict) -> StateDict:
        return {name.replace(LAYER, STOCK_LAYER): tensor for name, tensor in state.items()}


ALBERT = AlbertFamily(
    layers="encoder.layers",
    shared_layer=True,
    query="attention.query",
    key="attention.key",
    value="attention.value",
    mix="attention.dense",
    up="ffn",
    down="ffn_output",
    attention_norm="attention.LayerNorm",
    ffn_norm="full_layer_layer_norm",
    embedding_norm="embeddings.LayerNorm",
    without_attention={"attention": PassOn},
    without_ffn={
        **{"ffn": nn.Identity, "activation": nn.Identity},
        **{"ffn_output": NoFfn, "full_layer_layer_norm": nn.Identity},
    },
    mean_layer=False,  # it would be the shared one
    narrows=False,
    head_dense="albert.pooler",
    head_out="classifier",
    head_activation="tanh",
    choice_dense="albert.pooler",
    pooler=True,
    head_dropout="classifier_dropout_prob",
)
