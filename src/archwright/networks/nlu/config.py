"""What an NLU network is made of, as a Hugging Face config, and its sizes by arithmetic: nothing is built."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from transformers import PreTrainedConfig

from archwright.networks.roles import Counts, LayerSize


class BlockPlan(NamedTuple):
    """One layer."""

    block: str
    """One of BLOCKS: `base` or `mobile`."""
    units: int
    """Width of its FFN."""

    @classmethod
    def read(cls, choice: str) -> "BlockPlan":
        """Of a word such as `base-132`."""
        block, _, units = choice.partition("-")
        return cls(block, int(units))


COMMON_FIELDS = (
    *("hidden_size", "inner_size", "heads", "embedding_size", "vocab_size", "max_position_embeddings"),
    *("type_vocab_size", "loss", "dropout", "attention_dropout", "layer_norm_eps", "initializer_range", "pad_token_id"),
)
"""Fields that say nothing about single layers."""


class NluConfig(PreTrainedConfig):
    """The embedding is MobileBERT's: narrow tokens, each beside both its neighbours, projected to the hidden size.

    What the paper leaves open is decided as MobileBERT has it: positions and segments are as wide as the layers and
    added after the projection, a norm follows; a narrowed state is normed too. Attention is as wide as the stream it
    is added to, `hidden_size` in a base block and `inner_size` in a mobile one, and has as many heads in both.
    `attention_dropout` is `dropout` unless given; with 0 a CPU trains a layer about a fifth faster.
    """

    model_type = "archwright_nlu"

    def __init__(
        self,
        layers: Sequence[Sequence[Any]] = (),
        hidden_size: int = 528,
        inner_size: int | None = None,
        heads: int = 12,
        embedding_size: int = 128,
        vocab_size: int = 30522,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        loss: str = "mlm",
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        layer_norm_eps: float = 1e-12,
        initializer_range: float = 0.02,
        pad_token_id: int = 0,
        **kwargs: Any,
    ):
        self.layers = [[block, units] for block, units in layers]
        self.hidden_size = hidden_size
        self.inner_size = hidden_size // 4 if inner_size is None else inner_size
        self.heads = heads
        self.embedding_size = embedding_size
        self.vocab_size = vocab_size
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.loss = loss
        self.dropout = dropout
        self.attention_dropout = dropout if attention_dropout is None else attention_dropout
        self.layer_norm_eps = layer_norm_eps
        self.initializer_range = initializer_range
        super().__init__(pad_token_id=pad_token_id, **kwargs)

    @property
    def plans(self) -> list[BlockPlan]:
        return [BlockPlan(block, units) for block, units in self.layers]

    @property
    def common_fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in COMMON_FIELDS}

    @property
    def num_hidden_layers(self) -> int:
        """Under the name by which other people's code asks for it."""
        return len(self.layers)


TOKENS = 64
"""Length of a row for which operations are counted."""


class LayerCounts(NamedTuple):
    """Parameters of one layer, and what it computes."""

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
    wide = config.hidden_size
    designed = list(config.plans if plans is None else plans)
    layers = [layer_counts(plan, wide, config.inner_size) for plan in designed]
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
        layers=tuple(layer_size(plan, wide, config.inner_size, config.heads) for plan in designed),
    )


def layer_counts(plan: BlockPlan, wide: int, narrow: int) -> LayerCounts:
    units = plan.units
    if plan.block == "base":
        return LayerCounts(
            attention=4 * linear(wide, wide),
            ffn=linear(wide, units) + linear(units, wide),
            norms=2 * norm(wide),
            products=4 * wide * wide + 2 * wide * units + 2 * TOKENS * wide,
        )
    if plan.block != "mobile":
        raise KeyError(plan.block)
    return LayerCounts(
        attention=4 * linear(wide, narrow) + linear(narrow, narrow),
        ffn=linear(narrow, units) + linear(units, narrow) + linear(narrow, wide),
        norms=3 * norm(narrow) + norm(wide),
        products=5 * wide * narrow + narrow * narrow + 2 * narrow * units + 2 * TOKENS * narrow,
    )


def layer_size(plan: BlockPlan, wide: int, narrow: int, heads: int) -> LayerSize:
    if plan.block == "base":
        return LayerSize(heads, mixing=4 * wide * wide, ffn=2 * wide * plan.units)
    return LayerSize(heads, mixing=4 * wide * narrow + narrow * narrow, ffn=2 * narrow * plan.units + narrow * wide)


def linear(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


def norm(width: int) -> int:
    return 2 * width
