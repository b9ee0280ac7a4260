"""Sizes of an NLU network by arithmetic: nothing is built."""

from collections.abc import Callable
from typing import NamedTuple

from archwright.networks.nlu.config import NluConfig
from archwright.networks.roles import Counts

TOKENS = 64
"""Length of a row for which operations are counted."""


class Numbers(NamedTuple):
    """Of one layer."""

    attention: int
    ffn: int
    norms: int
    products: int
    """Multiply-adds per token."""


def counted(config: NluConfig) -> Counts:
    """Sizes without the head of the loss; the lookup tables are what does not count as non-embedding.

    What narrows a mobile block counts as attention, what widens it as FFN; norms count as neither.
    """
    layers = [LAYERS[plan.block](config.hidden_size, config.inner_size, plan.units) for plan in config.plans]
    attention, ffn, norms, products = (sum(layer[field] for layer in layers) for field in range(4))
    joining = linear(3 * config.embedding_size, config.hidden_size) + norm(config.hidden_size)
    rows = config.max_position_embeddings + config.type_vocab_size
    nonembedding = joining + attention + ffn + norms
    return Counts(
        parameters=nonembedding + config.vocab_size * config.embedding_size + rows * config.hidden_size,
        nonembedding=nonembedding,
        attention=attention,
        ffn=ffn,
        flops=2 * products,
        depth=len(layers),
        width=config.hidden_size,
    )


def base(wide: int, narrow: int, units: int) -> Numbers:
    return Numbers(
        attention=4 * linear(wide, wide),
        ffn=linear(wide, units) + linear(units, wide),
        norms=2 * norm(wide),
        products=4 * wide * wide + 2 * wide * units + 2 * TOKENS * wide,
    )


def mobile(wide: int, narrow: int, units: int) -> Numbers:
    return Numbers(
        attention=4 * linear(wide, narrow) + linear(narrow, narrow),
        ffn=linear(narrow, units) + linear(units, narrow) + linear(narrow, wide),
        norms=3 * norm(narrow) + norm(wide),
        products=5 * wide * narrow + narrow * narrow + 2 * narrow * units + 2 * TOKENS * narrow,
    )


LAYERS: dict[str, Callable[[int, int, int], Numbers]] = {"base": base, "mobile": mobile}


def linear(given: int, made: int) -> int:
    return given * made + made


def norm(width: int) -> int:
    return 2 * width
