"""GPT-2 architectures of LiteTransformerSearch in two domains: the grid to search in, and what was trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from archwright.errors import BadInput
from archwright.networks.lts_gpt2 import LtsGpt2Config, LtsGpt2ForCausalLM, build_lts_gpt2, meta_network
from archwright.networks.roles import Counts, LayerSize
from archwright.search import Config
from archwright.search.choices import sample
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary, repeat_layers

TIME = 64
"""Tokens of a row for which FLOPs are counted."""
LONGEST_INNER = 65536
WHOLE = ("n_layer", "d_model", "d_embed", "div_val")
"""Choices of the whole network."""


@dataclass(frozen=True)
class Domain:
    """Which values a design may have."""

    n_layer: Sequence[int]
    d_model: Sequence[int]
    d_inner: Sequence[int]
    widening: int
    """Every d_inner is at least so many times d_model."""
    any_inner: bool
    """Whether designs with a d_inner beside the sequence are accepted too."""
    n_head: Sequence[int] = (2, 4, 8)
    d_embed: Sequence[int] = (128, 256, 512)
    div_val: Sequence[int] = (1, 2, 4)

    def inners(self, d_model: int) -> list[int]:
        """Values of d_inner at this width."""
        return [inner for inner in self.d_inner if inner >= self.widening * d_model]


DOMAINS: dict[str, Domain] = {
    "grid": Domain(range(2, 17), range(128, 1025, 64), range(256, 4097, 64), widening=2, any_inner=False),
    "benchmark": Domain(range(2, 17), (64, 128, 256, 512), range(512, 2049), widening=0, any_inner=True),
}
"""Table 8 of LPZero; and the trained architectures, whose d_inner is any integer, at times below 2 d_model."""


@dataclass(frozen=True)
class LtsGpt2Space(ArchitectureSpace):
    """Depth, width, embedding size, embedding factor k (`div_val`), and heads and FFN width of each layer.

    `choices` are independent of each other, the rule d_inner >= 2 d_model of the grid is not: `canonical` lifts a
    d_inner below it to the bound (as the paper words it), so that any sampler may draw from `choices`. Such draws are
    heaped on the bound: at width 1024 a layer has it with 29/61 chance. `sample` draws d_inner evenly above the bound.
    """

    variant: str = "grid"
    words: int = 50264
    """Of the vocabulary that a benchmark's networks were trained with."""
    cutoffs: tuple[int, ...] = (19997, 39997, 199997)
    """Where the clusters of the adaptive softmax end; those beyond the vocabulary make none."""
    positions: int = 192

    name = "lts-gpt2"
    text = "gpt2"
    losses = ("lm",)
    variants = tuple(DOMAINS)
    classes = (LtsGpt2ForCausalLM,)

    @property
    def domain(self) -> Domain:
        return DOMAINS[self.variant]

    @property
    def choices(self) -> Mapping[str, Sequence[int]]:
        domain, layers = self.domain, range(self.domain.n_layer[-1])
        whole = {name: getattr(domain, name) for name in WHOLE}
        heads = {f"n_head{layer}": domain.n_head for layer in layers}
        return whole | heads | {f"d_inner{layer}": domain.d_inner for layer in layers}

    def sample(self, rng: np.random.Generator) -> Config:
        """A canonical config: every choice is even among the values that it may have at the width drawn before."""
        drawn = sample(self.choices, rng)
        inners = self.domain.inners(drawn["d_model"])
        return self.canonical(drawn | sample({f"d_inner{layer}": inners for layer in range(drawn["n_layer"])}, rng))

    def canonical(self, config: Config) -> Config:
        """Layers beyond the depth have the first value of each choice, d_inner is at least what the domain wants."""
        least, kept = self.domain.widening * config["d_model"], set(WHOLE)
        heads, inners = layers_of(config)
        used = {f"n_head{layer}": value for layer, value in enumerate(heads)}
        used |= {f"d_inner{layer}": max(value, least) for layer, value in enumerate(inners)}
        return {name: config[name] if name in kept else used.get(name, c[0]) for name, c in self.choices.items()}

    def check(self, config: Config) -> None:
        unknown = sorted(set(config) - set(self.choices))
        if unknown:
            raise BadInput(f"a GPT-2 design has no {', '.join(unknown)}; its choices are {', '.join(self.choices)}.")
        for name in WHOLE:
            self.check_value(config, name)
        for layer in range(config["n_layer"]):
            self.check_value(config, f"n_head{layer}")
            self.check_inner(config, f"d_inner{layer}")

    def check_value(self, config: Config, name: str) -> None:
        value, values = integer(config, name), self.choices[name]
        if value not in values:
            words = ", ".join(map(str, values))
            if isinstance(values, range):
                words = f"{values[0]} to {values[-1]}" + (f" in steps of {values.step}" if values.step > 1 else "")
            raise BadInput(f"{name} must be one of {words}, got {value}.")

    def check_inner(self, config: Config, name: str) -> None:
        value, least = integer(config, name), max(1, self.domain.widening * config["d_model"])
        if not least <= value <= LONGEST_INNER:
            raise BadInput(f"{name} must be {least} to {LONGEST_INNER} at d_model {config['d_model']}, got {value}.")
        if not self.domain.any_inner:
            self.check_value(config, name)

    def plan(self, config: Config, n_token: int | None = None) -> LtsGpt2Config:
        design = self.canonical(config)
        heads, inners = layers_of(design)
        whole: dict[str, Any] = {name: design[name] for name in ("d_model", "d_embed", "div_val")}
        whole |= {"n_token": self.words if n_token is None else n_token, "cutoffs": list(self.cutoffs)}
        return LtsGpt2Config(n_head=heads, d_inner=inners, n_positions=self.positions, **whole)

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> LtsGpt2ForCausalLM:
        """With `vocabulary` tokens: cutoffs beyond them make no clusters, so below 19,997 all are in the first one.

        Then k has no say, and d_embed speaks through the first projection alone.
        """
        self.check_loss(loss)
        return build_lts_gpt2(self.plan(config, vocabulary), generator)

    def traits(self, config: Config) -> Config:
        """What all layers share, and means of what each has of its own."""
        heads, inners = layers_of(config)
        ratio = sum(inners) / len(inners) / config["d_model"]
        whole = {name: config[name] for name in WHOLE}
        return {**whole, "heads, mean": round(sum(heads) / len(heads)), "d_inner / d_model, mean": round(ratio)}

    def layers(self, config: Config) -> list[LayerSummary]:
        heads, inners = layers_of(self.canonical(config))
        return [
            LayerSummary(kind=f"{head} heads", width=inner, label=f"{head} heads, {inner}")
            for head, inner in zip(heads, inners, strict=True)
        ]

    def size(self) -> dict[str, int]:
        """Raw: all of `choices`. Distinct: canonical ones, all different networks. LPZero's "more than 10^54" is the
        count of designs with a width per layer, which no residual network has."""
        domain = self.domain
        kinds = [len(domain.n_head) * len(domain.inners(width)) for width in domain.d_model]  # of a layer, by width
        whole = len(domain.d_embed) * len(domain.div_val)
        return {
            "raw": prod(map(len, self.choices.values())),
            "distinct": whole * sum(kind**depth for kind in kinds for depth in domain.n_layer),
            "if each layer had its own d_model": whole * sum(sum(kinds) ** depth for depth in domain.n_layer),
        }

    def plan_counts(self, plan: LtsGpt2Config) -> Counts:
        """FLOPs per token with all 64 tokens as keys: linears, then scores and their sum over values."""
        sizes, width = meta_network(plan).sizes(), plan.d_model
        linears = sum(4 * width * width + 2 * width * inner for inner in plan.d_inner)
        return Counts(
            parameters=sizes["total"],
            nonembedding=sizes["nonembedding"],
            attention=sizes["Attn"],
            ffn=sizes["FFN"],
            flops=2 * (linears + plan.n_layer * 2 * TIME * width),
            depth=plan.n_layer,
            width=width,
            layers=tuple(
                LayerSize(heads, mixing=4 * width * width, ffn=2 * width * inner)
                for heads, inner in zip(plan.n_head, plan.d_inner, strict=True)
            ),
        )

    def plan_network(self, plan: LtsGpt2Config, *, generator: torch.Generator) -> LtsGpt2ForCausalLM:
        return build_lts_gpt2(plan, generator)

    def scaled_fields(self, plan: LtsGpt2Config, factor: int) -> dict[str, Any]:
        return {
            "d_model": factor * plan.d_model,
            "d_inner": repeat_layers([factor * units for units in plan.d_inner], factor),
            "n_head": repeat_layers(plan.n_head, factor),
            "n_layer": factor * plan.n_layer,
        }


LTS_GPT2 = LtsGpt2Space()


def from_lists(model: Mapping[str, object]) -> Config:
    """A config from one of a published file, where `n_head` and `d_inner` are lists; raises KeyError or TypeError."""
    config: Config = {name: model[name] for name in WHOLE}
    for name in ("n_head", "d_inner"):
        values = model[name]
        if not isinstance(values, list) or len(values) != config["n_layer"]:
            raise TypeError(f"{name} must be a list with one entry for each of {config['n_layer']} layers")
        config |= {f"{name}{layer}": value for layer, value in enumerate(values)}
    return config


def layers_of(config: Config) -> tuple[list[int], list[int]]:
    """Heads and d_inner of the layers that are there."""
    layers = range(config["n_layer"])
    return [config[f"n_head{layer}"] for layer in layers], [config[f"d_inner{layer}"] for layer in layers]


def integer(config: Config, name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"{name} must be an integer, got {value!r}; write it as in a config that `score` prints.")
    return value
