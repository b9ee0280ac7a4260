"""The NLU space (W-PCA, Sections 4 and 6.2.1) in its three sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from archwright.errors import BadInput
from archwright.networks.nlu import (
    BLOCKS,
    BlockPlan,
    NluConfig,
    NluNetwork,
    NluSupernet,
    NluSupernetConfig,
    counted,
    untrained,
    untrained_supernet,
)
from archwright.networks.roles import Counts
from archwright.search import Config, sample

WIDTHS = 6
"""How many FFN widths there are."""
TOKENS = 64
"""Of each text that a network is looked at with."""


@dataclass(frozen=True)
class Preset:
    """One size of the space."""

    depth: int
    hidden: int
    limit: int
    """Parameters without the head of a loss that a design of this size may have."""

    @property
    def units(self) -> tuple[int, ...]:
        """FFN widths: multiples of a quarter of the hidden size."""
        return tuple(self.hidden // 4 * times for times in range(1, WIDTHS + 1))


PRESETS: dict[str, Preset] = {
    "tiny": Preset(depth=6, hidden=528, limit=10_000_000),
    "small": Preset(depth=12, hidden=528, limit=15_700_000),
    "large": Preset(depth=12, hidden=1056, limit=67_000_000),
}


@dataclass(frozen=True)
class NluSpace:
    """Encoders of 6 or 12 layers, each one of twelve blocks: BERT or MobileBERT, with one of six FFN widths.

    Networks of one seed share their weights: a block at a place has the same in all of them (see `networks.nlu.stack`).
    """

    variant: str = "small"
    losses: tuple[str, ...] = ("mlm", "electra")
    text: str = "bert"

    def __post_init__(self) -> None:
        if self.variant not in PRESETS:
            raise BadInput(f"variant must be one of {', '.join(PRESETS)}, got {self.variant!r}; take one of these.")

    @property
    def of(self) -> Preset:
        return PRESETS[self.variant]

    @property
    def name(self) -> str:
        return f"nlu-{self.variant}"

    @property
    def batch(self) -> tuple[int, int]:
        """More tokens than a hidden state is wide: with fewer it is they who cap the number of components."""
        return 2 * self.of.hidden // TOKENS, TOKENS

    @property
    def limit(self) -> int:
        """Parameters a found design may have, if nobody says otherwise; the space itself holds larger ones too."""
        return self.of.limit

    @property
    def blocks(self) -> tuple[str, ...]:
        """What a layer may be, the one with fewest parameters first."""
        return tuple(f"{block}-{units}" for block in BLOCKS for units in self.of.units)

    @property
    def choices(self) -> Mapping[str, Sequence[str]]:
        words = self.blocks
        return {f"block.{place}": words for place in range(self.of.depth)}

    def check(self, config: Config) -> None:
        choices = self.choices
        for name in sorted(set(config) ^ set(choices)):
            lack = "lacks" if name in choices else "has no"
            raise BadInput(f"a config of {self.name} {lack} {name!r}; it has block.0 to block.{self.of.depth - 1}.")
        for name, values in choices.items():
            if config[name] not in values:
                words = ", ".join(values)
                raise BadInput(
                    f"{name} must be one of {words} in {self.name}, got {config[name]!r}; take one of these."
                )

    def canonical(self, config: Config) -> Config:
        """All configs are different networks."""
        return {name: config[name] for name in self.choices}

    def sample(self, rng: np.random.Generator) -> Config:
        """Every layer by itself, each of its blocks with the same chance."""
        return sample(self.choices, rng)

    def traits(self, config: Config) -> Config:
        """How many layers have each block, and the mean width of the FFNs."""
        plans = self.plans(config)
        blocks = [plan.block for plan in plans]
        mean = round(sum(plan.units for plan in plans) / len(plans))
        return {**{f"{block} blocks": blocks.count(block) for block in BLOCKS}, "FFN units, mean": mean}

    def size(self) -> dict[str, int]:
        designs = len(self.blocks) ** self.of.depth
        return {"raw": designs, "distinct": designs}

    def plan(self, config: Config, **given: Any) -> NluConfig:
        """The Hugging Face config of a design; `given` are more of its fields."""
        return NluConfig(self.plans(config), hidden_size=self.of.hidden, **given)

    def plans(self, config: Config) -> list[BlockPlan]:
        """What its layers are."""
        self.check(config)
        return [BlockPlan.read(config[name]) for name in self.choices]

    def counts(self, config: Config) -> Counts:
        return counted(frame(self.of.hidden), self.plans(config))

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> NluNetwork:
        """Its weights follow from the seed of the generator, which is left as it is."""
        return untrained(self.plan(config, **self.given(vocabulary, loss)), generator=generator)

    def supernet(
        self, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> NluSupernet:
        """All designs in one network (see `networks.nlu.supernet`), untrained each is `network` of the same seed."""
        sizes = {"hidden_size": self.of.hidden, **self.given(vocabulary, loss)}
        return untrained_supernet(NluSupernetConfig(list(self.choices.values()), **sizes), generator=generator)

    def given(self, vocabulary: int | None, loss: str | None) -> dict[str, Any]:
        """Fields of a plan that say what a network is built for."""
        head = loss or self.losses[0]
        if head not in self.losses:
            raise BadInput(f"loss must be one of {', '.join(self.losses)} here, got {head!r}; take one of these.")
        return {"loss": head} | ({} if vocabulary is None else {"vocab_size": vocabulary})

    def build(self, config: Config) -> NluNetwork:
        """With its whole vocabulary, of seed 0."""
        return self.network(config, generator=torch.Generator().manual_seed(0))


@cache
def frame(hidden: int) -> NluConfig:
    """Everything but the layers; making a config takes ten times as long as counting a design."""
    return NluConfig(hidden_size=hidden)
