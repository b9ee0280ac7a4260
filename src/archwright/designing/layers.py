"""What a design looks like from layer to layer, and what many designs have in common."""

from collections.abc import Callable, Sequence
from typing import Any

from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace
from archwright.spaces.cells import CellSpace
from archwright.spaces.flexibert import FlexiBertSpace
from archwright.spaces.lts_gpt2 import LtsGpt2Space, layers_of
from archwright.spaces.nlu import NluSpace

Layer = dict[str, Any]
"""`kind` (what is compared between designs), `width` (what is drawn) and `label`."""


def layer(kind: str, width: int, label: str) -> Layer:
    return {"kind": kind, "width": width, "label": label}


def nlu_layers(space: NluSpace, config: Config) -> list[Layer]:
    return [layer(plan.block, plan.units, f"{plan.block} {plan.units}") for plan in space.plan(config).plans]


def flexibert_layers(space: FlexiBertSpace, config: Config) -> list[Layer]:
    plans = space.plan(config).plans
    return [
        layer(plan.operation, plan.widths[0], f"{plan.operation} {plan.heads} heads, {'+'.join(map(str, plan.widths))}")
        for plan in plans
    ]


def gpt2_layers(space: LtsGpt2Space, config: Config) -> list[Layer]:
    heads, inners = layers_of(space.canonical(config))
    return [layer(f"{h} heads", inner, f"{h} heads, {inner}") for h, inner in zip(heads, inners, strict=True)]


def cell_layers(space: CellSpace, config: Config) -> list[Layer]:
    """Nodes of the one cell, in the order in which they are computed."""
    recipe = space.recipe(config)
    return [layer(str(node["op"]), len(node["input"]), f"{name}: {node['op']}") for name, node in recipe.items()]


PICTURES: dict[type, Callable[[Any, Config], list[Layer]]] = {
    NluSpace: nlu_layers,
    FlexiBertSpace: flexibert_layers,
    LtsGpt2Space: gpt2_layers,
    CellSpace: cell_layers,
}


def layers_of_design(space: ArchitectureSpace, config: Config) -> list[Layer]:
    return PICTURES[type(space)](space, config)


def shares(designs: Sequence[Sequence[Layer]]) -> list[dict[str, float]]:
    """Of each layer the share of each kind, among the designs that have the layer."""
    depth = max(map(len, designs))
    places = [[one[place]["kind"] for one in designs if place < len(one)] for place in range(depth)]
    kinds = sorted({kind for place in places for kind in place})
    return [{kind: place.count(kind) / len(place) for kind in kinds} for place in places]


def leanings(designs: Sequence[Sequence[Layer]]) -> dict[str, dict[str, float]]:
    """Of each kind: its share of all layers, of the lower half and of the upper half of them."""
    halves = {
        "all": [one for design in designs for one in design],
        "lower": [one for design in designs for one in design[: len(design) // 2]],
        "upper": [one for design in designs for one in design[(len(design) + 1) // 2 :]],
    }
    kinds = sorted({one["kind"] for one in halves["all"]})
    return {
        kind: {
            name: sum(one["kind"] in (kind,) for one in part) / len(part) if part else 0.0
            for name, part in halves.items()
        }
        for kind in kinds
    }
