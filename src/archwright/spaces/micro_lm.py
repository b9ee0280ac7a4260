"""Small FlexiBERT encoders whose operators really work, matched in size: the space of the benchmark `micro-lm`.

Every layer has an operator, heads and a size. The FFN takes what the operator leaves of a layer's weights, so that
layers of one size have as many weights whatever their operator, and networks with as many large layers as small ones
differ in operators and places alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from archwright.errors import BadInput
from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.mixers import MIXERS, DotProductAttention, Transform
from archwright.networks.flexibert.network import (
    FlexiBertFfn,
    FlexiBertLayer,
    FlexiBertModel,
    FlexiBertNetwork,
    build_flexibert,
    flexibert_counts,
)
from archwright.networks.roles import Counts
from archwright.search import Config, Value
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary

DEPTHS, WIDTHS = (2, 4), (48, 96)
SIZES = {"small": 6, "large": 10}
"""Weights of the linears of a layer, in squares of the network's width."""
LAYER: dict[str, tuple[Value, ...]] = {"operation": tuple(MIXERS), "heads": (2, 4), "size": tuple(SIZES)}
WORDS, TOKENS = 1024, 16
"""Words of the vocabulary, and positions."""
POSITIONS, FASTEST = 1.5, 1.2
"""Length of a position's vector beside that of a word, 1; and radians from one position to the next, at most."""
QUERIES, MIXED, FFN = 0.3, 2.0, 0.1
"""Factors of first weights. Attention begins nearly uniform, and what is mixed is as large as the residual; the FFN
begins with little. With factors of 1 attention needed about half as many steps more to leave the unigram plateau."""


@dataclass(frozen=True)
class MicroLmSpace(ArchitectureSpace):
    """Encoders of 2 or 4 layers, 48 or 96 wide; layers beyond the depth may be left out of a config."""

    variant: str = "matched"

    name = "micro-lm"
    text = "micro"
    losses = ("mlm",)
    variants = ("matched",)
    classes = (FlexiBertNetwork, FlexiBertModel)
    batch = (32, TOKENS)

    @property
    def choices(self) -> Mapping[str, Sequence[Value]]:
        layers = {f"{name}.{place}": values for place in range(DEPTHS[-1]) for name, values in LAYER.items()}
        return {"layers": DEPTHS, "hidden": WIDTHS, **layers}

    def check(self, config: Config) -> None:
        choices = self.choices
        if unknown := sorted(set(config) - set(choices)):
            raise BadInput(f"a design of {self.name} has no {unknown[0]!r}; it has {', '.join(list(choices)[:5])} ...")
        depth = config.get("layers")
        needed = ["layers", "hidden"]
        if type(depth) is int and depth in DEPTHS:
            needed += [f"{name}.{place}" for place in range(depth) for name in LAYER]
        for name in needed:
            value = config.get(name)
            if not any(type(value) is type(known) and value == known for known in choices[name]):
                words = ", ".join(map(str, choices[name]))
                raise BadInput(f"{name} must be one of {words} in {self.name}, got {value!r}; take one of these.")

    def canonical(self, config: Config) -> Config:
        """Layers beyond the depth are the first of everything."""
        depth = config["layers"]
        there = {name for place in range(depth) for name in layer_names(place)} | {"layers", "hidden"}
        return {name: config[name] if name in there else values[0] for name, values in self.choices.items()}

    def traits(self, config: Config) -> Config:
        return {name: config[name] for name in ("layers", "hidden")} | {
            name: config[name] for place in range(config["layers"]) for name in layer_names(place)
        }

    def size(self) -> dict[str, int]:
        """Distinct ones: layers that are not there do not count."""
        layers = math.prod(len(values) for values in LAYER.values())
        raw = len(DEPTHS) * len(WIDTHS) * layers ** DEPTHS[-1]
        return {"raw": raw, "distinct": len(WIDTHS) * sum(layers**depth for depth in DEPTHS)}

    def plan(self, config: Config, **given: Any) -> FlexiBertConfig:
        self.check(config)
        width = config["hidden"]
        layers = [
            layer_plan(*(config[name] for name in layer_names(place)), width=width) for place in range(config["layers"])
        ]
        fixed = {
            "vocab_size": WORDS, "max_position_embeddings": TOKENS, "type_vocab_size": 1, "dropout": 0.0,
            "layer_norm_eps": 1e-5, "initializer_range": width**-0.5, "loss": "mlm",
        }  # fmt: skip
        return FlexiBertConfig(layers, hidden_size=width, embedding_size=width, **{**fixed, **given})

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> FlexiBertNetwork:
        """As it was trained, but for the words' vectors, which are random here (see `experiments/micro_benchmark`)."""
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return self.plan_network(self.plan(config, loss=self.check_loss(loss), **rows), generator=generator)

    def layers(self, config: Config) -> list[LayerSummary]:
        return [
            LayerSummary(
                kind=layer.operation,
                width=layer.widths[0],
                label=f"{layer.operation} {layer.heads} heads, {layer.widths[0]}",
            )
            for layer in self.plan(config).plans
        ]

    def plan_counts(self, plan: FlexiBertConfig) -> Counts:
        return flexibert_counts(plan)

    def plan_network(self, plan: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
        network = build_flexibert(plan, generator=generator)
        scale_first_weights(network)
        return network


MICRO_LM = MicroLmSpace()


def layer_names(place: int) -> list[str]:
    return [f"{name}.{place}" for name in LAYER]


def layer_plan(operation: str, heads: int, size: str, *, width: int) -> LayerPlan:
    """The FFN has as many units as bring the weights of the layer nearest to those of its size."""
    left = SIZES[size] * width**2 - mixing_weights(operation, heads, width)
    return LayerPlan(operation, heads, (round(left / (2 * width)),))


def mixing_weights(operation: str, heads: int, width: int) -> int:
    """Of the linears and kernels that mix tokens, the output linear among them."""
    kind, _, detail = operation.partition("/")
    if kind == "DSC":
        kernel, half, convolving = int(detail), width // 2, heads // 2
        return 5 * width * half + half * convolving * kernel + width * kernel + width**2
    return {"SA/SDP": 4, "SA/WMA": 5, "LT/DFT": 2, "LT/DCT": 2}[operation] * width**2


@torch.no_grad()
def scale_first_weights(network: FlexiBertNetwork) -> None:
    """Positions as waves, which tell a neighbour at once, and branches as large as the residual they are added to."""
    embeddings, width = network.encoder.embeddings, network.config.hidden_size
    embeddings.segments.weight.zero_()
    embeddings.positions.weight.copy_(waves(len(embeddings.positions.weight), width))
    for module in network.modules():
        if isinstance(module, DotProductAttention):
            module.query.weight.mul_(QUERIES)
            module.key.weight.mul_(QUERIES)
        if isinstance(module, Transform):  # not normalised: a sum over all tokens and features of a head
            module.input.weight.div_(math.sqrt(TOKENS * width / module.heads))
        if isinstance(module, FlexiBertLayer):
            for linear in module.mixed.linears:
                linear.weight.mul_(MIXED)
        if isinstance(module, FlexiBertFfn):
            module.output.linear.weight.mul_(FFN)


def waves(positions: int, width: int) -> torch.Tensor:
    """Sines and cosines of evenly spread frequencies, positions x width."""
    half = width // 2
    turns = torch.arange(positions)[:, None] * (torch.arange(half) + 0.5)[None] * FASTEST / half
    return torch.cat([turns.sin(), turns.cos()], 1) * POSITIONS / math.sqrt(half)
