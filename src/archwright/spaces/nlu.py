"""The NLU space (W-PCA, Sections 4 and 6.2.1) in its three sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from archwright.errors import BadInput
from archwright.networks.nlu.config import BlockPlan, NluConfig, nlu_counts
from archwright.networks.nlu.network import (
    BLOCKS,
    HEAD,
    HEADS,
    NluLayer,
    NluModel,
    NluNetwork,
    build_block,
    build_embeddings,
    build_nlu,
    draw_weights,
)
from archwright.networks.nlu.supernet import NluSupernet, NluSupernetConfig, build_nlu_supernet
from archwright.networks.roles import Counts
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary, most_heads, narrow, repeat_layers

WIDTHS = 6
"""How many FFN widths there are."""
TOKENS = 64
"""Of each text that a network is looked at with."""
LEAST_TOKENS = 1024
"""Of all of them together."""


@dataclass(frozen=True)
class NluSize:
    """One size of the space."""

    depth: int
    hidden: int
    limit: int
    """Parameters without the head of a loss that a design of this size may have."""

    @property
    def units(self) -> tuple[int, ...]:
        """FFN widths: multiples of a quarter of the hidden size."""
        return tuple(self.hidden // 4 * times for times in range(1, WIDTHS + 1))


SIZES: dict[str, NluSize] = {
    "tiny": NluSize(depth=6, hidden=528, limit=10_000_000),
    "small": NluSize(depth=12, hidden=528, limit=15_700_000),
    "large": NluSize(depth=12, hidden=1056, limit=67_000_000),
}


class NluPrefixLayers:
    """The parts of all networks of one seed, as `NluSpace.network` has them."""

    def __init__(self, space: "NluSpace", config: Config, *, seed: int, loss: str, vocabulary: int) -> None:
        self._space, self._seed = space, seed
        self._plan = space.plan(config, loss=loss, vocab_size=vocabulary)
        self.embeddings = build_embeddings(self._plan, seed=seed)

    @property
    def head(self) -> nn.Module:
        return draw_weights(HEADS[self._plan.loss](self._plan), self._plan, HEAD, seed=self._seed)

    def words(self, config: Config) -> tuple[str, ...]:
        return tuple(config[name] for name in self._space.choices)

    def layer(self, place: int, word: str) -> NluLayer:
        return build_block(self._plan, place, word, seed=self._seed)


@dataclass(frozen=True)
class NluSpace(ArchitectureSpace):
    """Encoders of 6 or 12 layers, each one of twelve blocks: BERT or MobileBERT, with one of six FFN widths.

    Networks of one seed share their weights: a block at a place has the same in all of them, as `build_nlu` draws them.
    """

    variant: str = "small"

    text = "bert"
    losses = ("mlm", "electra")
    classes = (NluNetwork, NluModel)
    prefix_layers = NluPrefixLayers
    has_supernet = True

    def __post_init__(self) -> None:
        if self.variant not in SIZES:
            raise BadInput(f"variant must be one of {', '.join(SIZES)}, got {self.variant!r}; take one of these.")

    @property
    def name(self) -> str:
        return f"nlu-{self.variant}"

    @property
    def variants(self) -> tuple[str, ...]:
        """The sizes are listed as spaces of their own."""
        return (self.variant,)

    @property
    def sizes(self) -> NluSize:
        return SIZES[self.variant]

    @property
    def batch(self) -> tuple[int, int]:
        """More tokens than a hidden state is wide, and at least 1,024: with fewer they cap the number of components."""
        return max(LEAST_TOKENS, self.sizes.hidden + TOKENS) // TOKENS, TOKENS

    @property
    def limit(self) -> int:
        """The space itself holds larger designs too."""
        return self.sizes.limit

    @property
    def blocks(self) -> tuple[str, ...]:
        """What a layer may be, the one with fewest parameters first."""
        return tuple(f"{block}-{units}" for block in BLOCKS for units in self.sizes.units)

    @property
    def choices(self) -> Mapping[str, Sequence[str]]:
        words = self.blocks
        return {f"block.{place}": words for place in range(self.sizes.depth)}

    def check(self, config: Config) -> None:
        choices = self.choices
        for name in sorted(set(config) ^ set(choices)):
            lack = "lacks" if name in choices else "has no"
            raise BadInput(f"a config of {self.name} {lack} {name!r}; it has block.0 to block.{self.sizes.depth - 1}.")
        for name, values in choices.items():
            if config[name] not in values:
                words = ", ".join(values)
                raise BadInput(
                    f"{name} must be one of {words} in {self.name}, got {config[name]!r}; take one of these."
                )

    def traits(self, config: Config) -> Config:
        """How many layers have each block, and the mean width of the FFNs."""
        plans = self.block_plans(config)
        blocks = [plan.block for plan in plans]
        mean = round(sum(plan.units for plan in plans) / len(plans))
        return {**{f"{block} blocks": blocks.count(block) for block in BLOCKS}, "FFN units, mean": mean}

    def layers(self, config: Config) -> list[LayerSummary]:
        return [
            LayerSummary(kind=plan.block, width=plan.units, label=f"{plan.block} {plan.units}")
            for plan in self.block_plans(config)
        ]

    def block_plans(self, config: Config) -> list[BlockPlan]:
        self.check(config)
        return [BlockPlan.read(config[name]) for name in self.choices]

    def plan(self, config: Config, **fields: Any) -> NluConfig:
        """The Hugging Face config of a design; `fields` are more of its own."""
        return NluConfig(self.block_plans(config), hidden_size=self.sizes.hidden, **fields)

    def counts(self, config: Config) -> Counts:
        return nlu_counts(plan_without_layers(self.sizes.hidden), self.block_plans(config))

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> NluNetwork:
        """Its weights follow from the seed of the generator, which is left as it is."""
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return build_nlu(self.plan(config, loss=self.check_loss(loss), **rows), generator=generator)

    def supernet(
        self, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> NluSupernet:
        """All designs in one network (see `networks.nlu.supernet`), untrained each is `network` of the same seed."""
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        sizes = {"hidden_size": self.sizes.hidden, "loss": self.check_loss(loss), **rows}
        return build_nlu_supernet(NluSupernetConfig(list(self.choices.values()), **sizes), generator=generator)

    def plan_counts(self, plan: NluConfig) -> Counts:
        return nlu_counts(plan)

    def plan_network(self, plan: NluConfig, *, generator: torch.Generator) -> NluNetwork:
        return build_nlu(plan, generator=generator)

    def scaled_fields(self, plan: NluConfig, factor: int) -> dict[str, Any]:
        layers = repeat_layers([[block, factor * units] for block, units in plan.layers], factor)
        return {"layers": layers, "hidden_size": factor * plan.hidden_size, "inner_size": factor * plan.inner_size}

    def generator_fields(self, plan: NluConfig, size: float) -> dict[str, Any]:
        width, inner = narrow(plan.hidden_size, size), narrow(plan.inner_size, size)
        layers = [[block, narrow(units, size)] for block, units in plan.layers]
        heads = most_heads(narrow(plan.heads, size), width, inner)
        return {"layers": layers, "hidden_size": width, "inner_size": inner, "heads": heads}


@cache
def plan_without_layers(hidden: int) -> NluConfig:
    """Making a config takes ten times as long as counting a design."""
    return NluConfig(hidden_size=hidden)


NLU_TINY, NLU_SMALL, NLU_LARGE = (NluSpace(name) for name in SIZES)
