"""NLU bodies as a family that can be pruned: heads and units of every layer, in both kinds of block."""

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.networks.families.family import AttentionShape, Backbone, Family, PassResidual, WholeLayer
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.network import NluModel


class NluFamily(Family):
    """Attention is as wide as the stream of its block."""

    def whole_layer(self, backbone: Backbone, place: int) -> WholeLayer:
        plan, heads = BlockPlan(*backbone["layers"][place]), backbone["heads"]
        width = backbone["hidden_size" if plan.block == "base" else "inner_size"]
        return WholeLayer(AttentionShape(heads, 1, width // heads), plan.units)

    def config(self, values: Backbone) -> NluConfig:
        return NluConfig(**{key: value for key, value in values.items() if key != "model_type"})

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        return NluModel(config)


NLU = NluFamily(
    layers="layers",
    plan="layers",
    query="attention.query",
    key="attention.key",
    value="attention.value",
    mix="attention.output",
    up="ffn.up",
    down="ffn.down",
    attention_norm="attention.norm",
    ffn_norm="ffn.norm",
    embedding_norm="embeddings.norm",
    positions="embeddings.positions",
    without_attention={"attention": PassResidual},
    without_ffn={"ffn": nn.Identity},
    follows={"attention.heads": lambda shape: shape.groups},
    head_dense="",
    head_out="",
    head_activation="tanh",
    heads="heads",
    units="",
    depth="",
    dropout="dropout",
)
