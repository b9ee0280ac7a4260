"""The search spaces, one file each; those of whole architectures are listed here."""

from typing import TYPE_CHECKING

from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.spaces.architectures import ArchitectureSpace

ARCHITECTURES: "Registry[ArchitectureSpace]" = Registry(
    "space",
    {
        "flexibert": Lazy(
            "archwright.spaces.flexibert:FLEXIBERT",
            "BERT-like encoders with a choice of operators in every layer (Tuli et al. 2022)",
        ),
        "gpt2": Lazy(
            "archwright.spaces.lts_gpt2:LTS_GPT2",
            "decoders with heads and inner size of every layer (LiteTransformerSearch)",
        ),
        "nlu-tiny": Lazy(
            "archwright.spaces.nlu:NLU_TINY",
            "6 layers, each a BERT or MobileBERT block with its own FFN width (W-PCA; at most 10M parameters)",
        ),
        "nlu-small": Lazy("archwright.spaces.nlu:NLU_SMALL", "the same with 12 layers (at most 15.7M)"),
        "nlu-large": Lazy("archwright.spaces.nlu:NLU_LARGE", "12 layers twice as wide (at most 67M)"),
        "rnn": Lazy("archwright.spaces.cells:CELLS", "recurrent cells as graphs (NAS-Bench-NLP)"),
    },
    group="archwright.spaces",
)
"""Each in its default variant."""
