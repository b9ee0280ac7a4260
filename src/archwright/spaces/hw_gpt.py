"""Decoders of HW-GPT-Bench (Sukthanker et al. 2024): heads and FFN width of every layer, in two sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
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

HEAD_SIZE = 64
"""Of every head, whatever the width."""
RATIOS = (2, 3, 4)
WORDS = 50254
WHOLE = ("embed", "layers", "bias")
"""Choices of the whole network."""


@dataclass(frozen=True)
class Scale:
    """Which values designs of one size may have."""

    embed: tuple[int, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]


SCALES = {
    "s": Scale((192, 384, 768), (10, 11, 12), (4, 8, 12)),
    "m": Scale((256, 512, 1024), (22, 23, 24), (8, 12, 16)),
}


def choices_of(scale: Scale) -> dict[str, Sequence[Any]]:
    whole: dict[str, Sequence[Any]] = {"embed": scale.embed, "layers": scale.layers, "bias": (False, True)}
    places = range(scale.layers[-1])
    return whole | {f"heads{place}": scale.heads for place in places} | {f"ratio{place}": RATIOS for place in places}


CHOICES = {name: choices_of(scale) for name, scale in SCALES.items()}


@dataclass(frozen=True)
class HwGptSpace(ArchitectureSpace):
    """Width, depth, whether linears have biases, and heads and FFN ratio of each layer."""

    variant: str = "s"

    name = "hw-gpt"
    text = "gpt2"
    losses = ("lm",)
    variants = tuple(SCALES)
    classes = (RotaryDecoderForCausalLM,)
    batch = (4, 32)
    """Fewer tokens than elsewhere, because these networks are large; `--batch-rows 8 --length 64` as for `gpt2`."""

    @property
    def choices(self) -> Mapping[str, Sequence[Any]]:
        return CHOICES[self.variant]

    def check(self, config: Config) -> None:
        """Layers beyond the depth may be left out."""
        choices = self.choices
        unknown = sorted(set(config) - set(choices))
        if unknown:
            raise BadInput(
                f"a design of {self.name} has no {', '.join(unknown)}; its choices are {', '.join(choices)}."
            )
        for name in WHOLE:
            check_value(config, name, choices[name])
        for place in range(config["layers"]):
            for name in (f"heads{place}", f"ratio{place}"):
                check_value(config, name, choices[name])

    def canonical(self, config: Config) -> Config:
        """Layers beyond the depth have the first value of each choice."""
        used = {f"{name}{place}" for name in ("heads", "ratio") for place in range(config["layers"])}
        return {name: config[name] if name in used.union(WHOLE) else values[0] for name, values in self.choices.items()}

    def plan(self, config: Config, **fields: Any) -> RotaryDecoderConfig:
        self.check(config)
        heads, ratios = layers_of(config)
        return RotaryDecoderConfig(
            heads=heads,
            head_sizes=[HEAD_SIZE] * len(heads),
            inner=[ratio * config["embed"] for ratio in ratios],
            hidden_size=config["embed"],
            bias=config["bias"],
            **{"vocab_size": WORDS, **fields},
        )

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> RotaryDecoderForCausalLM:
        self.check_loss(loss)
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return build_rotary_decoder(self.plan(config, **rows), generator)

    def traits(self, config: Config) -> Config:
        """What all layers share, and means of what each has of its own."""
        heads, ratios = layers_of(config)
        means = {"heads, mean": round(sum(heads) / len(heads)), "mlp_ratio, mean": round(sum(ratios) / len(ratios), 1)}
        return {name: config[name] for name in WHOLE} | means

    def layers(self, config: Config) -> list[LayerSummary]:
        return [
            LayerSummary(kind=f"{heads} heads", width=ratio * config["embed"], label=f"{heads} heads, x{ratio}")
            for heads, ratio in zip(*layers_of(config), strict=True)
        ]

    def size(self) -> dict[str, int]:
        """Raw: all of `choices`. Distinct: canonical ones."""
        scale = SCALES[self.variant]
        kinds = len(scale.heads) * len(RATIOS)
        return {
            "raw": prod(map(len, self.choices.values())),
            "distinct": 2 * len(scale.embed) * sum(kinds**depth for depth in scale.layers),
        }

    def counts(self, config: Config) -> Counts:
        """As `plan_counts`, without a Hugging Face config: tables have thousands of rows."""
        self.check(config)
        heads, ratios = layers_of(config)
        inner = tuple(ratio * config["embed"] for ratio in ratios)
        return RotaryDecoderShape(
            tuple(heads), (HEAD_SIZE,) * len(heads), inner, width=config["embed"], words=WORDS,
            gated=False, bias=config["bias"], norm_bias=True, tied=True,
        ).counts()  # fmt: skip

    def plan_counts(self, plan: RotaryDecoderConfig) -> Counts:
        return RotaryDecoderShape.of(plan).counts()

    def plan_network(self, plan: RotaryDecoderConfig, *, generator: torch.Generator) -> RotaryDecoderForCausalLM:
        return build_rotary_decoder(plan, generator)


def layers_of(config: Config) -> tuple[list[int], list[int]]:
    """Heads and ratios of the layers that are there."""
    places = range(config["layers"])
    return [config[f"heads{place}"] for place in places], [config[f"ratio{place}"] for place in places]


def check_value(config: Config, name: str, values: Sequence[Any]) -> None:
    """Types count too: in Python True equals 1."""
    if not any(type(config.get(name)) is type(value) and config[name] == value for value in values):
        raise BadInput(f"{name} must be one of {', '.join(map(str, values))}, got {config.get(name)!r}; correct it.")
