"""ModernBERT: norms come first, positions are rotations, and most layers have windows.

Queries, keys and values are one linear, and so are both halves of the gated FFN. The first attention has no norm of its
own: the one behind the embeddings is before it.
"""

from torch import nn
from transformers import PreTrainedConfig

from archwright.networks.families.family import Family, HeadShape, NoAttention, NoFfn

POOLINGS_OF_MODERNBERT = {"cls": "cls", "mean": "average"}
"""What its config calls what its heads read, and what we do."""


class ModernBertFamily(Family):
    """Its config says what the head is like."""

    def place_layer(self, layer: nn.Module, place: int) -> None:
        """A layer that has become the first one keeps its norm."""
        if place > 0 and isinstance(layer.get_submodule(self.attention_norm), nn.Identity):
            config = layer.config
            norm = nn.LayerNorm(config.hidden_size, eps=config.norm_eps, bias=config.norm_bias)
            layer.set_submodule(self.attention_norm, norm)

    def head_shape(self, config: PreTrainedConfig) -> HeadShape:
        return HeadShape(config.classifier_activation, config.classifier_bias, config.norm_eps, config.norm_bias)

    def own_pooling(self, config: PreTrainedConfig) -> str:
        return POOLINGS_OF_MODERNBERT[config.classifier_pooling]

    def stock_poolings(self) -> tuple[str, ...]:
        return tuple(POOLINGS_OF_MODERNBERT.values())

    def set_pooling(self, config: PreTrainedConfig, pooling: str) -> None:
        names = {ours: theirs for theirs, ours in POOLINGS_OF_MODERNBERT.items()}
        config.classifier_pooling = names.get(pooling, config.classifier_pooling)


MODERNBERT = ModernBertFamily(
    layers="layers",
    query="attn.Wqkv.query",
    key="attn.Wqkv.key",
    value="attn.Wqkv.value",
    mix="attn.Wo",
    up="mlp.Wi.up",
    gate="mlp.Wi.gate",
    down="mlp.Wo",
    fused={"attn.Wqkv": ("query", "key", "value"), "mlp.Wi": ("gate", "up")},
    attention="attn",
    bidirectional=True,
    attention_norm="attn_norm",
    ffn_norm="mlp_norm",
    embedding_norm="embeddings.norm",
    unnormed_first=True,
    without_attention={"attn": NoAttention, "attn_norm": nn.Identity},
    without_ffn={"mlp": NoFfn, "mlp_norm": nn.Identity},
    positions="",
    typed_positions=True,
    head_dense="head.dense",
    head_norm="head.norm",
    head_out="classifier",
    head_activation="gelu",
    choice_dense="head.dense",
    token_head=True,
    norm_eps="norm_eps",
    dropout="mlp_dropout",
)
