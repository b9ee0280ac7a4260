"""BERT, and what RoBERTa and ELECTRA share with it."""

from torch import nn

from archwright.networks.families.family import Family, PassOn, PassResidual

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
