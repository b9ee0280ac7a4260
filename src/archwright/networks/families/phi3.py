"""Phi-3: Llama's layers with one linear for queries, keys and values, and one for gate and up."""

import copy

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from archwright.networks.families.family import Family, NoAttention, NoFfn


class Phi3Family(Family):
    """Attention reads in its config how many query heads it has, so every layer gets a config of its own."""

    def body(self, config: PreTrainedConfig) -> PreTrainedModel:
        model = super().body(config)
        for layer in model.get_submodule(self.layers):
            layer.self_attn.config = copy.copy(model.config)
        return model


PHI3 = Phi3Family(
    layers="layers",
    query="self_attn.qkv_proj.query",
    key="self_attn.qkv_proj.key",
    value="self_attn.qkv_proj.value",
    mix="self_attn.o_proj",
    up="mlp.gate_up_proj.up",
    gate="mlp.gate_up_proj.gate",
    down="mlp.down_proj",
    fused={"self_attn.qkv_proj": ("query", "key", "value"), "mlp.gate_up_proj": ("gate", "up")},
    attention="self_attn",
    attention_norm="input_layernorm",
    ffn_norm="post_attention_layernorm",
    without_attention={"self_attn": NoAttention, "input_layernorm": nn.Identity, "resid_attn_dropout": nn.Identity},
    without_ffn={"mlp": NoFfn, "post_attention_layernorm": nn.Identity, "resid_mlp_dropout": nn.Identity},
    follows={
        "self_attn.config.num_attention_heads": lambda shape: shape.groups * shape.queries,
        "self_attn.num_key_value_heads": lambda shape: shape.groups,
        "self_attn.num_key_value_groups": lambda shape: shape.queries,
    },
    head_dense="",
    head_out="score",
    head_activation="",
    token_out="score",
    embeddings=("embed_tokens",),
    positions="",
    pooling="last",
    key_heads="num_key_value_heads",
    head_size="head_dim",
    norm_eps="rms_norm_eps",
    dropout="resid_pdrop",
)
