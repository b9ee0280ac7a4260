"""Families of networks that can be pruned, by the model_type of their config; one file each."""

from archwright.networks.families.family import Family
from archwright.registry import Lazy, Registry

FAMILIES: Registry[Family] = Registry(
    "model family",
    {
        "bert": Lazy("archwright.networks.families.bert:BERT"),
        "roberta": Lazy("archwright.networks.families.roberta:ROBERTA"),
        "xlm-roberta": Lazy("archwright.networks.families.roberta:ROBERTA"),
        "camembert": Lazy("archwright.networks.families.roberta:ROBERTA"),
        "mpnet": Lazy("archwright.networks.families.mpnet:MPNET"),
        "modernbert": Lazy("archwright.networks.families.modernbert:MODERNBERT"),
        "deberta-v2": Lazy("archwright.networks.families.deberta:DEBERTA"),
        "albert": Lazy("archwright.networks.families.albert:ALBERT"),
        "electra": Lazy("archwright.networks.families.electra:ELECTRA"),
        "distilbert": Lazy("archwright.networks.families.distilbert:DISTILBERT"),
        "gpt2": Lazy("archwright.networks.families.gpt2:GPT2"),
        "llama": Lazy("archwright.networks.families.llama:LLAMA"),
        "qwen2": Lazy("archwright.networks.families.llama:LLAMA"),
        "qwen3": Lazy("archwright.networks.families.llama:LLAMA"),
        "mistral": Lazy("archwright.networks.families.llama:LLAMA"),
        "phi3": Lazy("archwright.networks.families.phi3:PHI3"),
        "gemma2": Lazy("archwright.networks.families.gemma:GEMMA2"),
        "gemma3_text": Lazy("archwright.networks.families.gemma:GEMMA3"),
        "archwright_flexibert": Lazy("archwright.networks.families.flexibert:FLEXIBERT"),
        "archwright_nlu": Lazy("archwright.networks.families.nlu:NLU"),
    },
    group="archwright.families",
)
ENCODER_DECODER = "which is an encoder and a decoder with attention between them; pruning both is not built"
UNSUPPORTED = {
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "bart", "mbart", "pegasus", "marian", "led"), ENCODER_DECODER),
    "gemma3": "which reads images too; its text network alone (gemma3_text) can be pruned",
}
"""Families that look as if they could be pruned, and why they cannot."""
