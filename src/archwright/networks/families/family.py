"""What is known of a family of networks that can be pruned, and what stands in for parts that were removed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
    """What goes as one when several query heads read one key/value head: that unit is what we call a head.

    Either a key/value head with all of its query heads; or the same query head of every group, keys and values staying.
    """

    takes_keys: bool
    """Whether keys and values go with a head."""

    def units(self, whole: AttentionShape) -> int:
        """How many units a layer has."""
        return whole.groups if self.takes_keys else whole.queries

    def with_units(self, whole: AttentionShape, units: int) -> AttentionShape:
        """The shape with so many units left."""
        return whole._replace(groups=units) if self.takes_keys else whole._replace(queries=units)

    def query_heads(self, whole: AttentionShape, units: Sequence[int]) -> list[int]:
        """The query heads of these units, in the order in which the layer that keeps only them has them."""
        groups, queries = (units, range(whole.queries)) if self.takes_keys else (range(whole.groups), units)
        return [group * whole.queries + query for group in groups for query in queries]

    def key_heads(self, whole: AttentionShape, units: Sequence[int]) -> list[int]:
        return list(units) if self.takes_keys else list(range(whole.groups))


GROUPINGS = {"groups": Grouping(takes_keys=True), "queries": Grouping(takes_keys=False)}


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


class Mixing(NamedTuple):
    """Multiply-adds of an operator that mixes tokens, for each token of a row, beside its linears."""

    per_token: float = 0.0
    per_length: float = 0.0
    """Times the length of the row."""
    per_logarithm: float = 0.0
    """Times the length's logarithm to the base 2."""


class RelativeScores(NamedTuple):
    """What scores between tokens and relative positions cost beside those between tokens."""

    rows: int = 0
    """Relative positions that have a vector."""
    kinds: int = 0
    """Tokens with positions, positions with tokens, or both."""
    projections: int = 0
    """Linears that the vectors of positions go through."""
    own: bool = True
    """Whether these are linears of their own, which no token goes through."""


class WholeLayer(NamedTuple):
    """What can go from an unpruned layer: its heads, none of them where it mixes tokens in another way; its units."""

    attention: AttentionShape
    units: int
    mixing: Mixing = Mixing()
    """Of an operator that stays as long as the layer does."""
    relative: RelativeScores = RelativeScores()


@dataclass(frozen=True, kw_only=True)
class LayerParts:
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
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Stock linears that write several of these parts: path, and what ours calls the parts below it, in their order."""
    position_query: str = ""
    """A linear that makes queries of relative positions; they go with the heads, as those of tokens do."""
    position_key: str = ""
    head_places: str = ""
    """A buffer with one number per head: where a table that all layers share has what belongs to it."""
    attention: str = ""
    """The attention of a layer that norms what enters a sub-layer; empty: the norms stand behind the residuals."""
    attention_out_norm: str = ""
    """A second norm of what the attention adds to the stream."""
    ffn_out_norm: str = ""
    follows: Mapping[str, Callable[[AttentionShape], int]] = field(default_factory=dict)
    """Numbers that a stock attention has noted and that depend on its heads, by path."""

    @property
    def query_writers(self) -> tuple[str, ...]:
        """Linears whose outputs are features of query heads."""
        return tuple(filter(None, (self.query, self.position_query)))

    @property
    def key_writers(self) -> tuple[str, ...]:
        """Linears whose outputs are features of key and value heads."""
        return tuple(filter(None, (self.key, self.value, self.position_key)))

    @property
    def unit_writers(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.up, self.gate)))


Backbone = Mapping[str, Any]
"""The values of an unpruned network's config, its model_type among them."""
StateDict = dict[str, torch.Tensor]


class HeadShape(NamedTuple):
    """What the stock head of a whole text does between its two linears."""

    activation: str
    """Empty: there is one linear only, without a bias."""
    dense_bias: bool = True
    norm_eps: float | None = None
    """Of a LayerNorm behind the activation; None: there is none."""
    norm_bias: bool = True

    @property
    def norms(self) -> int:
        """Vectors of the norm."""
        return 0 if self.norm_eps is None else 1 + self.norm_bias


@dataclass(frozen=True, kw_only=True)
class Family(LayerParts):
    """A family of networks that can be pruned: where it keeps its parts, and what its config calls them.

    Parts of a layer are as most of its layers have them. The methods hold for stock families, whose layers are all
    alike; a family in which that is not so overrides them.
    """

    layers: str
    shared_layer: bool = False
    """Whether one layer, with one set of weights, is run at every place."""
    head_dense: str
    """The first linear of the stock classification head, from the stock classifier; empty: there is none."""
    head_out: str
    head_activation: str
    choice_dense: str = ""
    """The first linear of the stock multiple choice head."""
    token_out: str = "classifier"
    """The linear of the stock head for token classification."""
    head_norm: str = ""
    """The norm between the two linears of stock heads."""
    token_head: bool = False
    """Whether stock heads that read every token are like those that read a text."""
    embeddings: tuple[str, ...] = ("embeddings",)
    """Where the embeddings are, word vectors first."""
    embedding_norm: str = ""
    positions: str = "embeddings.position_embeddings"
    """The table of position vectors; empty where positions are rotations."""
    pooler: bool = False
    """Whether the stock backbone builds a pooler that we replace by our own head."""
    pooling: str = "cls"
    """What stock heads read."""
    mean_layer: bool = True
    """Whether one more stock layer can be made to average all tokens, where the norms stand behind the residuals."""
    narrows: bool = True
    """Whether a smaller hidden width is known for it, where the norms stand behind the residuals."""
    bidirectional: bool = False
    """Whether a token sees those after it although the norms come first."""
    kernel: str = "sdpa"
    """The implementation of attention; eager where the stock class knows no other."""
    typed_positions: bool = False
    """Whether rotations depend on the kind of a layer (`layer_types`); a stock config then needs a layer."""
    needs_layer: bool = False
    """Whether the stock network has no answer without layers."""
    logit_cap: str = ""
    """The key of a bound c beyond which no logit of a language model goes: c tanh(logit / c)."""
    unnormed_first: bool = False
    """Whether the attention of the first layer has no norm of its own, because one stands behind the embeddings."""
    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    key_heads: str = ""
    head_size: str = ""
    units: str = "intermediate_size"
    depth: str = "num_hidden_layers"
    plan: str = ""
    """The key with one entry per layer, where layers differ by design; then it says the depth."""
    max_length: str = "max_position_embeddings"
    norm_eps: str = "layer_norm_eps"
    dropout: str = "hidden_dropout_prob"
    head_dropout: str = "classifier_dropout"

    @property
    def norms_first(self) -> bool:
        """Whether what enters a sub-layer is normed, and what leaves it is added to the stream."""
        return bool(self.attention)

    @property
    def causal(self) -> bool:
        return self.norms_first and not self.bidirectional

    @property
    def can_narrow(self) -> bool:
        """Whether its networks may have a smaller hidden width."""
        return self.stock and self.narrows and not self.norms_first

    @property
    def stock(self) -> bool:
        """Whether it is transformers' own, whose layers are all alike."""
        return not self.plan

    def layer_count(self, backbone: Backbone) -> int:
        return len(backbone[self.plan]) if self.plan else int(backbone[self.depth])

    def whole_layer(self, backbone: Backbone, place: int) -> WholeLayer:
        """What the unpruned layer at this place has."""
        heads = backbone[self.heads]
        groups = backbone[self.key_heads] if self.key_heads else heads
        size = backbone.get(self.head_size) or backbone[self.width] // heads
        return WholeLayer(AttentionShape(groups, heads // groups, size), backbone[self.units])

    def layer_parts(self, backbone: Backbone, place: int) -> LayerParts:
        """Where the layer at this place has it."""
        return self

    def config(self, values: Backbone) -> PreTrainedConfig:
        """The config of a backbone; a stock one is of the class that transformers knows by its model_type."""
        rest = {key: value for key, value in values.items() if key != "model_type"}
        if not self.typed_positions or rest[self.depth]:
            return CONFIG_MAPPING[values["model_type"]](**rest)
        kinds = list(rest["rope_parameters"])[:1] if rest.get("rope_parameters") else ["full_attention"]
        config = CONFIG_MAPPING[values["model_type"]](**{**rest, self.depth: 1, "layer_types": kinds})
        setattr(config, self.depth, 0)
        config.layer_types = []
        return config

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        return AutoModel.from_config(config, attn_implementation=self.kernel)

    def complaint(self, config: PreTrainedConfig) -> str:
        """What a checkpoint with this config has that cannot be pruned, as the rest of a sentence; empty: nothing."""
        return ""

    def head_shape(self, config: PreTrainedConfig) -> HeadShape:
        return HeadShape(self.head_activation)

    def own_pooling(self, config: PreTrainedConfig) -> str:
        """What the stock heads of a checkpoint with this config read."""
        return self.pooling

    def stock_poolings(self) -> tuple[str, ...]:
        """What stock heads can be made to read."""
        return (self.pooling, "mean") if self.mean_layer and not self.norms_first else (self.pooling,)

    def set_pooling(self, config: PreTrainedConfig, pooling: str) -> None:
        """Writes into a stock config what its heads read, where it says so."""

    def place_layer(self, layer: nn.Module, place: int) -> None:
        """Tells a layer with attention what it must know of its place in the unpruned network."""

    def from_stock(self, state: StateDict, backbone: Backbone) -> StateDict:
        """The tensors of a stock backbone with this config as ours has them: what is fused there is apart."""
        ours: StateDict = {}
        for name, tensor in state.items():
            owner, _, leaf = name.rpartition(".")
            path = next((path for path in self.fused if owner.endswith(f".{path}")), None)
            if path is None:
                ours[name] = tensor
            else:
                pieces = zip(self.fused[path], tensor.split(self.fused_sizes(backbone, path)), strict=True)
                ours |= {f"{owner}.{part}.{leaf}": piece.clone() for part, piece in pieces}
        return ours

    def to_stock(self, state: StateDict) -> StateDict:
        """The way back, for tensors that fit into a stock backbone."""
        stock: StateDict = {}
        for name, tensor in state.items():
            owner, _, leaf = name.rpartition(".")
            fused, _, part = owner.rpartition(".")
            path = next((path for path in self.fused if fused.endswith(f".{path}")), None)
            if path is None:
                stock[name] = tensor
            elif part == self.fused[path][0]:
                stock[f"{fused}.{leaf}"] = torch.cat([state[f"{fused}.{each}.{leaf}"] for each in self.fused[path]])
        return stock

    def fused_sizes(self, backbone: Backbone, path: str) -> list[int]:
        """How many outputs of a fused linear belong to each of its parts."""
        whole = self.whole_layer(backbone, 0)
        sizes = {self.query: whole.attention.inner, **dict.fromkeys(self.key_writers, whole.attention.key_inner)}
        sizes |= dict.fromkeys(self.unit_writers, whole.units)
        return [sizes[f"{path}.{part}"] for part in self.fused[path]]
