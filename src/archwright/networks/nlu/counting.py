"""Sizes of an NLU network by arithmetic: nothing is built."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from archwright.networks.nlu.config import BlockPlan, NluConfig
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


def nlu_counts(config: NluConfig, plans: Iterable[BlockPlan] | None = None) -> Counts:
    """Sizes without the head of the loss; the lookup tables are what does not count as non-embedding.

    What narrows a mobile block counts as attention, what widens it as FFN; norms count as neither. `plans` stand for
    the layers of the config where many designs of one config are counted.
    """
    chosen = config.plans if plans is None else plans
    wide, narrow = config.hidden_size, config.inner_size
    layers = [LAYERS[plan.block](wide, narrow, plan.units) for plan in chosen]
    attention, ffn, norms, products = (sum(layer[field] for layer in layers) for field in range(4))
    joining = linear(3 * config.embedding_size, wide) + norm(wide)
    rows = config.max_position_embeddings + config.type_vocab_size
    nonembedding = joining + attention + ffn + norms
    return Counts(
        parameters=nonembedding + config.vocab_size * config.embedding_size + rows * wide,
        nonembedding=nonembedding,
        attention=attention,
        ffn=ffn,
        flops=2 * products,
        depth=len(layers),
        width=wide,
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
