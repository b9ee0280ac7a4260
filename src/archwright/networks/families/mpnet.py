"""MPNet: BERT's layers, and one table of relative positions with a column for every head that all layers share."""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from archwright.networks.families.family import Backbone, Family, PassOn, PassResidual, StateDict


class PlacedMPNetAttention(MPNetSelfAttention):
    """Knows which columns of the shared table belong to the heads that it has."""

    head_places: torch.Tensor

    def forward(
        self, hidden_states: torch.Tensor, attention_mask: Any = None, position_bias: Any = None, **kwargs: Any
    ) -> Any:
        if position_bias is not None:  # batch x all heads x time x time
            position_bias = position_bias.index_select(1, self.head_places)
        return super().forward(hidden_states, attention_mask, position_bias, **kwargs)


class MpnetFamily(Family):
    """The table stays whole; a head that goes leaves its column to the other layers."""

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        model = super().body(config)
        for layer in model.get_submodule(self.layers):
            layer.attention.attn.__class__ = PlacedMPNetAttention
            layer.attention.attn.register_buffer("head_places", torch.arange(config.num_attention_heads))
        return model

    def from_stock(self, state: StateDict, backbone: Backbone) -> StateDict:
        ours = super().from_stock(state, backbone)
        roots = [name.removesuffix(f"{self.query}.weight") for name in ours if name.endswith(f".{self.query}.weight")]
        return ours | {f"{root}{self.head_places}": torch.arange(backbone[self.heads]) for root in roots}

    def to_stock(self, state: StateDict) -> StateDict:
        return {name: tensor for name, tensor in state.items() if not name.endswith(f".{self.head_places}")}


MPNET = MpnetFamily(
    layers="encoder.layer",
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    mix="attention.attn.o",
    up="intermediate.dense",
    down="output.dense",
    attention_norm="attention.LayerNorm",
    ffn_norm="output.LayerNorm",
    embedding_norm="embeddings.LayerNorm",
    without_attention={"attention": PassOn},
    without_ffn={"intermediate": nn.Identity, "output": PassResidual},
    head_places="attention.attn.head_places",
    follows={"attention.attn.all_head_size": lambda shape: shape.inner},
    kernel="eager",
    mean_layer=False,  # the scores of every stock layer have the table in them
    head_dense="classifier.dense",
    head_out="classifier.out_proj",
    head_activation="tanh",
    choice_dense="mpnet.pooler.dense",
    pooler=True,
)
