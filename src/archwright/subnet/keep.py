"""What a sub-network keeps of its super-network, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class Make:
    """How the layers of a family are made; the defaults are an encoder's."""

    queries: int = 1
    """Query heads in one removable head."""
    keys: int = 1
    """Key heads in it, and as many value heads."""
    shared_keys: int = 0
    """Key heads that stay as long as any head does."""
    gated: bool = False
    """Whether the FFN has two linears that lead in."""
    qkv_bias: bool = True
    mix_bias: bool = True
    ffn_bias: bool = True
    norm: int = 2
    """Vectors of a norm."""
    head_norms: int = 0
    """Vectors of a head's size that norm queries and keys."""


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

    layers: int
    heads: int
    """Heads that can go from a layer; with grouped queries each of them is several."""
    units: int
    width: int
    head_size: int
    labels: int
    """Outputs of the task head; a language model has a table of output embeddings instead."""
    embedding_rows: int
    """Rows of all tables of input embeddings."""
    embedding_width: int
    embedding_norm: int = 2
    """Vectors of the norm over the embeddings."""
    make: Make = Make()
    outlet: Outlet = Outlet()

    @property
    def full(self) -> Keep:
        return (LayerKeep(self.heads, self.units),) * self.layers

    @property
    def embedding_matrices(self) -> int:
        """Weights of the embedding tables and, in ELECTRA, of the projection to the encoder's width."""
        output = 0 if self.outlet.tied else self.outlet.table * self.width
        return self.embedding_rows * self.embedding_width + self.projection + output

    @property
    def projection(self) -> int:
        return 0 if self.embedding_width == self.width else self.embedding_width * self.width

    @property
    def embedding_vectors(self) -> int:
        return self.embedding_norm * self.embedding_width + (self.width if self.projection else 0)

    @property
    def embeddings(self) -> int:
        """Parameters that no search can remove: tables of inputs, positions and outputs, their norm, the projection."""
        return self.embedding_matrices + self.embedding_vectors

    @property
    def head_matrices(self) -> int:
        return (self.width * self.width if self.outlet.dense else 0) + self.width * self.labels

    @property
    def head_vectors(self) -> int:
        """Biases of the task head, and the norm before it."""
        biases = (self.width if self.outlet.dense else 0) + (self.labels if self.outlet.bias else 0)
        return biases + self.outlet.norm * self.width

    def attention_features(self, heads: int) -> tuple[int, int]:
        """Features of all queries, and of all keys (or values), of a layer with so many heads."""
        keys = heads * self.make.keys + (self.make.shared_keys if heads else 0)
        return heads * self.make.queries * self.head_size, keys * self.head_size


def anatomy(config: PrunedConfig) -> Anatomy:
    """The numbers of the *unpruned* network that `config` describes."""
    family, stock = config.family, config.backbone
    labels, outlet = OUTLETS[config.kind](config)
    tables = [stock["vocab_size"], stock[family.room] if family.positions else 0, stock.get("type_vocab_size", 0)]
    return Anatomy(
        layers=stock[family.depth],
        heads=config.heads_go_by.units(config.whole_attention),
        units=stock[family.units],
        width=stock[family.width],
        head_size=config.whole_attention.size,
        labels=labels,
        embedding_rows=sum(tables),
        embedding_width=stock.get("embedding_size", stock[family.width]),
        embedding_norm=family.norm_vectors if family.embedding_norm else 0,
        make=make_of(config),
        outlet=outlet,
    )


def make_of(config: PrunedConfig) -> Make:
    family = config.family
    one, two = config.attention(1), config.attention(2)
    keys = two.groups - one.groups
    return Make(
        queries=one.groups * one.queries,
        keys=keys,
        shared_keys=one.groups - keys,
        gated=bool(family.gate),
        qkv_bias=config.says(family.qkv_bias),
        mix_bias=config.says(family.mix_bias),
        ffn_bias=config.says(family.ffn_bias),
        norm=family.norm_vectors,
        head_norms=2 if family.head_norms else 0,
    )


def last_norm(config: PrunedConfig) -> int:
    return config.family.norm_vectors if config.family.causal else 0


def pooled_outlet(config: PrunedConfig) -> Outlet:
    dense = bool(config.family.head_activation)
    return Outlet(norm=last_norm(config), dense=dense, bias=dense)


def table_outlet(config: PrunedConfig) -> Outlet:
    rows = config.backbone["vocab_size"]
    return Outlet(norm=last_norm(config), dense=False, bias=False, table=rows, tied=config.tie_word_embeddings)


OUTLETS: dict[str, Callable[[PrunedConfig], tuple[int, Outlet]]] = {
    "classification": lambda config: (config.num_labels, pooled_outlet(config)),
    "regression": lambda config: (1, pooled_outlet(config)),
    "choice": lambda config: (1, pooled_outlet(config)),
    "qa": lambda config: (2, Outlet(norm=last_norm(config), dense=False, per_token=True)),
    "lm": lambda config: (0, table_outlet(config)),
}
"""Outputs and shape of the head for every kind of task."""


def layer_matrices(of: Anatomy, keep: Keep) -> int:
    """Weights of all linears in the layers."""
    return sum(attention_matrices(of, heads) + ffn_matrices(of, units) for heads, units in sizes(keep))


def attention_matrices(of: Anatomy, heads: int) -> int:
    queries, keys = of.attention_features(heads)
    return 2 * of.width * (queries + keys)


def ffn_matrices(of: Anatomy, units: int) -> int:
    return (3 if of.make.gated else 2) * of.width * units


def layer_vectors(of: Anatomy, keep: Keep) -> int:
    """Biases and norms; a sub-layer with nothing left has lost its norm too."""
    return sum(attention_vectors(of, heads) + ffn_vectors(of, units) for heads, units in sizes(keep))


def attention_vectors(of: Anatomy, heads: int) -> int:
    if not heads:
        return 0
    make, (queries, keys) = of.make, of.attention_features(heads)
    biases = (queries + 2 * keys if make.qkv_bias else 0) + (of.width if make.mix_bias else 0)
    return biases + make.norm * of.width + make.head_norms * of.head_size


def ffn_vectors(of: Anatomy, units: int) -> int:
    if not units:
        return 0
    biases = (2 if of.make.gated else 1) * units + of.width if of.make.ffn_bias else 0
    return biases + of.make.norm * of.width


def nonembedding_parameters(of: Anatomy, keep: Keep) -> int:
    """Parameters of the extracted layers and head; embeddings left out because no search can remove them."""
    return layer_matrices(of, keep) + layer_vectors(of, keep) + of.head_matrices + of.head_vectors


def parameters(of: Anatomy, keep: Keep) -> int:
    """All parameters of the extracted network."""
    return of.embeddings + nonembedding_parameters(of, keep)


def flops(of: Anatomy, keep: Keep, *, length: int) -> int:
    """Floating point operations (two per multiply-add) of one text of `length` tokens; norms and biases left out."""
    per_token = layer_matrices(of, keep) + of.projection + of.outlet.table * of.width
    attention = sum(4 * length * length * of.attention_features(heads)[0] for heads, _ in sizes(keep))
    return 2 * length * per_token + attention + 2 * of.head_matrices * (length if of.outlet.per_token else 1)


def int8_bytes(of: Anatomy, keep: Keep) -> int:
    """Bytes of the weights after int8 quantization: one per matrix entry, four per bias or norm entry."""
    matrices = of.embedding_matrices + layer_matrices(of, keep) + of.head_matrices
    return matrices + 4 * (of.embedding_vectors + layer_vectors(of, keep) + of.head_vectors)
