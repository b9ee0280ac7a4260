"""DeBERTa-v2 and v3: BERT's layers, and scores between tokens and relative positions, which have queries and keys."""

from dataclasses import replace
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.deberta_v2.modeling_deberta_v2 import DebertaV2Encoder

from archwright.networks.families.bert import BERT
from archwright.networks.families.family import (
    Backbone,
    Family,
    HeadShape,
    LayerParts,
    PassOn,
    RelativeScores,
    WholeLayer,
)


class AnyDepthEncoder(DebertaV2Encoder):
    """Without layers it passes on what it gets; the stock one has no answer then."""

    def forward(self, hidden_states: Any, attention_mask: Any, **kwargs: Any) -> Any:
        if len(self.layer):
            return super().forward(hidden_states, attention_mask, **kwargs)
        return BaseModelOutput(last_hidden_state=hidden_states, hidden_states=(hidden_states,))


class DebertaFamily(Family):
    """Positions have projections of their own, or share those of tokens."""

    def complaint(self, config: PreTrainedConfig) -> str:
        if getattr(config, "conv_kernel_size", 0) > 0:
            return "must be a DeBERTa without a convolution behind its first layer, got one (conv_kernel_size)"
        if not config.relative_attention:
            return "must be a DeBERTa with relative_attention, got one without"
        return ""

    def whole_layer(self, backbone: Backbone, place: int) -> WholeLayer:
        kinds, shared = backbone.get("pos_att_type") or (), bool(backbone.get("share_att_key"))
        spans = (backbone.get(key, -1) for key in ("position_buckets", "max_relative_positions", self.max_length))
        rows = 2 * next(span for span in spans if span > 0)
        scores = RelativeScores(rows, len(kinds), 2 if shared else len(kinds), own=not shared)
        return super().whole_layer(backbone, place)._replace(relative=scores)

    def layer_parts(self, backbone: Backbone, place: int) -> LayerParts:
        kinds, root = backbone.get("pos_att_type") or (), "attention.self"
        if backbone.get("share_att_key"):
            return self
        return replace(
            self,
            position_key=f"{root}.pos_key_proj" if "c2p" in kinds else "",
            position_query=f"{root}.pos_query_proj" if "p2c" in kinds else "",
        )

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        model = super().body(config)
        model.encoder.__class__ = AnyDepthEncoder
        return model

    def head_shape(self, config: PreTrainedConfig) -> HeadShape:
        return HeadShape(config.pooler_hidden_act)


DEBERTA = DebertaFamily(
    layers=BERT.layers,
    query="attention.self.query_proj",
    key="attention.self.key_proj",
    value="attention.self.value_proj",
    mix=BERT.mix,
    up=BERT.up,
    down=BERT.down,
    attention_norm=BERT.attention_norm,
    ffn_norm=BERT.ffn_norm,
    embedding_norm=BERT.embedding_norm,
    without_attention={"attention": PassOn},
    without_ffn=BERT.without_ffn,
    follows={"attention.self.num_attention_heads": lambda shape: shape.groups},
    kernel="eager",
    narrows=False,
    needs_layer=True,
    positions="",
    head_dense="pooler.dense",
    head_out="classifier",
    head_activation="gelu",
    choice_dense="pooler.dense",
    head_dropout="cls_dropout",
)
