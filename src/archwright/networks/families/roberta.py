"""RoBERTa: BERT's layers under other heads."""

from dataclasses import replace

from archwright.networks.families.bert import BERT

ROBERTA = replace(
    BERT, head_dense="classifier.dense", head_out="classifier.out_proj", choice_dense="roberta.pooler.dense"
)
