"""GPT-2 architectures of LiteTransformerSearch in two domains: the grid to search in, and what was trained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from archwright.errors import BadInput
from archwright.networks.lts_gpt2 import LtsGpt2Config, LtsGpt2ForCausalLM, shape_of, untrained
from archwright.networks.roles import Counts
from archwright.search import Config
from archwright.search.choices import sample

TIME = 64
"""Tokens of a row for which FLOPs are counted."""
LONGEST_INNER = 65536


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
class LtsGpt2Space:
    """Depth, width, embedding size, embedding factor k (`div_val`), and heads and FFN width of each layer.

    `choices` are independent of each other, the rule d_inner >= 2 d_model of the grid is not: `canonical` lifts a
    d_inner below it to the bound (as the paper words it), so that any sampler may draw from `choices`. Such draws are
    heaped on the bound: at width 1024 a layer has it with 29/61 chance. `sample` draws d_inner evenly above the bound.
    """

    domain: str = "grid"
    name: str = "lts-gpt2"
    losses: tuple[str, ...] = ("lm",)
    text: str = "gpt2"
    batch: tuple[int, int] = (8, 64)

    @property
    def of(self) -> Domain:
        return DOMAINS[self.domain]

    @property
    def choices(self) -> Mapping[str, Sequence[int]]:
        of, layers = self.of, range(self.of.n_layer[-1])
        whole = {"n_layer": of.n_layer, "d_model": of.d_model, "d_embed": of.d_embed, "div_val": of.div_val}
        heads = {f"n_head{layer}": of.n_head for layer in layers}
        return whole | heads | {f"d_inner{layer}": of.d_inner for layer in layers}

    def sample(self, rng: np.random.Generator) -> Config:
        """A canonical config: every choice is even among the values that it may have at the width drawn before."""
        drawn = sample(self.choices, rng)
        inners = self.of.inners(drawn["d_model"])
        return self.canonical(drawn | sample({f"d_inner{layer}": inners for layer in range(drawn["n_layer"])}, rng))

    def canonical(self, config: Config) -> Config:
        """Layers beyond the depth have the first value of each choice, d_inner is at least what the domain wants."""
        least, kept = self.of.widening * config["d_model"], {"n_layer", "d_model", "d_embed", "div_val"}
        heads, inners = layers_of(config)
        used = {f"n_head{layer}": value for layer, value in enumerate(heads)}
        used |= {f"d_inner{layer}": max(value, least) for layer, value in enumerate(inners)}
        return {name: config[name] if name in kept else used.get(name, c[0]) for name, c in self.choices.items()}

    def check(self, config: Config) -> None:
        unknown = sorted(set(config) - set(self.choices))
        if unknown:
            raise BadInput(f"a GPT-2 design has no {', '.join(unknown)}; its choices are {', '.join(self.choices)}.")
        for name in ("n_layer", "d_model", "d_embed", "div_val"):
            self.check_value(config, name)
        for layer in range(config["n_layer"]):
            self.check_value(config, f"n_head{layer}")
            self.check_inner(config, f"d_inner{layer}")

    def check_value(self, config: Config, name: str) -> None:
        value = integer(config, name)
        if value not in self.choices[name]:
            raise BadInput(f"{name} must be one of {listed(self.choices[name])}, got {value}.")

    def check_inner(self, config: Config, name: str) -> None:
        value, least = integer(config, name), max(1, self.of.widening * config["d_model"])
        if not least <= value <= LONGEST_INNER:
            raise BadInput(f"{name} must be {least} to {LONGEST_INNER} at d_model {config['d_model']}, got {value}.")
        if not self.of.any_inner:
            self.check_value(config, name)

    def plan(self, config: Config, n_token: int | None = None) -> LtsGpt2Config:
        design = self.canonical(config)
        heads, inners = layers_of(design)
        whole: dict[str, Any] = {name: design[name] for name in ("d_model", "d_embed", "div_val")}
        if n_token is not None:
            whole["n_token"] = n_token
        return LtsGpt2Config(n_head=heads, d_inner=inners, **whole)

    def counts(self, config: Config) -> Counts:
        return counted(self.plan(config))

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> LtsGpt2ForCausalLM:
        """With `vocabulary` tokens: cutoffs beyond them make no clusters, so below 19,997 all are in the first one.

        Then k has no say, and d_embed speaks through the first projection alone.
        """
        if loss not in (None, *self.losses):
            raise BadInput(f"loss of GPT-2 designs must be one of {', '.join(self.losses)}, got {loss!r}.")
        return untrained(self.plan(config, vocabulary), generator)

    def build(self, config: Config) -> LtsGpt2ForCausalLM:
        """The network with its whole vocabulary, from seed 0."""
        return self.network(config, generator=torch.Generator().manual_seed(0))

    def traits(self, config: Config) -> Config:
        """What all layers share, and means of what each has of its own."""
        heads, inners = layers_of(config)
        ratio = sum(inners) / len(inners) / config["d_model"]
        whole = {name: config[name] for name in ("n_layer", "d_model", "d_embed", "div_val")}
        return {**whole, "heads, mean": round(sum(heads) / len(heads)), "d_inner / d_model, mean": round(ratio)}

    def size(self) -> dict[str, int]:
        """Raw: all of `choices`. Distinct: canonical ones, all different networks. LPZero's "more than 10^54" is the
        count of designs with a width per layer, which no residual network has."""
        of = self.of
        kinds = [len(of.n_head) * len(of.inners(width)) for width in of.d_model]  # of a layer, by width
        whole = len(of.d_embed) * len(of.div_val)
        return {
            "raw": prod(map(len, self.choices.values())),
            "distinct": whole * sum(kind**depth for kind in kinds for depth in of.n_layer),
            "if each layer had its own d_model": whole * sum(sum(kinds) ** depth for depth in of.n_layer),
        }


def from_lists(model: Mapping[str, object]) -> Config:
    """A config from one of a published file, where `n_head` and `d_inner` are lists; raises KeyError or TypeError."""
    config: Config = {name: model[name] for name in ("n_layer", "d_model", "d_embed", "div_val")}
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


def counted(design: LtsGpt2Config) -> Counts:
    sizes = shape_of(design).sizes()
    return Counts(
        parameters=sizes["total"],
        nonembedding=sizes["nonembedding"],
        attention=sizes["Attn"],
        ffn=sizes["FFN"],
        flops=flops(design),
        depth=design.n_layer,
        width=design.d_model,
    )


def flops(design: LtsGpt2Config) -> int:
    """Per token, with all 64 tokens as keys: linears, then scores and their sum over values."""
    width = design.d_model
    linears = sum(4 * width * width + 2 * width * inner for inner in design.d_inner)
    return 2 * (linears + design.n_layer * 2 * TIME * width)


def integer(config: Config, name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadInput(f"{name} must be an integer, got {value!r}; write it as in a config that `score` prints.")
    return value


def listed(values: Sequence[int]) -> str:
    if not isinstance(values, range):
        return ", ".join(map(str, values))
    return f"{values[0]} to {values[-1]}" + (f" in steps of {values.step}" if values.step > 1 else "")
