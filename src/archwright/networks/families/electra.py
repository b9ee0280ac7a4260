"""ELECTRA: BERT's layers, no pooler, heads with GELU."""

from dataclasses import replace

from archwright.networks.families.bert import BERT

ELECTRA = replace(
    BERT,
    head_dense="classifier.dense",
    head_out="classifier.out_proj",
    head_activation="gelu",
    choice_dense="sequence_summary.summary",
    pooler=False,
)
