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


def simplest(part: Sequence[int]) -> Part:
    """The first n as a number, because a prefix is a view where other positions are a copy."""
    chosen = tuple(int(i) for i in part)
    return len(chosen) if chosen == tuple(range(len(chosen))) else chosen


def sizes(keep: SubnetSpec) -> list[tuple[int, int]]:
    """Heads and units of every layer of the super-network."""
    return [(count(layer.heads), count(layer.units)) for layer in keep]


@dataclass(frozen=True)
class Cost:
    """Numbers in matrices (and kernels), and in biases and norms."""

    matrices: int = 0
    vectors: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.matrices + other.matrices, self.vectors + other.vectors)

    def times(self, count: int) -> Cost:
        return Cost(self.matrices * count, self.vectors * count)


@dataclass(frozen=True)
class Removable:
    """What the heads of a layer cost, or its units."""

    each: Cost = Cost()
    once: Cost = Cost()
    """What stays as long as any of them does: a bias, a norm, keys that all heads share."""

    def cost(self, count: int) -> Cost:
        return self.each.times(count) + self.once if count else Cost()


@dataclass(frozen=True)
class LayerAnatomy:
    """One unpruned layer."""

    heads: int
    """Heads that can go; with grouped queries each of them is several, and an operator without heads has none."""
    units: int
    attention: Removable
    ffn: Removable
    features: int
    """Query features of one head."""
    rest: Cost = Cost()
    """What stays as long as the layer does."""
    mixing: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Multiply-adds per token of an operator without heads: these, times the length, times its logarithm."""

    def cost(self, heads: int, units: int) -> Cost:
        if not (heads or units):
            return Cost()
        return self.attention.cost(heads) + self.ffn.cost(units) + self.rest

    def mixed(self, heads: int, units: int, length: int) -> float:
        """Floating point operations of mixing the tokens of a text, linears left out."""
        per_token, per_length, per_logarithm = self.mixing if heads or units else (0.0, 0.0, 0.0)
        own = per_token + per_length * length + per_logarithm * log2(length)
        return 4 * length * length * heads * self.features + 2 * length * own


@dataclass(frozen=True)
class Outlet:
    """What comes after the layers; the defaults are an encoder's classification head."""

    norm: int = 0
    """Vectors of the norm after the last layer."""
    dense: bool = True
    """Whether the task head has a square linear in front."""
    bias: bool = True
    per_token: bool = False
    """Whether the task head looks at every token, not only at one vector of the text."""
    table: int = 0
    """Rows of a language model's output embeddings."""
    tied: bool = True
    """Whether they are the input embeddings."""


@dataclass(frozen=True)
class Anatomy:
    """The numbers of a super-network from which every sub-network's cost follows, without building it."""

    wholes: tuple[LayerAnatomy, ...]
    width: int
    labels: int
    """Outputs of the task head; a language model has a table of output embeddings instead."""
    embedding: Cost
    """Tables of inputs and positions, what projects them to the width, norms."""
    projection: int = 0
    """The numbers of it that multiply every token."""
    outlet: Outlet = Outlet()

    @property
    def layers(self) -> int:
        return len(self.wholes)

    @property
    def heads(self) -> int:
        """Removable heads of the layer with most of them."""
        return max((layer.heads for layer in self.wholes), default=0)

    @property
    def units(self) -> int:
        """Units of the layer with most of them."""
        return max((layer.units for layer in self.wholes), default=0)

    @property
    def full(self) -> SubnetSpec:
        return tuple(LayerSpec(layer.heads, layer.units) for layer in self.wholes)

    @property
    def embedding_matrices(self) -> int:
        """Weights of the embedding tables, of their projection and of a language model's own output table."""
        return self.embedding.matrices + (0 if self.outlet.tied else self.outlet.table * self.width)

    @property
    def embeddings(self) -> int:
        """Parameters that no search can remove: tables of inputs, positions and outputs, their norm, the projection."""
        return self.embedding_matrices + self.embedding.vectors

    @property
    def head_matrices(self) -> int:
        return (self.width * self.width if self.outlet.dense else 0) + self.width * self.labels

    @property
    def head_vectors(self) -> int:
        """Biases of the task head, and the norm before it."""
        biases = (self.width if self.outlet.dense else 0) + (self.labels if self.outlet.bias else 0)
        return biases + self.outlet.norm * self.width


def layers_cost(of: Anatomy, keep: SubnetSpec) -> Cost:
    """All layers; a sub-layer with nothing left has lost its norm too."""
    rows = zip(of.wholes, sizes(keep), strict=True)
    return sum((layer.cost(heads, units) for layer, (heads, units) in rows), Cost())


def nonembedding_parameters(of: Anatomy, keep: SubnetSpec) -> int:
    """Parameters of the extracted layers and head; embeddings left out because no search can remove them."""
    layers = layers_cost(of, keep)
    return layers.matrices + layers.vectors + of.head_matrices + of.head_vectors


def parameters(of: Anatomy, keep: SubnetSpec) -> int:
    """All parameters of the extracted network."""
    return of.embeddings + nonembedding_parameters(of, keep)


def flops(of: Anatomy, keep: SubnetSpec, *, length: int) -> int:
    """Floating point operations (two per multiply-add) of one text of `length` tokens; norms and biases left out."""
    per_token = layers_cost(of, keep).matrices + of.projection + of.outlet.table * of.width
    rows = zip(of.wholes, sizes(keep), strict=True)
    mixing = sum(layer.mixed(heads, units, length) for layer, (heads, units) in rows)
    return round(2 * length * per_token + mixing + 2 * of.head_matrices * (length if of.outlet.per_token else 1))


def int8_bytes(of: Anatomy, keep: SubnetSpec) -> int:
    """Bytes of the weights after int8 quantization: one per matrix entry, four per bias or norm entry."""
    layers = layers_cost(of, keep)
    matrices = of.embedding_matrices + layers.matrices + of.head_matrices
    return matrices + 4 * (of.embedding.vectors + layers.vectors + of.head_vectors)
