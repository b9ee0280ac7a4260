"""What a sub-network keeps of its super-network, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from typing import NamedTuple

Part = int | tuple[int, ...]
"""The first n, or exactly these positions in rising order."""


class LayerSpec(NamedTuple):
    heads: Part
    units: Part


SubnetSpec = tuple[LayerSpec, ...]
"""One entry per layer of the super-network; (0, 0) is a layer that is gone."""


def count(part: Part) -> int:
    return part if isinstance(part, int) else len(part)


def positions(part: Part) -> tuple[int, ...]:
    return tuple(range(part)) if isinstance(part, int) else part


def as_part(part: Sequence[int]) -> Part:
    """The first n as a number, because a prefix is a view where other positions are a copy."""
    chosen = tuple(int(i) for i in part)
    return len(chosen) if chosen == tuple(range(len(chosen))) else chosen


def sizes(spec: SubnetSpec) -> list[tuple[int, int]]:
    """Heads and units of every layer of the super-network."""
    return [(count(layer.heads), count(layer.units)) for layer in spec]


@dataclass(frozen=True)
class WeightCount:
    """Numbers in matrices (and kernels), and in biases and norms."""

    matrices: int = 0
    vectors: int = 0

    def __add__(self, other: WeightCount) -> WeightCount:
        return WeightCount(self.matrices + other.matrices, self.vectors + other.vectors)

    def times(self, count: int) -> WeightCount:
        return WeightCount(self.matrices * count, self.vectors * count)


@dataclass(frozen=True)
class PrunableCost:
    """What the heads of a layer cost, or its units."""

    each: WeightCount = WeightCount()
    once: WeightCount = WeightCount()
    """What stays as long as any of them does: a bias, a norm, keys that all heads share."""

    def cost(self, count: int) -> WeightCount:
        return self.each.times(count) + self.once if count else WeightCount()


@dataclass(frozen=True)
class LayerAnatomy:
    """One unpruned layer."""

    heads: int
    """Heads that can go; with grouped queries each of them is several, and an operator without heads has none."""
    units: int
    attention: PrunableCost
    ffn: PrunableCost
    features: int
    """Query features of one head."""
    rest: WeightCount = WeightCount()
    """What stays as long as the layer does."""
    mixing: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Multiply-adds per token of an operator without heads: these, times the length, times its logarithm."""
    relative: tuple[int, int] = (0, 0)
    """Multiply-adds of one head with relative positions: per text, and per token."""

    def cost(self, heads: int, units: int) -> WeightCount:
        if not (heads or units):
            return WeightCount()
        return self.attention.cost(heads) + self.ffn.cost(units) + self.rest

    def mixing_flops(self, heads: int, units: int, length: int) -> float:
        """Floating point operations of mixing the tokens of a text, linears left out."""
        per_token, per_length, per_logarithm = self.mixing if heads or units else (0.0, 0.0, 0.0)
        own = per_token + per_length * length + per_logarithm * log2(length)
        relative = 2 * heads * (self.relative[0] + self.relative[1] * length)
        return 4 * length * length * heads * self.features + 2 * length * own + relative


@dataclass(frozen=True)
class OutputHead:
    """What comes after the layers; the defaults are an encoder's classification head."""

    norm: int = 0
    """Vectors of the norm after the last layer, and of one in the head."""
    dense: bool = True
    """Whether the task head has a square linear in front."""
    bias: bool = True
    per_token: bool = False
    """Whether the task head looks at every token, not only at one vector of the text."""
    table: int = 0
    """Rows of a language model's output embeddings."""
    tied: bool = True
    """Whether they are the input embeddings."""
    dense_bias: bool = True
    """Whether the square linear has a bias."""


@dataclass(frozen=True)
class Anatomy:
    """The numbers of a super-network from which every sub-network's cost follows, without building it."""

    full_layers: tuple[LayerAnatomy, ...]
    width: int
    labels: int
    """Outputs of the task head; a language model has a table of output embeddings instead."""
    embedding: WeightCount
    """Tables of inputs and positions, what projects them to the width, norms."""
    projection: int = 0
    """The numbers of it that multiply every token."""
    output_head: OutputHead = OutputHead()
    shared_layer: bool = False
    """Whether one layer is run at every place, so that its parameters count once."""

    @property
    def layers(self) -> int:
        return len(self.full_layers)

    @property
    def heads(self) -> int:
        """Removable heads of the layer with most of them."""
        return max((layer.heads for layer in self.full_layers), default=0)

    @property
    def units(self) -> int:
        """Units of the layer with most of them."""
        return max((layer.units for layer in self.full_layers), default=0)

    @property
    def full(self) -> SubnetSpec:
        return tuple(LayerSpec(layer.heads, layer.units) for layer in self.full_layers)

    @property
    def embedding_matrices(self) -> int:
        """Weights of the embedding tables, of their projection and of a language model's own output table."""
        return self.embedding.matrices + (0 if self.output_head.tied else self.output_head.table * self.width)

    @property
    def embeddings(self) -> int:
        """Parameters that no search can remove: tables of inputs, positions and outputs, their norm, the projection."""
        return self.embedding_matrices + self.embedding.vectors

    @property
    def head_matrices(self) -> int:
        return (self.width * self.width if self.output_head.dense else 0) + self.width * self.labels

    @property
    def head_vectors(self) -> int:
        """Biases of the task head, and the norms before it and in it."""
        head = self.output_head
        biases = (self.width if head.dense and head.dense_bias else 0) + (self.labels if head.bias else 0)
        return biases + self.output_head.norm * self.width


def run_cost(anatomy: Anatomy, spec: SubnetSpec) -> WeightCount:
    """Weights of all layers that a token goes through; a sub-layer with nothing left has lost its norm too."""
    rows = zip(anatomy.full_layers, sizes(spec), strict=True)
    return sum((layer.cost(heads, units) for layer, (heads, units) in rows), WeightCount())


def layers_cost(anatomy: Anatomy, spec: SubnetSpec) -> WeightCount:
    """The same as they are stored: a layer that is run at several places is there once."""
    if not anatomy.shared_layer:
        return run_cost(anatomy, spec)
    return next((anatomy.full_layers[0].cost(*size) for size in sizes(spec) if any(size)), WeightCount())


def nonembedding_parameters(anatomy: Anatomy, spec: SubnetSpec) -> int:
    """Parameters of the extracted layers and head; embeddings left out because no search can remove them."""
    layers = layers_cost(anatomy, spec)
    return layers.matrices + layers.vectors + anatomy.head_matrices + anatomy.head_vectors


def parameters(anatomy: Anatomy, spec: SubnetSpec) -> int:
    """All parameters of the extracted network."""
    return anatomy.embeddings + nonembedding_parameters(anatomy, spec)


def flops(anatomy: Anatomy, spec: SubnetSpec, *, length: int) -> int:
    """Floating point operations (two per multiply-add) of one text of `length` tokens; norms and biases left out."""
    per_token = run_cost(anatomy, spec).matrices + anatomy.projection + anatomy.output_head.table * anatomy.width
    rows = zip(anatomy.full_layers, sizes(spec), strict=True)
    mixing = sum(layer.mixing_flops(heads, units, length) for layer, (heads, units) in rows)
    return round(
        2 * length * per_token + mixing + 2 * anatomy.head_matrices * (length if anatomy.output_head.per_token else 1)
    )


def int8_bytes(anatomy: Anatomy, spec: SubnetSpec) -> int:
    """Bytes of the weights after int8 quantization: one per matrix entry, four per bias or norm entry."""
    layers = layers_cost(anatomy, spec)
    matrices = anatomy.embedding_matrices + layers.matrices + anatomy.head_matrices
    return matrices + 4 * (anatomy.embedding.vectors + layers.vectors + anatomy.head_vectors)
