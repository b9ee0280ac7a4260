"""FlexiBERT bodies as a family that can be pruned.

Heads can go where a layer attends with all of them and a linear reads them; a convolution, a transform or a bare layer
keeps its operator as long as the layer is there. Of an FFN stack the units behind its last linear can go, and the
linears before that stay as long as any of these units does.
"""

import math
from dataclasses import replace

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.networks.families.family import (
    AttentionShape,
    Backbone,
    Family,
    LayerParts,
    Mixing,
    NoAttention,
    PassResidual,
    WholeLayer,
)
from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.network import FlexiBertModel

QUERIES = {"SA/SDP": "mixer.query", "SA/WMA": "mixer.weight"}
"""The linear whose outputs are the heads' queries: multiplicative attention has one more behind the usual one."""
NO_HEADS = AttentionShape(0, 1, 0)


def mixing(plan: LayerPlan, width: int) -> Mixing:
    """What the operator costs, beside its linears."""
    kind, _, variant = plan.operation.partition("/")
    if kind == "SA":
        return Mixing(per_length=2 * width)
    if kind == "LT":  # as a fast transform: 5 n log2(n) operations for n numbers
        return Mixing(per_token=2.5 * width * math.log2(width / plan.heads), per_logarithm=2.5 * width)
    return Mixing(per_token=width // 2 * (1 + int(variant)), per_length=width)  # half of the heads attend or convolve


class FlexiBertFamily(Family):
    """Every layer is as its plan says."""

    def whole_layer(self, backbone: Backbone, place: int) -> WholeLayer:
        plan, width = layer_plan(backbone, place), backbone["hidden_size"]
        if plan.operation in QUERIES and not plan.bare:
            return WholeLayer(AttentionShape(plan.heads, 1, width // plan.heads), plan.widths[-1])
        return WholeLayer(NO_HEADS, plan.widths[-1], mixing(plan, width))

    def layer_parts(self, backbone: Backbone, place: int) -> LayerParts:
        plan = layer_plan(backbone, place)
        up = f"ffn.stack.{len(plan.widths) - 1}"
        if plan.operation in QUERIES and not plan.bare:
            return replace(self, up=up, query=QUERIES[plan.operation])
        return replace(self, up=up, without_attention={})

    def config(self, values: Backbone) -> FlexiBertConfig:
        return FlexiBertConfig(**{key: value for key, value in values.items() if key != "model_type"})

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        return FlexiBertModel(config)


def layer_plan(backbone: Backbone, place: int) -> LayerPlan:
    operation, heads, widths, *rest = backbone["layers"][place]
    return LayerPlan(operation, heads, tuple(widths), *rest)


FLEXIBERT = FlexiBertFamily(
    layers="layers",
    plan="layers",
    query="mixer.query",
    key="mixer.key",
    value="mixer.value",
    mix="mixed.linear",
    up="ffn.stack.0",
    down="ffn.output.linear",
    attention_norm="mixed.norm",
    ffn_norm="ffn.output.norm",
    embedding_norm="embeddings.norm",
    positions="embeddings.positions",
    without_attention={"mixer": NoAttention, "mixed": PassResidual},
    without_ffn={"ffn": nn.Identity},
    follows={"mixer.heads": lambda shape: shape.groups},
    head_dense="",
    head_out="",
    head_activation="gelu",
    heads="",
    units="",
    depth="",
    dropout="dropout",
)
