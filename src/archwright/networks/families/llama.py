"""Llama, and Qwen2, Qwen3 and Mistral, which have the same parts under the same names."""

from torch import nn

from archwright.networks.families.family import Family, NoAttention, NoFfn

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
    token_out="score",
    embeddings=("embed_tokens",),
    positions="",
    pooling="last",
    key_heads="num_key_value_heads",
    head_size="head_dim",
    norm_eps="rms_norm_eps",
)
