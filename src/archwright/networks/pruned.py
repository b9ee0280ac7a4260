"""A pruned encoder or decoder with its task head, as a Hugging Face model.

The file imports nothing of the project on purpose: a compact checkpoint carries a copy of it, so that it loads with
`trust_remote_code=True` where the project is not installed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AutoModel, DynamicCache, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import (
    CausalLMOutputWithPast,
    ModelOutput,
    MultipleChoiceModelOutput,
    SequenceClassifierOutput,
)
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


GROUPINGS: dict[str, Grouping] = {
    "groups": Grouping(
        units=lambda whole: whole.groups,
        left=lambda whole, units: whole._replace(groups=units),
        query_heads=lambda whole, units: [g * whole.queries + q for g in units for q in range(whole.queries)],
        key_heads=lambda whole, units: list(units),
    ),
    "queries": Grouping(
        units=lambda whole: whole.queries,
        left=lambda whole, units: whole._replace(queries=units),
        query_heads=lambda whole, units: [g * whole.queries + q for g in range(whole.groups) for q in units],
        key_heads=lambda whole, units: list(range(whole.groups)),
    ),
}
"""A key/value head with all of its query heads; or the same query head of every group, keys and values staying."""


class PassOn(nn.Module):
    """Stands in for BERT's attention block: the hidden states go on unchanged, LayerNorm included."""

    def forward(self, hidden: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
        return hidden, None


class PassResidual(nn.Module):
    """Stands in for BERT's FFN output block: only the residual goes on."""

    def forward(self, _: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
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


@dataclass(frozen=True)
class Family:
    """Where a family keeps its parts: attribute paths, those of a layer relative to the layer, and config keys."""

    layers: str
    query: str
    key: str
    value: str
    mix: str
    up: str
    down: str
    attention_norm: str
    ffn_norm: str
    without_attention: Mapping[str, type[nn.Module]]
    """What to put where when no head is left."""
    without_ffn: Mapping[str, type[nn.Module]]
    """What to put where when no unit is left."""
    head_dense: str
    """The first linear of the stock classification head, from the stock classifier; empty: there is none."""
    head_out: str
    head_activation: str
    choice_dense: str = ""
    """The first linear of the stock multiple choice head."""
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
    embeddings: tuple[str, ...] = ("embeddings",)
    """Where the embeddings are, word vectors first."""
    embedding_norm: str = ""
    positions: str = "embeddings.position_embeddings"
    """The table of position vectors; empty where positions are rotations."""
    pooler: bool = False
    """Whether the stock backbone builds a pooler that we replace by our own head."""
    pooling: str = "cls"
    """What stock heads read."""
    norm_vectors: int = 2
    """Weight and bias; 1: a weight alone."""
    head_norms: bool = False
    """Whether queries and keys are normed head by head."""
    qkv_bias: str | bool = True
    """Whether there are biases: a config key or the answer."""
    mix_bias: str | bool = True
    ffn_bias: str | bool = True
    width: str = "hidden_size"
    heads: str = "num_attention_heads"
    key_heads: str = ""
    head_size: str = ""
    units: str = "intermediate_size"
    depth: str = "num_hidden_layers"
    room: str = "max_position_embeddings"
    norm_eps: str = "layer_norm_eps"
    dropout: str = "hidden_dropout_prob"
    head_dropout: str = "classifier_dropout"

    @property
    def causal(self) -> bool:
        return bool(self.attention)


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
    norm_vectors=1,
    qkv_bias="attention_bias",
    mix_bias="attention_bias",
    ffn_bias="mlp_bias",
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
    "qwen2": replace(LLAMA, qkv_bias=True, mix_bias=False, ffn_bias=False),
    "qwen3": replace(LLAMA, ffn_bias=False, head_norms=True),
    "mistral": replace(LLAMA, qkv_bias=False, mix_bias=False, ffn_bias=False),
}


def first_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The state of the first token: BERT's own way."""
    return hidden[:, 0]


def normed_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the tokens that are not padding, normalised: what sentence encoders such as MiniLM were trained for."""
    weight = mask.to(hidden.dtype).unsqueeze(-1)  # batch x time x 1
    mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)
    return nn.functional.layer_norm(mean, mean.shape[-1:], eps=1e-12)


def last_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The state of the last token that is not padding: in a decoder the only one that has seen the whole text."""
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (places * (mask > 0)).argmax(1)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), last]  # len() would be fixed in an export


POOLINGS = {"cls": first_token, "mean": normed_mean, "last": last_token}


class PrunedConfig(PreTrainedConfig):
    """A stock network's config, what is left of each of its layers, and what the head does."""

    model_type = "archwright_pruned"

    def __init__(
        self,
        backbone: dict[str, Any] | None = None,
        layers: list[list[int]] | None = None,
        places: list[int] | None = None,
        kind: str = "classification",
        pooling: str = "cls",
        grouping: str = "groups",
        **kwargs: Any,
    ):
        self.backbone = backbone or {"model_type": "bert"}
        self.layers = layers or []
        self.places = list(range(len(self.layers))) if places is None else places
        self.kind = kind
        self.pooling = pooling
        self.grouping = grouping
        super().__init__(**kwargs)

    @property
    def family(self) -> Family:
        return FAMILIES[self.backbone["model_type"]]

    @property
    def whole_attention(self) -> AttentionShape:
        """The heads of an unpruned layer."""
        family, heads = self.family, self.backbone[self.family.heads]
        groups = self.backbone[family.key_heads] if family.key_heads else heads
        size = self.backbone.get(family.head_size) or self.backbone[family.width] // heads
        return AttentionShape(groups, heads // groups, size)

    @property
    def heads_go_by(self) -> Grouping:
        """Where every query head has its own keys, a head is a head."""
        return GROUPINGS[self.grouping if self.whole_attention.queries > 1 else "groups"]

    def says(self, answer: str | bool) -> bool:
        """What the stock config has under a key; an answer stays as it is."""
        return answer if isinstance(answer, bool) else bool(self.backbone.get(answer))

    def attention(self, heads: int) -> AttentionShape:
        """The heads of a layer with so many removable ones left."""
        return self.heads_go_by.left(self.whole_attention, heads)

    def stock(self) -> PreTrainedConfig:
        """The config of the stock network with as many layers as are left."""
        return self.stock_of(range(len(self.layers)))

    def stock_of(self, chosen: Sequence[int]) -> PreTrainedConfig:
        """The same with these of the layers that are left."""
        values = {k: v for k, v in self.backbone.items() if k != "model_type"}
        values[self.family.depth] = len(chosen)
        if values.get("layer_types"):
            values["layer_types"] = [values["layer_types"][self.places[i]] for i in chosen]
        return CONFIG_MAPPING[self.backbone["model_type"]](**values)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> PreTrainedConfig:
        """For a decoder what a cache wants to know: one entry for every layer that still has attention."""
        if not (decoder and self.family.causal):
            return super().get_text_config(decoder=decoder, encoder=encoder)
        return self.stock_of([i for i, (heads, _) in enumerate(self.layers) if heads])


class Head(nn.Module):
    """Dense, activation, dropout, output: the shape that the heads of all stock encoders share."""

    def __init__(self, width: int, outputs: int, *, activation: str, dropout: float):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.activation = ACT2FN[activation]
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, outputs)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.dropout(self.activation(self.dense(pooled))))
        return logits


class Score(nn.Module):
    """One linear: the head of stock decoders, and of question answering."""

    def __init__(self, width: int, outputs: int, *, bias: bool):
        super().__init__()
        self.out = nn.Linear(width, outputs, bias=bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(states)
        return logits


def pooled_head(config: PrunedConfig, outputs: int) -> nn.Module:
    """The head of a whole text as the family's stock classifier has it."""
    family, stock = config.family, config.stock()
    width = getattr(stock, family.width)
    if not family.head_activation:
        return Score(width, outputs, bias=False)
    dropout = getattr(stock, family.head_dropout, None)
    dropout = getattr(stock, family.dropout) if dropout is None else dropout
    return Head(width, outputs, activation=family.head_activation, dropout=dropout)


class PrunedNetwork(PreTrainedModel):
    """A stock network of which every layer may have its own number of heads and units; subclasses add the task head."""

    config_class = PrunedConfig
    base_model_prefix = "backbone"
    _supports_sdpa = True

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family = config.family
        self.backbone = AutoModel.from_config(config.stock(), attn_implementation="sdpa")
        if family.pooler:
            self.backbone.pooler = None
        layers = self.backbone.get_submodule(family.layers)
        for layer, (heads, units), place in zip(layers, config.layers, config.places, strict=True):
            shrink(layer, family, shape=config.attention(heads), units=units, place=place)
        for slot, attention in enumerate(caching(layers, family)):
            attention.layer_idx = slot

    def states(
        self, input_ids: torch.Tensor, mask: torch.Tensor, token_type_ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The last hidden states, batch x time x width."""
        inputs = {"use_cache": False} if self.config.family.causal else {}
        if token_type_ids is not None and self.config.backbone.get("type_vocab_size"):
            inputs["token_type_ids"] = token_type_ids
        hidden: torch.Tensor = self.backbone(input_ids=input_ids, attention_mask=mask, **inputs).last_hidden_state
        return hidden

    def pooled(
        self, input_ids: torch.Tensor, mask: torch.Tensor | None, token_type_ids: torch.Tensor | None
    ) -> torch.Tensor:
        """One vector per text."""
        mask = torch.ones_like(input_ids) if mask is None else mask
        return POOLINGS[self.config.pooling](self.states(input_ids, mask, token_type_ids), mask)


class PrunedForSequenceClassification(PrunedNetwork):
    """With a classification or regression head: logits are batch x labels."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.head = pooled_head(config, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        logits = self.head(self.pooled(input_ids, attention_mask, token_type_ids))
        loss = None
        if labels is not None:
            squared = self.config.num_labels == 1
            loss = (
                nn.functional.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
                if squared
                else nn.functional.cross_entropy(logits, labels)
            )
        return SequenceClassifierOutput(loss=loss, logits=logits)


class PrunedForMultipleChoice(PrunedNetwork):
    """Every choice is a text of its own and gets one score: inputs are batch x choices x time, logits batch x choices.

    The labels of the config name the choices, as far as they have names.
    """

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.head = pooled_head(config, 1)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **_: Any,
    ) -> MultipleChoiceModelOutput:
        flat = (None if x is None else x.flatten(0, 1) for x in (input_ids, attention_mask, token_type_ids))
        logits = self.head(self.pooled(*flat)).view(input_ids.shape[:2])
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return MultipleChoiceModelOutput(loss=loss, logits=logits)


@dataclass
class Spans(ModelOutput):
    """Scores of every token as the first and as the last of the answer."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None  # batch x 2 x time
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None


class PrunedForQuestionAnswering(PrunedNetwork):
    """Scores for the start and the end of the answer; tokens that cannot be in it get -10,000."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.head = Score(config.backbone[config.family.width], 2, bias=True)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        context_mask: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **_: Any,
    ) -> Spans:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        scores = self.head(self.states(input_ids, mask, token_type_ids)).transpose(1, 2)
        allowed = mask if context_mask is None else mask * context_mask
        logits = scores.masked_fill(allowed.unsqueeze(1) == 0, -1e4)
        loss = None
        if start_positions is not None and end_positions is not None:
            targets = torch.stack([start_positions, end_positions], 1)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return Spans(loss=loss, logits=logits, start_logits=logits[:, 0], end_logits=logits[:, 1])


class PrunedForCausalLM(PrunedNetwork, GenerationMixin):
    """With a language-modelling head: logits are batch x time x vocabulary."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family, stock = config.family, config.stock()
        self.lm_head = nn.Linear(getattr(stock, family.width), stock.vocab_size, bias=False)
        self._tied_weights_keys = {"lm_head.weight": f"backbone.{family.embeddings[0]}.weight"}
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Without `use_cache` nothing is kept; `labels` are the inputs themselves, shifted here."""
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        answer = self.backbone(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            inputs_embeds=inputs_embeds,
            use_cache=use_cache,
        )
        logits = self.lm_head(answer.last_hidden_state[:, -logits_to_keep:])  # 0 keeps all
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=answer.past_key_values)


HEADS: dict[str, type[PrunedNetwork]] = {
    "classification": PrunedForSequenceClassification,
    "regression": PrunedForSequenceClassification,
    "choice": PrunedForMultipleChoice,
    "qa": PrunedForQuestionAnswering,
    "lm": PrunedForCausalLM,
}
"""The network for every kind of task."""


def shrink(layer: nn.Module, family: Family, *, shape: AttentionShape, units: int, place: int) -> None:
    """Give a stock layer linears of these sizes, or none where nothing is left."""
    if shape.inner:
        shrink_attention(layer, family, shape)
        family.settle(layer, place)
    else:
        stand_in(layer, family.without_attention)
    if not units:
        stand_in(layer, family.without_ffn)
        return
    for path in filter(None, (family.up, family.gate)):
        resize(layer, path, outputs=units)
    resize(layer, family.down, inputs=units)


def shrink_attention(layer: nn.Module, family: Family, shape: AttentionShape) -> None:
    if family.joint:
        joint = layer.get_submodule(family.joint)
        layer.set_submodule(family.joint, Joint())
        for path in (family.query, family.key, family.value):
            layer.set_submodule(path, joint)
    resize(layer, family.query, outputs=shape.inner)
    for path in (family.key, family.value):
        resize(layer, path, outputs=shape.key_inner)
    resize(layer, family.mix, inputs=shape.inner)
    note_shape(layer, family, shape)


def note_shape(layer: nn.Module, family: Family, shape: AttentionShape) -> None:
    """Tell a stock attention how many heads it has."""
    for path, number in family.follows.items():
        owner, _, name = path.rpartition(".")
        setattr(layer.get_submodule(owner), name, number(shape))


def resize(layer: nn.Module, path: str, *, inputs: int | None = None, outputs: int | None = None) -> None:
    """Put a linear of this size where the stock layer has a linear or GPT-2's transposed one."""
    old = layer.get_submodule(path)
    whole_in, whole_out = (old.in_features, old.out_features) if isinstance(old, nn.Linear) else tuple(old.weight.shape)
    new = nn.Linear(inputs or whole_in, outputs or whole_out, bias=old.bias is not None)
    layer.set_submodule(path, new)


def caching(layers: Any, family: Family) -> list[nn.Module]:
    """The attentions that fill a cache, in order; encoders have none."""
    found = [layer.get_submodule(family.attention) for layer in layers if family.causal]
    return [attention for attention in found if not isinstance(attention, NoAttention)]


def stand_in(layer: nn.Module, replacements: Mapping[str, type[nn.Module]]) -> None:
    for path, module in replacements.items():
        layer.set_submodule(path, module())
