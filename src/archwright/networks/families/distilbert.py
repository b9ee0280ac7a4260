"""DistilBERT: residuals and norms lie outside attention and FFN."""

from torch import nn

from archwright.networks.families.family import Family, NoAttention, NoFfn

DISTILBERT = Family(
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
)
