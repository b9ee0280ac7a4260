"""NLU bodies as a family that can be pruned: heads and units of every layer, in both kinds of block."""

from torch import nn

from archwright.networks.families import FAMILIES, AttentionShape, Backbone, Family, PassResidual, Whole
from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.network import NluModel

WIDTHS = {"base": "hidden_size", "mobile": "inner_size"}
"""The config key that says how wide the attention of a block is."""


def nlu_whole(family: Family, backbone: Backbone, place: int) -> Whole:
    plan = BlockPlan(*backbone["layers"][place])
    heads = backbone["heads"]
    return Whole(AttentionShape(heads, 1, backbone[WIDTHS[plan.block]] // heads), plan.units)


def nlu_config(values: Backbone) -> NluConfig:
    return NluConfig(**{key: value for key, value in values.items() if key != "model_type"})


NLU = Family(
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
    whole=nlu_whole,
    config=nlu_config,
    body=NluModel,
)
FAMILIES[NluConfig.model_type] = NLU
