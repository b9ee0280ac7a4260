"""RoBERTa, and XLM-RoBERTa and CamemBERT, which are the same with other vocabularies: BERT's layers, other heads."""

from dataclasses import replace

from archwright.networks.families.bert import BERT

ROBERTA = replace(
    BERT, head_dense="classifier.dense", head_out="classifier.out_proj", choice_dense="roberta.pooler.dense"
)
