"""What a FlexiBERT network is made of, as a Hugging Face config."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from transformers import PreTrainedConfig


class LayerPlan(NamedTuple):
    """One encoder layer."""

    operation: str
    """How it mixes tokens: one of MIXERS."""
    heads: int
    widths: tuple[int, ...]
    """Units after each linear of its FFN but the last."""
    bare: bool = False
    """Whether the mixed tokens go into the FFN as they are: no output linear, no residual, no norm."""


class FlexiBertConfig(PreTrainedConfig):
    """Embeddings are as narrow as in ELECTRA-Small, and projected where the layers are wider."""

    model_type = "archwright_flexibert"

    def __init__(
        self,
        layers: Sequence[Sequence[Any]] = (),
        hidden_size: int = 256,
        embedding_size: int = 128,
        vocab_size: int = 30522,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        loss: str = "electra",
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-12,
        initializer_range: float = 0.02,
        **kwargs: Any,
    ):
        self.layers = [[operation, heads, list(widths), *rest] for operation, heads, widths, *rest in layers]
        self.hidden_size = hidden_size
        self.embedding_size = embedding_size
        self.vocab_size = vocab_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.loss = loss
        self.dropout = dropout
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range
        super().__init__(**kwargs)

    @property
    def plans(self) -> list[LayerPlan]:
        return [LayerPlan(operation, heads, tuple(widths), *rest) for operation, heads, widths, *rest in self.layers]
