"""The search spaces, one file each."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from archwright.errors import BadInput

if TYPE_CHECKING:
    from archwright.spaces.architectures import ArchitectureSpace


@dataclass(frozen=True)
class Kind:
    """A space of whole architectures before it is built."""

    description: str
    target: str
    """module:class, called with the variant."""
    variants: tuple[str, ...]
    """The default first."""

    def space(self, variant: str | None = None) -> "ArchitectureSpace":
        name = self.variants[0] if variant is None else variant
        if name not in self.variants:
            raise BadInput(f"--variant must be one of {', '.join(self.variants)}, got {name!r}.")
        module, _, found = self.target.partition(":")
        made: ArchitectureSpace = getattr(import_module(module), found)(name)
        return made


ARCHITECTURES: dict[str, Kind] = {
    "flexibert": Kind(
        "BERT-like encoders with a choice of operators in every layer (Tuli et al. 2022)",
        "archwright.spaces.flexibert:FlexiBertSpace",
        ("trained", "described", "published"),
    ),
    "gpt2": Kind(
        "decoders with heads and inner size of every layer (LiteTransformerSearch)",
        "archwright.spaces.lts_gpt2:LtsGpt2Space",
        ("grid", "benchmark"),
    ),
    "nlu-tiny": Kind(
        "6 layers, each a BERT or MobileBERT block with its own FFN width (W-PCA; at most 10M parameters)",
        "archwright.spaces.nlu:NluSpace",
        ("tiny",),
    ),
    "nlu-small": Kind("the same with 12 layers (at most 15.7M)", "archwright.spaces.nlu:NluSpace", ("small",)),
    "nlu-large": Kind("12 layers twice as wide (at most 67M)", "archwright.spaces.nlu:NluSpace", ("large",)),
    "rnn": Kind("recurrent cells as graphs (NAS-Bench-NLP)", "archwright.spaces.cells:CellSpace", ("random",)),
}
