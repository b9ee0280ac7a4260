"""Decoders of open_lm (Gururangan et al. 2023) on a grid of width, depth and heads, all layers alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from archwright.errors import BadInput
from archwright.networks.roles import Counts
from archwright.networks.rotary_decoder import (
    RotaryDecoderConfig,
    RotaryDecoderForCausalLM,
    RotaryDecoderShape,
    build_rotary_decoder,
)
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary

MULTIPLE = 256
"""FFN widths are rounded up to multiples of it."""
WORDS = 50432


@dataclass(frozen=True)
class OpenLmSpace(ArchitectureSpace):
    """Width, depth and heads of a Llama-like decoder.

    A width that is no multiple of the heads is cut for attention: 488 wide with 12 heads has heads of 40.
    """

    variant: str = "grid"

    name = "open-lm"
    text = "gpt2"
    losses = ("lm",)
    variants = ("grid",)
    classes = (RotaryDecoderForCausalLM,)
    batch = (4, 32)
    """Fewer tokens than elsewhere, because these networks are large; `--batch-rows 8 --length 64` as for `gpt2`."""

    @property
    def choices(self) -> Mapping[str, Sequence[int]]:
        """The values of the published grid; `check` takes any others too."""
        return {
            "width": (96, 192, 288, 320, 488, 512, 576, 640, 768, 1024),
            "depth": (4, 8, 12, 16, 24),
            "heads": (4, 8, 12, 16),
        }

    def check(self, config: Config) -> None:
        for name in sorted({*config, *self.choices}):
            value = config.get(name)
            if name not in self.choices:
                raise BadInput(f"a design of {self.name} has no {name}; its choices are {', '.join(self.choices)}.")
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadInput(f"{name} must be a whole number from 1, got {value!r}; correct it.")
        if config["width"] // config["heads"] < 2:
            raise BadInput(f"width must be at least 2 x heads, got {config['width']} for {config['heads']} heads.")

    def plan(self, config: Config, **fields: Any) -> RotaryDecoderConfig:
        self.check(config)
        width, depth, heads = config["width"], config["depth"], config["heads"]
        return RotaryDecoderConfig(
            heads=[heads] * depth,
            head_sizes=[width // heads] * depth,
            inner=[ffn_width(width)] * depth,
            hidden_size=width,
            parallel=False,
            gated=True,
            bias=False,
            norm_bias=False,
            norm_queries=True,
            rotary_share=1.0,
            tie_word_embeddings=False,
            initial="scaled",
            max_position_embeddings=2048,
            **{"vocab_size": WORDS, **fields},
        )

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> RotaryDecoderForCausalLM:
        self.check_loss(loss)
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return build_rotary_decoder(self.plan(config, **rows), generator)

    def layers(self, config: Config) -> list[LayerSummary]:
        units = ffn_width(config["width"])
        layer = LayerSummary(kind=f"{config['heads']} heads", width=units, label=f"{config['heads']} heads, {units}")
        return [layer] * config["depth"]

    def plan_counts(self, plan: RotaryDecoderConfig) -> Counts:
        return RotaryDecoderShape.of(plan).counts()

    def plan_network(self, plan: RotaryDecoderConfig, *, generator: torch.Generator) -> RotaryDecoderForCausalLM:
        return build_rotary_decoder(plan, generator)


def ffn_width(width: int) -> int:
    """8/3 of the width, rounded up to a multiple of 256."""
    return MULTIPLE * -(-8 * width // (3 * MULTIPLE))
