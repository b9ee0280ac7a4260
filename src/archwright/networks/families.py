"""The families of networks that can be pruned: where each keeps its parts, and what a whole layer of it has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


class AttentionShape(NamedTuple):
    """The heads of one layer: `groups` key/value heads, each read by `queries` query heads of `size` features."""

    groups: int
    queries: int
    size: int

    @property
    def inner(self) -> int:
        """Features of all query heads."""
        return self.groups * self.queries * self.size

    @property
    def key_inner(self) -> int:
        """Features of all key heads, and of all value heads."""
        return self.groups * self.size


@dataclass(frozen=True)
class Grouping:
    """What goes as one when several query heads read one key/value head: that unit is what we call a head."""

    units: Callable[[AttentionShape], int]
    """How many units a layer has."""
    left: Callable[[AttentionShape, int], AttentionShape]
    """The shape with so many units left."""
    query_heads: Callable[[AttentionShape, Sequence[int]], list[int]]
    """The query heads of these units, in the order in which the layer that keeps only them has them."""
    key_heads: Callable[[AttentionShape, Sequence[int]], list[int]]
    takes_keys: bool
    """Whether keys and values go with a head."""


GROUPINGS: dict[str, Grouping] = {
    "groups": Grouping(
        units=lambda whole: whole.groups,
        left=lambda whole, units: whole._replace(groups=units),
        query_heads=lambda whole, units: [g * whole.queries + q for g in units for q in range(whole.queries)],
        key_heads=lambda whole, units: list(units),
        takes_keys=True,
    ),
    "queries": Grouping(
        units=lambda whole: whole.queries,
        left=lambda whole, units: whole._replace(queries=units),
        query_heads=lambda whole, units: [g * whole.queries + q for g in range(whole.groups) for q in units],
        key_heads=lambda whole, units: list(range(whole.groups)),
        takes_keys=False,
    ),
}
"""A key/value head with all of its query heads; or the same query head of every group, keys and values staying."""


class PassOn(nn.Module):
    """Stands in for BERT's attention block: the hidden states go on unchanged, LayerNorm included."""

    def forward(self, hidden: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
        return hidden, None


class PassResidual(nn.Module):
    """Stands in for a block that adds to a residual and norms: only the residual goes on."""

    def forward(self, _: Any, residual: torch.Tensor, *__: Any) -> torch.Tensor:
        return residual


class NoAttention(nn.Module):
    """Stands in for an attention whose residual and norm lie outside of it."""

    def forward(self, *_: Any, **__: Any) -> tuple[float, None]:
        return 0.0, None


class NoFfn(nn.Module):
    """Stands in for an FFN whose residual and norm lie outside of it."""

    def forward(self, _: torch.Tensor) -> float:
        return 0.0


class Joint(nn.Module):
    """GPT-2's joint projection as three linears, so that heads are cut out of it as in any other family."""

    query: nn.Module
    key: nn.Module
    value: nn.Module

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.query(hidden), self.key(hidden), self.value(hidden)], -1)


def keep_scaling(layer: nn.Module, place: int) -> None:
    """GPT-2 may divide attention by the layer's number: it stays the number in the network from which layers went."""
    attention = layer.get_submodule("attn")
    if attention.scale_attn_by_inverse_layer_idx:
        attention.scaling *= (attention.layer_idx + 1) / (place + 1)


class Mixing(NamedTuple):
    """Multiply-adds of an operator that mixes tokens, for each token of a row, beside its linears."""

    per_token: float = 0.0
    per_length: float = 0.0
    """Times the length of the row."""
    per_logarithm: float = 0.0
    """Times the length's logarithm to the base 2."""


class Whole(NamedTuple):
    """What can go from an unpruned layer: its heads, none of them where it mixes tokens in another way; its units."""

    attention: AttentionShape
    units: int
    mixing: Mixing = Mixing()
    """Of an operator that stays as long as the layer does."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Where a layer keeps what can be cut: attribute paths relative to it."""

    query: str
    key: str
    value: str
    mix: str
    up: str
    down: str
    attention_norm: str
    ffn_norm: str
    without_attention: Mapping[str, type[nn.Module]]
    """What to put where when no head is left; nothing where the layer mixes tokens without removable heads."""
    without_ffn: Mapping[str, type[nn.Module]]
    """What to put where when no unit is left."""
    gate: str = ""
    """In a gated FFN the linear whose activation multiplies what `up` gives."""
    joint: str = ""
    """The module that holds query, key and value where the stock layer has one linear for all three."""
    attention: str = ""
    """The module that fills the cache of a decoder; empty: an encoder."""
    follows: Mapping[str, Callable[[AttentionShape], int]] = field(default_factory=dict)
    """Numbers that a stock attention has noted and that depend on its heads, by path."""
    settle: Callable[[nn.Module, int], None] = lambda layer, place: None
    """What else a layer with attention needs to know of its place in the whole network."""


Backbone = Mapping[str, Any]
"""The values of an unpruned network's config, its model_type among them."""


def same_whole(family: "Family", backbone: Backbone, place: int) -> Whole:
    """Where all layers are alike the config has one number for each size."""
    heads = backbone[family.heads]
    groups = backbone[family.key_heads] if family.key_heads else heads
    size = backbone.get(family.head_size) or backbone[family.width] // heads
    return Whole(AttentionShape(groups, heads // groups, size), backbone[family.units])


def same_parts(family: "Family", backbone: Backbone, place: int) -> Parts:
    return family


def auto_config(values: Backbone) -> PreTrainedConfig:
    """A stock config, of the class that transformers knows by its model_type."""
    rest = {key: value for key, value in values.items() if key != "model_type"}
    return CONFIG_MAPPING[values["model_type"]](**rest)


def auto_body(config: PreTrainedConfig) -> PreTrainedModel:
    return AutoModel.from_config(config, attn_implementation="sdpa")


@dataclass(frozen=True, kw_only=True)
class Family(Parts):
    """Where a family keeps its parts, those of a layer as most of its layers have them, and config keys."""

    layers: str
    head_dense: str
    """The first linear of the stock classification head, from the stock classifier; empty: there is none."""
    head_out: str
    head_activation: str
    choice_dense: str = ""
    """The first linear of the stock multiple choice head."""
    embeddings: tuple[str, ...] = ("embeddings",)
    """Where the embeddings are, word vectors first."""
    embedding_norm: str = ""
    positions: str = "embeddings.position_embeddings"
    """The table of position vectors; empty where positions are rotations."""
    pooler: bool = False
    """Whether the stock backbone builds a pooler that we replace by our own head."""
    pooling: str = "cls"
    """What stock heads read."""
    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    key_heads: str = ""
    head_size: str = ""
    units: str = "intermediate_size"
    depth: str = "num_hidden_layers"
    plan: str = ""
    """The key with one entry per layer, where layers differ by design; then it says the depth."""
    room: str = "max_position_embeddings"
    norm_eps: str = "layer_norm_eps"
    dropout: str = "hidden_dropout_prob"
    head_dropout: str = "classifier_dropout"
    whole: "Callable[[Family, Backbone, int], Whole]" = same_whole
    """What the layer at this place has."""
    parts: "Callable[[Family, Backbone, int], Parts]" = same_parts
    """Where the layer at this place has it."""
    config: Callable[[Backbone], PreTrainedConfig] = auto_config
    body: Callable[[PreTrainedConfig], PreTrainedModel] = auto_body

    @property
    def causal(self) -> bool:
        return bool(self.attention)

    @property
    def stock(self) -> bool:
        """Whether it is transformers' own, whose layers are all alike."""
        return not self.plan

    def depth_of(self, backbone: Backbone) -> int:
        return len(backbone[self.plan]) if self.plan else int(backbone[self.depth])


BERT = Family(
    layers="encoder.layer",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    mix="attention.output.dense",
    up="intermediate.dense",
    down="output.dense",
    attention_norm="attention.output.LayerNorm",
    ffn_norm="output.LayerNorm",
    embedding_norm="embeddings.LayerNorm",
    without_attention={"attention": PassOn},
    without_ffn={"intermediate": nn.Identity, "output": PassResidual},
    head_dense="bert.pooler.dense",
    head_out="classifier",
    head_activation="tanh",
    choice_dense="bert.pooler.dense",
    pooler=True,
)
LLAMA = Family(
    layers="layers",
    query="self_attn.q_proj",
    key="self_attn.k_proj",
    value="self_attn.v_proj",
    mix="self_attn.o_proj",
    up="mlp.up_proj",
    gate="mlp.gate_proj",
    down="mlp.down_proj",
    attention="self_attn",
    attention_norm="input_layernorm",
    ffn_norm="post_attention_layernorm",
    without_attention={"self_attn": NoAttention, "input_layernorm": nn.Identity},
    without_ffn={"mlp": NoFfn, "post_attention_layernorm": nn.Identity},
    follows={"self_attn.num_key_value_groups": lambda shape: shape.queries},
    head_dense="",
    head_out="score",
    head_activation="",
    embeddings=("embed_tokens",),
    positions="",
    pooling="last",
    key_heads="num_key_value_heads",
    head_size="head_dim",
    norm_eps="rms_norm_eps",
)
FAMILIES: dict[str, Family] = {
    "bert": BERT,
    "roberta": replace(
        BERT, head_dense="classifier.dense", head_out="classifier.out_proj", choice_dense="roberta.pooler.dense"
    ),
    "electra": replace(
        BERT,
        head_dense="classifier.dense",
        head_out="classifier.out_proj",
        head_activation="gelu",
        choice_dense="sequence_summary.summary",
        pooler=False,
    ),
    "distilbert": Family(
        layers="transformer.layer",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        mix="attention.out_lin",
        up="ffn.lin1",
        down="ffn.lin2",
        attention_norm="sa_layer_norm",
        ffn_norm="output_layer_norm",
        embedding_norm="embeddings.LayerNorm",
        without_attention={"attention": NoAttention, "sa_layer_norm": nn.Identity},
        without_ffn={"ffn": NoFfn, "output_layer_norm": nn.Identity},
        head_dense="pre_classifier",
        head_out="classifier",
        head_activation="relu",
        choice_dense="pre_classifier",
        width="dim",
        heads="n_heads",
        units="hidden_dim",
        depth="n_layers",
        norm_eps="",
        dropout="dropout",
        head_dropout="seq_classif_dropout",
    ),
    "gpt2": Family(
        layers="h",
        joint="attn.c_attn",
        query="attn.c_attn.query",
        key="attn.c_attn.key",
        value="attn.c_attn.value",
        mix="attn.c_proj",
        up="mlp.c_fc",
        down="mlp.c_proj",
        attention="attn",
        attention_norm="ln_1",
        ffn_norm="ln_2",
        without_attention={"attn": NoAttention, "ln_1": nn.Identity},
        without_ffn={"mlp": NoFfn, "ln_2": nn.Identity},
        follows={"attn.split_size": lambda shape: shape.inner},
        settle=keep_scaling,
        head_dense="",
        head_out="score",
        head_activation="",
        embeddings=("wte", "wpe"),
        positions="wpe",
        pooling="last",
        width="n_embd",
        heads="n_head",
        units="n_inner",
        depth="n_layer",
        room="n_positions",
        norm_eps="layer_norm_epsilon",
        dropout="resid_pdrop",
    ),
    "llama": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "mistral": LLAMA,
}
"""By model_type; those of networks that were designed here are added by their own files."""
