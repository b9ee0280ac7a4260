"""What a sub-network keeps of its super-network, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from archwright.networks.pruned import PrunedConfig

Part = int | tuple[int, ...]
"""The first n, or exactly these positions in rising order."""


class LayerKeep(NamedTuple):
    heads: Part
    units: Part


Keep = tuple[LayerKeep, ...]
"""One entry per layer of the super-network; (0, 0) is a layer that is gone."""


def count(part: Part) -> int:
    return part if isinstance(part, int) else len(part)


def positions(part: Part) -> tuple[int, ...]:
    return tuple(range(part)) if isinstance(part, int) else part


def simplest(part: Sequence[int]) -> Part:
    """The first n as a number, because a prefix is a view where other positions are a copy."""
    chosen = tuple(int(i) for i in part)
    return len(chosen) if chosen == tuple(range(len(chosen))) else chosen


def sizes(keep: Keep) -> list[tuple[int, int]]:
    """Heads and units of every layer of the super-network."""
    return [(count(layer.heads), count(layer.units)) for layer in keep]


@dataclass(frozen=True)
class Anatomy:
    """The numbers of a super-network from which every sub-network's cost follows, without building it."""

    layers: int
    heads: int
    units: int
    width: int
    head_size: int
    labels: int
    embedding_rows: int
    """Rows of all embedding tables."""
    embedding_width: int

    @property
    def full(self) -> Keep:
        return (LayerKeep(self.heads, self.units),) * self.layers

    @property
    def embedding_matrices(self) -> int:
        """Weights of the embedding tables and, in ELECTRA, of the projection to the encoder's width."""
        return self.embedding_rows * self.embedding_width + self.projection

    @property
    def projection(self) -> int:
        return 0 if self.embedding_width == self.width else self.embedding_width * self.width

    @property
    def embedding_vectors(self) -> int:
        return 2 * self.embedding_width + (self.width if self.projection else 0)

    @property
    def embeddings(self) -> int:
        """Parameters that no search can remove: tables, their norm, the projection."""
        return self.embedding_matrices + self.embedding_vectors


def anatomy(config: PrunedConfig) -> Anatomy:
    """The numbers of the *unpruned* encoder that `config` describes."""
    family, stock = config.family, config.backbone
    width = stock[family.width]
    rows = stock["vocab_size"] + stock["max_position_embeddings"] + stock.get("type_vocab_size", 0)
    return Anatomy(
        layers=stock[family.depth],
        heads=stock[family.heads],
        units=stock[family.units],
        width=width,
        head_size=width // stock[family.heads],
        labels=config.num_labels,
        embedding_rows=rows,
        embedding_width=stock.get("embedding_size", width),
    )


def encoder_matrices(of: Anatomy, keep: Keep) -> int:
    """Weights of all linears in the encoder."""
    return sum(4 * of.width * heads * of.head_size + 2 * of.width * units for heads, units in sizes(keep))


def encoder_vectors(of: Anatomy, keep: Keep) -> int:
    """Biases and norms; a sub-layer with nothing left has lost its norm too."""
    total = 0
    for heads, units in sizes(keep):
        total += (3 * heads * of.head_size + 3 * of.width) if heads else 0
        total += (units + 3 * of.width) if units else 0
    return total


def nonembedding_parameters(of: Anatomy, keep: Keep) -> int:
    """Parameters of the extracted encoder and head; embeddings left out because no search can remove them."""
    head = of.width * of.width + of.width + of.width * of.labels + of.labels
    return encoder_matrices(of, keep) + encoder_vectors(of, keep) + head


def parameters(of: Anatomy, keep: Keep) -> int:
    """All parameters of the extracted network."""
    return of.embeddings + nonembedding_parameters(of, keep)


def flops(of: Anatomy, keep: Keep, *, length: int) -> int:
    """Floating point operations (two per multiply-add) of one text of `length` tokens; norms and biases left out."""
    linear = 2 * length * (encoder_matrices(of, keep) + of.projection)
    attention = sum(4 * length * length * heads * of.head_size for heads, _ in sizes(keep))
    return linear + attention + 2 * of.width * (of.width + of.labels)


def int8_bytes(of: Anatomy, keep: Keep) -> int:
    """Bytes of the weights after int8 quantization: one per matrix entry, four per bias or norm entry."""
    matrices = of.embedding_matrices + encoder_matrices(of, keep) + of.width * (of.width + of.labels)
    vectors = of.embedding_vectors + encoder_vectors(of, keep) + of.width + of.labels
    return matrices + 4 * vectors
