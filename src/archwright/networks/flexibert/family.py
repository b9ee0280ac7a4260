"""FlexiBERT bodies as a family that can be pruned.

Heads can go where a layer attends with all of them and a linear reads them; a convolution, a transform or a bare layer
keeps its operator as long as the layer is there. Of an FFN stack the units behind its last linear can go, and the
linears before that stay as long as any of these units does.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from torch import nn

from archwright.networks.families import (
    FAMILIES,
    AttentionShape,
    Backbone,
    Family,
    Mixing,
    NoAttention,
    Parts,
    PassResidual,
    Whole,
)
from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.network import FlexiBertModel

QUERIES = {"SA/SDP": "mixer.query", "SA/WMA": "mixer.weight"}
"""The linear whose outputs are the heads' queries: multiplicative attention has one more behind the usual one."""
NO_HEADS = AttentionShape(0, 1, 0)


def attending(width: int, heads: int) -> Mixing:
    return Mixing(per_length=2 * width)


def transforming(width: int, heads: int) -> Mixing:
    """As a fast transform: 5 n log2(n) operations for n numbers."""
    return Mixing(per_token=2.5 * width * math.log2(width / heads), per_logarithm=2.5 * width)


def convolving(kernel: int) -> Callable[[int, int], Mixing]:
    """Half of the heads attend, half convolve."""
    return lambda width, heads: Mixing(per_token=width // 2 * (1 + kernel), per_length=width)


MIXINGS: dict[str, Callable[[int, int], Mixing]] = {
    "SA/SDP": attending,
    "SA/WMA": attending,
    "LT/DFT": transforming,
    "LT/DCT": transforming,
    "DSC/5": convolving(5),
    "DSC/9": convolving(9),
}


def plan_of(backbone: Backbone, place: int) -> LayerPlan:
    operation, heads, widths, *rest = backbone["layers"][place]
    return LayerPlan(operation, heads, tuple(widths), *rest)


def headed(plan: LayerPlan) -> bool:
    return plan.operation in QUERIES and not plan.bare


def flexibert_whole(family: Family, backbone: Backbone, place: int) -> Whole:
    plan, width = plan_of(backbone, place), backbone["hidden_size"]
    if headed(plan):
        return Whole(AttentionShape(plan.heads, 1, width // plan.heads), plan.widths[-1])
    return Whole(NO_HEADS, plan.widths[-1], MIXINGS[plan.operation](width, plan.heads))


def flexibert_parts(family: Family, backbone: Backbone, place: int) -> Parts:
    plan = plan_of(backbone, place)
    up = f"ffn.stack.{len(plan.widths) - 1}"
    if headed(plan):
        return replace(family, up=up, query=QUERIES[plan.operation])
    return replace(family, up=up, without_attention={})


def flexibert_config(values: Backbone) -> FlexiBertConfig:
    return FlexiBertConfig(**{key: value for key, value in values.items() if key != "model_type"})


FLEXIBERT = Family(
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
    whole=flexibert_whole,
    parts=flexibert_parts,
    config=flexibert_config,
    body=FlexiBertModel,
)
FAMILIES[FlexiBertConfig.model_type] = FLEXIBERT
