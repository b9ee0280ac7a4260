"""Gemma 2 and the text networks of Gemma 3: Llama's linears, but what a sub-layer adds to the stream is normed too."""

from dataclasses import replace

from torch import nn
from transformers import PreTrainedConfig

from archwright.networks.families.family import Family, NoAttention, NoFfn


class GemmaFamily(Family):
    """Text goes from left to right."""

    def complaint(self, config: PreTrainedConfig) -> str:
        if getattr(config, "use_bidirectional_attention", False):
            return "must be a decoder whose tokens see only those before them, got use_bidirectional_attention"
        return ""


GEMMA3 = GemmaFamily(
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
    ffn_norm="pre_feedforward_layernorm",
    attention_out_norm="post_attention_layernorm",
    ffn_out_norm="post_feedforward_layernorm",
    without_attention={
        "self_attn": NoAttention,
        "input_layernorm": nn.Identity,
        "post_attention_layernorm": nn.Identity,
    },
    without_ffn={"mlp": NoFfn, "pre_feedforward_layernorm": nn.Identity, "post_feedforward_layernorm": nn.Identity},
    follows={"self_attn.num_key_value_groups": lambda shape: shape.queries},
    logit_cap="final_logit_softcapping",
    head_dense="",
    head_out="score",
    head_activation="",
    token_out="score",
    embeddings=("embed_tokens",),
    positions="",
    typed_positions=True,
    needs_layer=True,
    pooling="last",
    key_heads="num_key_value_heads",
    head_size="head_dim",
    norm_eps="rms_norm_eps",
)
GEMMA2 = replace(GEMMA3, kernel="eager", typed_positions=False, needs_layer=False)
"""Eager attention alone knows the soft caps of its scores."""
