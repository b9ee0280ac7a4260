"""GPT-2: one linear for queries, keys and values, and weights that lie inputs x outputs."""

import torch
from torch import nn

from archwright.networks.families.family import Backbone, Family, NoAttention, NoFfn, StateDict


class Gpt2Family(Family):
    """Ours has all linears upright."""

    def place_layer(self, layer: nn.Module, place: int) -> None:
        """GPT-2 may divide attention by the layer's number: it stays the number in the network that was pruned."""
        attention = layer.get_submodule(self.attention)
        if attention.scale_attn_by_inverse_layer_idx:
            attention.scaling *= (attention.layer_idx + 1) / (place + 1)

    def from_stock(self, state: StateDict, backbone: Backbone) -> StateDict:
        return super().from_stock(self.turned(state), backbone)

    def to_stock(self, state: StateDict) -> StateDict:
        return self.turned(super().to_stock(state))

    def turned(self, state: StateDict) -> StateDict:
        """With the weights of the layers the other way round."""
        paths = (*self.fused, self.mix, self.up, self.down)
        return {
            name: transpose(tensor) if name.rpartition(".")[0].endswith(paths) else tensor
            for name, tensor in state.items()
        }


def transpose(tensor: torch.Tensor) -> torch.Tensor:
    """A weight the other way round; biases stay."""
    return tensor.T.contiguous() if tensor.dim() > 1 else tensor


GPT2 = Gpt2Family(
    layers="h",
    fused={"attn.c_attn": ("query", "key", "value")},
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
    max_length="n_positions",
    norm_eps="layer_norm_epsilon",
    dropout="resid_pdrop",
)
