"""A pruned encoder or decoder with its task head, as a Hugging Face model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import DynamicCache, GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import (
    BaseModelOutput,
    CausalLMOutputWithPast,
    ModelOutput,
    MultipleChoiceModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from archwright.networks.embeddings import put_low_rank
from archwright.networks.families import FAMILIES
from archwright.networks.families.family import (
    GROUPINGS,
    AttentionShape,
    Family,
    Grouping,
    HeadShape,
    LayerParts,
    NoAttention,
    WholeLayer,
)
from archwright.networks.width import narrow_stream


def first_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The state of the first token: BERT's own way."""
    return hidden[:, 0]


def normed_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the tokens that are not padding, normalised: what sentence encoders such as MiniLM were trained for."""
    mean = plain_mean(hidden, mask)
    return nn.functional.layer_norm(mean, mean.shape[-1:], eps=1e-12)


def plain_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean over the tokens that are not padding: what most sentence encoders and ModernBERT's own heads read."""
    weight = mask.to(hidden.dtype).unsqueeze(-1)  # batch x time x 1
    return (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)


def token_max(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The largest value of every channel over the tokens that are not padding."""
    return hidden.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1)


def last_token(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The state of the last token that is not padding: in a decoder the only one that has seen the whole text."""
    places = torch.arange(mask.shape[1], device=mask.device)
    last = (places * (mask > 0)).argmax(1)
    return hidden[torch.arange(hidden.shape[0], device=hidden.device), last]  # len() would be fixed in an export


POOLINGS = {"cls": first_token, "mean": normed_mean, "last": last_token, "average": plain_mean}
SENTENCE_POOLINGS = {"cls": first_token, "mean": plain_mean, "max": token_max, "last": last_token}
"""How a sentence encoder makes one vector of a text; no head follows, so the mean is not normalised for it."""
RECORDED = ("output_hidden_states", "output_attentions")
"""What a caller may ask a network to return beside its answer, as of any network of transformers."""


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
        embedding_rank: int | None = None,
        width: int | None = None,
        sentence: dict[str, Any] | None = None,
        **kwargs: Any,
    ):
        self.backbone = backbone or {"model_type": "bert"}
        self.layers = layers or []
        self.places = list(range(len(self.layers))) if places is None else places
        self.kind = kind
        self.pooling = pooling
        self.grouping = grouping
        self.embedding_rank = embedding_rank
        self.width = width
        self.sentence = sentence
        super().__init__(**kwargs)

    @property
    def family(self) -> Family:
        return FAMILIES[self.backbone["model_type"]]

    @property
    def stream_width(self) -> int:
        """Channels of the residual stream: those of the backbone, or fewer."""
        return int(self.width or self.backbone[self.family.width])

    @property
    def depth(self) -> int:
        """Layers of the unpruned network."""
        return self.family.layer_count(self.backbone)

    def whole(self, place: int) -> WholeLayer:
        """What the unpruned layer at this place has."""
        return self.family.whole_layer(self.backbone, place)

    def parts(self, place: int) -> LayerParts:
        """Where the layer at this place of the unpruned network keeps it."""
        return self.family.layer_parts(self.backbone, place)

    @property
    def heads_go_by(self) -> Grouping:
        """Where every query head has its own keys, a head is a head."""
        family = self.family
        grouped = family.key_heads and self.backbone[family.key_heads] < self.backbone[family.heads]
        return GROUPINGS[self.grouping if grouped else "groups"]

    def whole_sizes(self, place: int) -> list[int]:
        """Removable heads and units of the unpruned layer at this place."""
        whole = self.whole(place)
        return [self.heads_go_by.units(whole.attention), whole.units]

    def attention(self, place: int, heads: int) -> AttentionShape:
        """The heads of the layer from this place of the unpruned network with so many removable ones left."""
        return self.heads_go_by.with_units(self.whole(place).attention, heads)

    def stock(self) -> PreTrainedConfig:
        """The config of the backbone with as many layers as are left."""
        return self.stock_of(range(len(self.layers)))

    def stock_of(self, chosen: Sequence[int]) -> PreTrainedConfig:
        """The same with these of the layers that are left."""
        values, family, places = dict(self.backbone), self.family, self.places or [0]
        if family.stock:
            values[family.depth] = len(chosen)
        for key in (family.plan, "layer_types"):
            if values.get(key):
                values[key] = [values[key][places[i]] for i in chosen]
        return family.config(values)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> PreTrainedConfig:
        """For a decoder what a cache wants to know: one entry for every layer that still has attention."""
        if not (decoder and self.family.causal):
            return super().get_text_config(decoder=decoder, encoder=encoder)
        return self.stock_of([i for i, (heads, _) in enumerate(self.layers) if heads])


class ClassificationHead(nn.Module):
    """Dense, activation, perhaps a norm, dropout, output: the shape that the heads of all stock encoders share."""

    def __init__(self, width: int, outputs: int, *, shape: HeadShape, dropout: float):
        super().__init__()
        self.dense = nn.Linear(width, width, bias=shape.dense_bias)
        self.activation = ACT2FN[shape.activation]
        self.norm: nn.Module = nn.Identity()
        if shape.norm_eps is not None:
            self.norm = nn.LayerNorm(width, eps=shape.norm_eps, bias=shape.norm_bias)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(width, outputs)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.out(self.dropout(self.norm(self.activation(self.dense(states)))))
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
    width, shape = config.stream_width, config.family.head_shape(config.stock())
    if not shape.activation:
        return Score(width, outputs, bias=False)
    return ClassificationHead(width, outputs, shape=shape, dropout=head_dropout(config))


def token_head(config: PrunedConfig, outputs: int) -> nn.Module:
    """The head of every token as the family's stock classes have it."""
    if config.family.token_head:
        return pooled_head(config, outputs)
    return Score(config.stream_width, outputs, bias=True)


def head_dropout(config: PrunedConfig) -> float:
    """In front of a head's last linear, as the family's stock head has it; 0.1 where its config does not say."""
    family, stock = config.family, config.stock()
    dropout = getattr(stock, family.head_dropout, None)
    return float(getattr(stock, family.dropout, 0.1) if dropout is None else dropout)


class PlacedLayer(NamedTuple):
    """A layer of a pruned network."""

    layer: nn.Module
    place: int
    """In the unpruned network."""
    parts: LayerParts
    shape: AttentionShape
    heads: int
    """How many can be removed; none where it mixes tokens in another way."""
    units: int


class PrunedNetwork(PreTrainedModel):
    """A stock network of which every layer may have its own number of heads and units; subclasses add the task head."""

    config_class = PrunedConfig
    base_model_prefix = "backbone"
    _supports_sdpa = True
    supports_gradient_checkpointing = True

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family = config.family
        self.backbone = family.body(config.stock())
        if config._attn_implementation == "eager":  # asked for by who wants to see attentions
            self.backbone.set_attn_implementation("eager")
        if family.pooler:
            self.backbone.pooler = None
        if config.embedding_rank is not None:
            put_low_rank(self.backbone, config.embedding_rank)
        for placed in self.placed_layers():
            shrink(placed)
            if placed.heads:
                family.place_layer(placed.layer, placed.place)
        if config.width is not None:
            narrow_stream(self, config.width)
        layers = self.backbone.get_submodule(family.layers) if family.causal else ()
        attentions = [layer.get_submodule(family.attention) for layer in layers]
        for slot, attention in enumerate(each for each in attentions if not isinstance(each, NoAttention)):
            attention.layer_idx = slot  # where it is in a cache

    def placed_layers(self) -> list[PlacedLayer]:
        """The layers that are left, with what each has and where."""
        config = self.config
        rows = zip(self.backbone.get_submodule(config.family.layers), config.places, config.layers, strict=True)
        return [
            PlacedLayer(layer, place, config.parts(place), config.attention(place, h), h, u)
            for layer, place, (h, u) in rows
        ]

    def read(
        self,
        input_ids: torch.Tensor,
        mask: torch.Tensor,
        token_type_ids: torch.Tensor | None,
        asked: Mapping[str, Any],
    ) -> BaseModelOutput:
        """The backbone's answer: last hidden states, batch x time x width, and what of RECORDED is `asked` for.

        Hidden states are those of the embeddings and of every layer that is left; attentions (batch x heads x time x
        time, with attention that is computed eagerly) those of every layer that has heads left.
        """
        inputs: dict[str, Any] = {"use_cache": False} if self.config.family.causal else {}
        if token_type_ids is not None and self.config.backbone.get("type_vocab_size"):
            inputs["token_type_ids"] = token_type_ids
        answer: BaseModelOutput = self.backbone(
            input_ids=input_ids, attention_mask=mask, **inputs, **self.recorded(asked)
        )
        return answer

    def recorded(self, asked: Mapping[str, Any]) -> dict[str, bool]:
        """What of RECORDED the caller, or else the config, asks for; encoders of our spaces have no attentions."""
        able = RECORDED if self.config.family.stock else RECORDED[:1]
        wanted = {name: getattr(self.config, name, False) if asked.get(name) is None else asked[name] for name in able}
        return {name: True for name, value in wanted.items() if value}

    def pool(self, answer: BaseModelOutput, mask: torch.Tensor) -> torch.Tensor:
        """One vector per text, of the backbone's answer."""
        return POOLINGS[self.config.pooling](answer.last_hidden_state, mask)


class PrunedForSequenceClassification(PrunedNetwork):
    """With a classification or regression head: logits are batch x labels.

    Of several labels per text (problem_type) each has a sigmoid of its own.
    """

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
        **asked: Any,
    ) -> SequenceClassifierOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        answer = self.read(input_ids, mask, token_type_ids, asked)
        logits = self.head(self.pool(answer, mask))
        loss = None
        if labels is not None and self.config.problem_type == "multi_label_classification":
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        elif labels is not None:
            squared = self.config.num_labels == 1
            loss = (
                nn.functional.mse_loss(logits.squeeze(-1), labels.to(logits.dtype))
                if squared
                else nn.functional.cross_entropy(logits, labels)
            )
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=answer.hidden_states, attentions=answer.attentions
        )


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
        **asked: Any,
    ) -> MultipleChoiceModelOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        ids, mask, types = (None if x is None else x.flatten(0, 1) for x in (input_ids, mask, token_type_ids))
        answer = self.read(ids, mask, types, asked)
        logits = self.head(self.pool(answer, mask)).view(input_ids.shape[:2])
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return MultipleChoiceModelOutput(
            loss=loss, logits=logits, hidden_states=answer.hidden_states, attentions=answer.attentions
        )


@dataclass
class SpanOutput(ModelOutput):
    """Scores of every token as the first and as the last of the answer."""

    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None  # batch x 2 x time
    start_logits: torch.Tensor | None = None
    end_logits: torch.Tensor | None = None
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class PrunedForQuestionAnswering(PrunedNetwork):
    """Scores for the start and the end of the answer; tokens that cannot be in it get -10,000."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.head = token_head(config, 2)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        context_mask: torch.Tensor | None = None,
        start_positions: torch.Tensor | None = None,
        end_positions: torch.Tensor | None = None,
        **asked: Any,
    ) -> SpanOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        answer = self.read(input_ids, mask, token_type_ids, asked)
        scores = self.head(answer.last_hidden_state).transpose(1, 2)
        allowed = mask if context_mask is None else mask * context_mask
        logits = scores.masked_fill(allowed.unsqueeze(1) == 0, -1e4)
        loss = None
        if start_positions is not None and end_positions is not None:
            targets = torch.stack([start_positions, end_positions], 1)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return SpanOutput(
            loss=loss,
            logits=logits,
            start_logits=logits[:, 0],
            end_logits=logits[:, 1],
            hidden_states=answer.hidden_states,
            attentions=answer.attentions,
        )


@dataclass
class SentenceOutput(ModelOutput):
    """The states of all tokens first, as every network without a head has them, and one vector per text."""

    last_hidden_state: torch.Tensor | None = None  # texts x time x width
    logits: torch.Tensor | None = None  # rows x texts x width
    hidden_states: tuple[torch.Tensor, ...] | None = None
    attentions: tuple[torch.Tensor, ...] | None = None


class PrunedSentenceModel(PrunedNetwork):
    """Without a head: the vectors of texts, pooled as the sentence encoder was trained to.

    Inputs are rows x time, or rows x texts x time where a row is several texts, such as a pair that is compared.
    `logits` are the vectors, rows x texts x width (one text where inputs have no dimension for it).
    """

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        **asked: Any,
    ) -> SentenceOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        texts = input_ids.shape[1] if input_ids.dim() == 3 else 1
        ids, mask, types = (None if x is None else x.flatten(0, -2) for x in (input_ids, mask, token_type_ids))
        answer = self.read(ids, mask, types, asked)
        return SentenceOutput(
            last_hidden_state=answer.last_hidden_state,
            logits=self.vectors(answer.last_hidden_state, mask).unflatten(0, (-1, texts)),
            hidden_states=answer.hidden_states,
            attentions=answer.attentions,
        )

    def vectors(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """One vector per text, texts x width; of length 1 where the sentence encoder normalises them."""
        vectors = SENTENCE_POOLINGS[self.config.pooling](states, mask)
        normalize = (self.config.sentence or {}).get("normalize", False)
        return nn.functional.normalize(vectors, dim=-1) if normalize else vectors


class PrunedForTokenClassification(PrunedNetwork):
    """With a head for every token: logits are batch x time x tags; labels of -100 are not learnt."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        self.dropout = nn.Dropout(0.0 if config.family.token_head else head_dropout(config))  # that head has its own
        self.head = token_head(config, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        **asked: Any,
    ) -> TokenClassifierOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        answer = self.read(input_ids, mask, token_type_ids, asked)
        logits = self.head(self.dropout(answer.last_hidden_state))
        loss = None if labels is None else nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return TokenClassifierOutput(
            loss=loss, logits=logits, hidden_states=answer.hidden_states, attentions=answer.attentions
        )


class PrunedForCausalLM(PrunedNetwork, GenerationMixin):
    """With a language-modelling head: logits are batch x time x vocabulary."""

    def __init__(self, config: PrunedConfig):
        super().__init__(config)
        family, stock = config.family, config.stock()
        self.lm_head = nn.Linear(getattr(stock, family.width), stock.vocab_size, bias=False)
        self._tied_weights_keys = {"lm_head.weight": f"backbone.{family.embeddings[0]}.weight"}
        self.logit_cap = getattr(stock, family.logit_cap) if family.logit_cap else None
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
        **asked: Any,
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
            **self.recorded(asked),
        )
        logits = self.lm_head(answer.last_hidden_state[:, -logits_to_keep:])  # 0 keeps all
        if self.logit_cap is not None:
            logits = torch.tanh(logits / self.logit_cap) * self.logit_cap
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=answer.past_key_values,
            hidden_states=answer.hidden_states,
            attentions=answer.attentions,
        )


class FusedLinear(nn.Module):
    """A stock linear that writes several things as one linear for each, so that they are cut as in any other family."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.cat([part(hidden) for part in self.children()], -1)


def shrink(placed: PlacedLayer) -> None:
    """Give a stock layer linears of these sizes, or none where nothing is left."""
    layer, parts, units = placed.layer, placed.parts, placed.units
    for path, names in parts.fused.items():
        fused = layer.get_submodule(path)
        layer.set_submodule(path, FusedLinear())
        for name in names:
            layer.set_submodule(f"{path}.{name}", fused)  # until each gets its own size
    if placed.heads:
        shrink_attention(layer, parts, placed.shape)
    else:
        stand_in(layer, parts.without_attention)
    if not units:
        stand_in(layer, parts.without_ffn)
        return
    for path in parts.unit_writers:
        resize(layer, path, outputs=units)
    resize(layer, parts.down, inputs=units)


def shrink_attention(layer: nn.Module, parts: LayerParts, shape: AttentionShape) -> None:
    for path in parts.query_writers:
        resize(layer, path, outputs=shape.inner)
    for path in parts.key_writers:
        resize(layer, path, outputs=shape.key_inner)
    resize(layer, parts.mix, inputs=shape.inner)
    if parts.head_places:
        set_path(layer, parts.head_places, torch.arange(shape.groups))
    for path, number in parts.follows.items():
        set_path(layer, path, number(shape))


def find_path(layer: nn.Module, path: str) -> tuple[Any, str]:
    """What has the attribute at the end of a path, and its name."""
    owner, _, name = path.rpartition(".")
    return attrgetter(owner)(layer), name


def set_path(layer: nn.Module, path: str, value: Any) -> None:
    owner, name = find_path(layer, path)
    setattr(owner, name, value)


def resize(layer: nn.Module, path: str, *, inputs: int | None = None, outputs: int | None = None) -> None:
    """Put a linear of this size where the stock layer has a linear or GPT-2's transposed one."""
    old = layer.get_submodule(path)
    whole_in, whole_out = (old.in_features, old.out_features) if isinstance(old, nn.Linear) else tuple(old.weight.shape)
    new = nn.Linear(inputs or whole_in, outputs or whole_out, bias=old.bias is not None)
    layer.set_submodule(path, new)


def stand_in(layer: nn.Module, replacements: Mapping[str, type[nn.Module]]) -> None:
    for path, module in replacements.items():
        layer.set_submodule(path, module())
