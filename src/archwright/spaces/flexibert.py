"""The FlexiBERT space (Serianni and Kalita 2023, Table 1), in the three readings its benchmark has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from archwright.errors import BadInput
from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.mixers import MIXERS
from archwright.networks.flexibert.network import FlexiBertModel, FlexiBertNetwork, build_flexibert, flexibert_counts
from archwright.networks.roles import Counts
from archwright.search import Config, Value, sample
from archwright.spaces.architectures import ArchitectureSpace, LayerSummary, most_heads, narrow, repeat_layers

DEPTHS, WIDTHS = (2, 4), (128, 256)
LAYER: dict[str, tuple[Value, ...]] = {
    "stack": (1, 3),
    "heads": (2, 4),
    "operation": tuple(MIXERS),
    "feed_forward": (512, 1024),
}
"""What is chosen for each layer; what decides whether a choice has an effect comes before it."""
SCORED_WIDTH, SCORED_FEED_FORWARD = 256, 1024
PLAIN = "SA/SDP"
BARE = ("LT/DFT", "LT/DCT")


class Variant:
    """The space as the benchmark's networks were trained.

    Their operators never took effect, and the first FFN linear is 4 x as wide as the layer.
    """

    losses: tuple[str, ...] = ("electra", "mlm")

    def width(self, chosen: int) -> int:
        return chosen

    def plan(self, layer: Config, width: int) -> LayerPlan:
        """One layer, of its choices and the width of the network."""
        return LayerPlan(PLAIN, layer["heads"], (4 * width, *[layer["feed_forward"]] * (layer["stack"] - 1)))

    def without_effect(self, layer: Config) -> Config:
        """The choices of a layer that change nothing there, with the value that stands for them all."""
        return {"operation": PLAIN} | ({"feed_forward": 512} if layer["stack"] < 2 else {})


class DescribedVariant(Variant):
    """As the paper describes them."""

    def plan(self, layer: Config, width: int) -> LayerPlan:
        return LayerPlan(layer["operation"], layer["heads"], (layer["feed_forward"],) * layer["stack"])

    def without_effect(self, layer: Config) -> Config:
        return {}


class PublishedVariant(Variant):
    """As the public script scored them: one width for all, bare transforms."""

    losses = ("published", "electra", "mlm")

    def width(self, chosen: int) -> int:
        return SCORED_WIDTH

    def plan(self, layer: Config, width: int) -> LayerPlan:
        widths = (SCORED_FEED_FORWARD,) * layer["stack"]
        return LayerPlan(layer["operation"], layer["heads"], widths, layer["operation"] in BARE)

    def without_effect(self, layer: Config) -> Config:
        return {"feed_forward": SCORED_FEED_FORWARD}


VARIANTS: dict[str, Variant] = {"trained": Variant(), "described": DescribedVariant(), "published": PublishedVariant()}


@dataclass(frozen=True)
class FlexiBertSpace(ArchitectureSpace):
    """Encoders of 2 or 4 layers, each with its own operator, heads and FFN stack."""

    variant: str = "trained"

    name = "flexibert"
    text = "bert"
    variants = tuple(VARIANTS)
    classes = (FlexiBertNetwork, FlexiBertModel)

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise BadInput(f"variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}; take one of these.")

    @property
    def losses(self) -> tuple[str, ...]:
        return VARIANTS[self.variant].losses

    @property
    def choices(self) -> Mapping[str, Sequence[Value]]:
        layers = {f"{name}.{place}": values for place in range(DEPTHS[-1]) for name, values in LAYER.items()}
        return {"layers": DEPTHS, "hidden": WIDTHS, **layers}

    def check(self, config: Config) -> None:
        """Layers beyond the depth may be left out."""
        choices = self.choices
        for name in config:
            if name not in choices:
                raise BadInput(f"a FlexiBERT config has no {name!r}; it has {', '.join(list(choices)[:6])} and so on.")
        for name in ("layers", "hidden"):
            check_value(config, name, choices[name])
        for name in (f"{key}.{place}" for place in range(config["layers"]) for key in LAYER):
            check_value(config, name, choices[name])

    def canonical(self, config: Config) -> Config:
        variant = VARIANTS[self.variant]
        smallest = {name: values[0] for name, values in LAYER.items()}
        found: Config = {"layers": config["layers"], "hidden": variant.width(config["hidden"])}
        for place in range(DEPTHS[-1]):
            layer = layer_choices(config, place) if place < config["layers"] else smallest
            layer = layer | variant.without_effect(layer)
            found |= {f"{name}.{place}": value for name, value in layer.items()}
        return found

    def sample(self, rng: np.random.Generator) -> Config:
        """Every choice by itself; layers beyond the depth are there and have no effect."""
        return sample(self.choices, rng)

    def traits(self, config: Config) -> Config:
        """The choices that have an effect: none of layers that are not there."""
        layers = (layer_choices(config, place) for place in range(config["layers"]))
        found: Config = {"layers": config["layers"], "hidden": VARIANTS[self.variant].width(config["hidden"])}
        for place, layer in enumerate(layers):
            idle = VARIANTS[self.variant].without_effect(layer)
            found |= {f"{name}.{place}": value for name, value in layer.items() if name not in idle}
        return found

    def size(self) -> dict[str, int]:
        """As the paper counts itself, 10,621,440, and how many of these are different networks."""
        variant = VARIANTS[self.variant]
        layers = [dict(zip(LAYER, values, strict=True)) for values in product(*LAYER.values())]
        different = {tuple((layer | variant.without_effect(layer)).items()) for layer in layers}
        widths = {variant.width(width) for width in WIDTHS}
        return {
            "raw": len(WIDTHS) * sum(len(layers) ** depth for depth in DEPTHS),
            "distinct": len(widths) * sum(len(different) ** depth for depth in DEPTHS),
        }

    def plan(self, config: Config, **given: Any) -> FlexiBertConfig:
        """The Hugging Face config of a design; `given` are more of its fields."""
        self.check(config)
        variant = VARIANTS[self.variant]
        width = variant.width(config["hidden"])
        layers = [variant.plan(layer_choices(config, place), width) for place in range(config["layers"])]
        return FlexiBertConfig(layers, hidden_size=width, **given)

    def network(
        self, config: Config, *, generator: torch.Generator, vocabulary: int | None = None, loss: str | None = None
    ) -> FlexiBertNetwork:
        rows = {} if vocabulary is None else {"vocab_size": vocabulary}
        return build_flexibert(self.plan(config, loss=self.check_loss(loss), **rows), generator=generator)

    def layers(self, config: Config) -> list[LayerSummary]:
        return [
            LayerSummary(
                kind=layer.operation,
                width=layer.widths[0],
                label=f"{layer.operation} {layer.heads} heads, {'+'.join(map(str, layer.widths))}",
            )
            for layer in self.plan(config).plans
        ]

    def plan_counts(self, plan: FlexiBertConfig) -> Counts:
        return flexibert_counts(plan)

    def plan_network(self, plan: FlexiBertConfig, *, generator: torch.Generator) -> FlexiBertNetwork:
        return build_flexibert(plan, generator=generator)

    def scaled_fields(self, plan: FlexiBertConfig, factor: int) -> dict[str, Any]:
        wider = [
            [name, heads, [factor * units for units in widths], *rest] for name, heads, widths, *rest in plan.layers
        ]
        return {"layers": repeat_layers(wider, factor), "hidden_size": factor * plan.hidden_size}

    def generator_fields(self, plan: FlexiBertConfig, size: float) -> dict[str, Any]:
        """Every operator can work with two heads: a convolution takes half of them."""
        width = narrow(plan.hidden_size, size)
        layers = [
            [name, most_heads(max(2, narrow(heads, size)), width), [narrow(units, size) for units in widths], *rest]
            for name, heads, widths, *rest in plan.layers
        ]
        return {"layers": layers, "hidden_size": width}


FLEXIBERT = FlexiBertSpace()


def layer_choices(config: Config, place: int) -> Config:
    return {name: config[f"{name}.{place}"] for name in LAYER}


def check_value(config: Config, name: str, values: Sequence[Value]) -> None:
    """Types count too: in Python True equals 1, and 2.0 equals 2."""
    words = ", ".join(map(str, values))
    if name not in config:
        raise BadInput(f"a FlexiBERT config of this depth needs {name!r}; add it with one of {words}.")
    if not any(type(config[name]) is type(value) and config[name] == value for value in values):
        raise BadInput(f"{name} must be one of {words} in FlexiBERT, got {config[name]!r}; take one of these.")
