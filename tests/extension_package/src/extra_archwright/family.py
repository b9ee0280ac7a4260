"""A model family: ERNIE (Sun et al. 2020), which has BERT's layers under another name."""

from dataclasses import replace

from archwright.networks.families.bert import BERT

ERNIE = replace(BERT, head_dense="ernie.pooler.dense", choice_dense="ernie.pooler.dense")
