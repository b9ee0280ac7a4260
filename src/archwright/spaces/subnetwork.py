"""Spaces of sub-networks: the chain, and four of Klein et al. (2024, Section 3.3); also with a length of training."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from archwright.search import EPOCHS, Bits, Config, Listed
from archwright.subnet.chain import SMALLEST, Chain, count_costs
from archwright.subnet.spec import (
    Anatomy,
    LayerSpec,
    SubnetSpec,
    as_part,
    count,
    nonembedding_parameters,
    positions,
)

SubnetChoices = Mapping[str, Sequence[int] | Listed | Bits]
GONE = LayerSpec(0, 0)
SUPERNET = "supernet"
"""The source of every sub-network that is a part of the super-network, and so of all that samplers propose."""
DISTILLED = "distilled"
"""How the source of a candidate begins that was trained by itself towards the original's answers."""
TILTS = range(-2, 3)
LADDER_SHARES = tuple(range(10, 100, 10))
"""Percent of the cost at which a search along the chain begins."""


@dataclass(frozen=True)
class SubnetSpace(ABC):
    """Sub-networks of one super-network."""

    alike: ClassVar[bool] = False
    """Whether all layers that are left keep the same, as a layer that is run at every place must."""
    name: str
    anatomy: Anatomy
    layer_order: tuple[int, ...]
    """Layers of the super-network, the one to keep longest first."""

    @property
    @abstractmethod
    def choices(self) -> SubnetChoices: ...

    @abstractmethod
    def build(self, config: Config) -> SubnetSpec:
        """What a sub-network keeps, layer by layer."""

    def canonical(self, config: Config) -> Config:
        """All configs of the network without any layer are one; otherwise a config is its own network."""
        if any(count(p.heads) or count(p.units) for p in self.build(config)):
            return config
        return {n: c.pack(np.zeros(c.length, bool)) if isinstance(c, Bits) else 0 for n, c in self.choices.items()}


def is_distilled(config: Config) -> bool:
    """Whether a network of the chain was trained by itself."""
    return str(config.get("source", "")).startswith(DISTILLED)


class SmallSpace(SubnetSpace):
    """Three numbers: layers, and heads and units that all of them share."""

    alike = True

    @cached_property
    def choices(self) -> SubnetChoices:
        whole = self.anatomy
        return {"layers": range(whole.layers + 1), "heads": range(whole.heads + 1), "units": range(whole.units + 1)}

    def build(self, config: Config) -> SubnetSpec:
        """A layer that has fewer heads or units than the config says keeps all of them."""
        chosen = set(self.layer_order[: config["layers"]])
        return tuple(
            LayerSpec(min(config["heads"], whole.heads), min(config["units"], whole.units)) if layer in chosen else GONE
            for layer, whole in enumerate(self.anatomy.full_layers)
        )


class StockSpace(SubnetSpace):
    """What stock Hugging Face classes can say: how many layers, and units that all of them share; all heads stay."""

    alike = True

    @cached_property
    def choices(self) -> SubnetChoices:
        return {"layers": range(1, self.anatomy.layers + 1), "units": range(1, self.anatomy.units + 1)}

    def build(self, config: Config) -> SubnetSpec:
        """A layer that has fewer units than the config says keeps all of them."""
        chosen = set(self.layer_order[: config["layers"]])
        return tuple(
            LayerSpec(whole.heads, min(config["units"], whole.units)) if layer in chosen else GONE
            for layer, whole in enumerate(self.anatomy.full_layers)
        )


class LayerSpace(SubnetSpace):
    """One switch per layer."""

    alike = True

    @cached_property
    def choices(self) -> SubnetChoices:
        return {"layers": Bits(self.anatomy.layers)}

    def build(self, config: Config) -> SubnetSpec:
        on = Bits(self.anatomy.layers).unpack(config["layers"])
        return tuple(whole if keep else GONE for whole, keep in zip(self.anatomy.full, on, strict=True))

    def canonical(self, config: Config) -> Config:
        """Of one layer that is run at every place only the number of times counts."""
        if not self.anatomy.shared_layer:
            return super().canonical(config)
        switches = Bits(self.anatomy.layers)
        times = int(switches.unpack(config["layers"]).sum())
        return {"layers": switches.pack(np.arange(self.anatomy.layers) < times)}


class MediumSpace(SubnetSpace):
    """Heads and units of every layer."""

    @cached_property
    def choices(self) -> SubnetChoices:
        choices: dict[str, Sequence[int]] = {}
        for index, whole in enumerate(self.anatomy.full_layers):
            heads = {f"heads{index}": range(whole.heads + 1)} if whole.heads else {}
            choices |= {**heads, f"units{index}": range(whole.units + 1)}
        return choices

    def build(self, config: Config) -> SubnetSpec:
        layers = range(self.anatomy.layers)
        return tuple(LayerSpec(config.get(f"heads{layer}", 0), config[f"units{layer}"]) for layer in layers)


class LargeSpace(SubnetSpace):
    """One switch per head and per unit."""

    @cached_property
    def choices(self) -> SubnetChoices:
        return {"bits": Bits(switch_ends(self.anatomy)[-1])}

    def build(self, config: Config) -> SubnetSpec:
        ends = switch_ends(self.anatomy)
        rows = np.split(Bits(ends[-1]).unpack(config["bits"]), ends[:-1])
        return tuple(
            LayerSpec(
                as_part(np.flatnonzero(row[: whole.heads]).tolist()),
                as_part(np.flatnonzero(row[whole.heads :]).tolist()),
            )
            for whole, row in zip(self.anatomy.full_layers, rows, strict=True)
        )


@dataclass(frozen=True)
class ChainSpace(SubnetSpace):
    """A chain of nested sub-networks, another shape per layer, by Fisher information: depth, share of the cost, balance
    of heads and units; and tilts that move cost between sub-layers."""

    chain: Chain = field(kw_only=True)
    candidates: Mapping[str, SubnetSpec] = field(kw_only=True, default_factory=dict)
    """By source: networks with weights of their own."""

    @cached_property
    def choices(self) -> SubnetChoices:
        whole = self.anatomy
        return {
            "source": Listed((SUPERNET, *self.candidates)),
            "layers": range(1, whole.layers + 1),
            "share": range(round(100 * SMALLEST), 101),
            "balance": TILTS,
            **{f"heads{place}": TILTS for place, layer in enumerate(whole.full_layers) if layer.heads},
            **{f"units{place}": TILTS for place, layer in enumerate(whole.full_layers) if layer.units},
        }

    def build(self, config: Config) -> SubnetSpec:
        if config["source"] != SUPERNET:
            return self.candidates[config["source"]]
        tilts = [
            (config.get(f"heads{place}", 0), config.get(f"units{place}", 0)) for place in range(self.anatomy.layers)
        ]
        return self.chain.spec(config["share"] / 100, config["layers"], balance=config["balance"], tilts=tilts)

    def config(self, share: int, layers: int | None = None, *, source: str = SUPERNET) -> Config:
        """The config of a member of the chain, or of a candidate of about this share (in percent) and depth."""
        plain = dict.fromkeys(self.choices, 0)
        return {**plain, "source": source, "share": share, "layers": layers or self.anatomy.layers}

    def canonical(self, config: Config) -> Config:
        """Of a candidate what names it; otherwise without balance, tilts and room in the share that change nothing."""
        if config["source"] != SUPERNET:
            return self.config(0, source=config["source"])
        spec = self.build(config)
        if not any(count(part.heads) or count(part.units) for part in spec):
            return self.config(0)
        for simpler in (self.config(100, config["layers"]), self.config(config["share"], config["layers"])):
            if self.build(simpler) == spec:
                return simpler
        return config

    def starts(self, *, hurried: bool = False) -> list[Config]:
        """Where a search begins: candidates; at every tenth of the cost with all, two thirds and half of the layers.

        From the largest to the smallest, or, where time may end the search early, so that few of them are far apart.
        """
        layers = self.anatomy.layers
        configs = []
        whole = nonembedding_parameters(self.anatomy, self.anatomy.full)
        for source, spec in self.candidates.items():
            share = round(100 * nonembedding_parameters(self.anatomy, spec) / whole)
            depth = sum(any(map(count, part)) for part in spec)
            configs.append(self.config(max(share, round(100 * SMALLEST)), max(1, depth), source=source))
        for depth in dict.fromkeys((layers, max(1, round(layers * 2 / 3)), max(1, round(layers / 2)))):
            most = round(100 * depth / layers)
            shares = [share for share in LADDER_SHARES if share <= most]
            ladder = list(dict.fromkeys((*shares[::-1], most)))
            configs += [self.config(share, depth) for share in (halve(sorted(ladder)[::-1]) if hurried else ladder)]
        return configs


def halve(ladder: list[int]) -> list[int]:
    """The middle one first, then the middles of both halves, and so on."""
    parts, order = [ladder] if ladder else [], []
    while parts:
        order += [part[len(part) // 2] for part in parts]
        parts = [half for part in parts for half in (part[: len(part) // 2], part[len(part) // 2 + 1 :]) if half]
    return order


def uniform_chain(of: Anatomy, layer_order: Sequence[int]) -> Chain:
    """The chain as long as no Fisher information is known: heads count alike, and so do units."""
    heads, units = ([np.ones(getattr(layer, part)) for layer in of.full_layers] for part in ("heads", "units"))
    costs = count_costs(of, lambda spec: nonembedding_parameters(of, spec), fixed=True)
    return Chain(tuple(heads), tuple(units), tuple(layer_order), costs)


SPACES: dict[str, type[SubnetSpace]] = {
    "chain": ChainSpace,
    "small": SmallSpace,
    "stock": StockSpace,
    "layer": LayerSpace,
    "medium": MediumSpace,
    "large": LargeSpace,
}


def subnet_space(
    name: str,
    of: Anatomy,
    layer_order: Sequence[int] | None = None,
    *,
    chain: Chain | None = None,
    candidates: Mapping[str, SubnetSpec] | None = None,
) -> SubnetSpace:
    """The named space over a super-network of this anatomy; without an order the first layers are kept longest.

    Chain and candidates are for the space of that name.
    """
    order = tuple(layer_order or range(of.layers))
    if SPACES[name] is ChainSpace:
        return ChainSpace(name, of, order, chain=chain or uniform_chain(of, order), candidates=candidates or {})
    return SPACES[name](name, of, order)


def switch_ends(of: Anatomy) -> list[int]:
    """Where the switches of each layer end in a config of the large space, heads before units."""
    return np.cumsum([layer.heads + layer.units for layer in of.full_layers], dtype=int).tolist()


def layer_config(of: Anatomy, keep: SubnetSpec) -> Config:
    """The config of the layer space whose sub-network has the layers that `keep` has anything of."""
    return {"layers": Bits(of.layers).pack(np.array([bool(count(p.heads) or count(p.units)) for p in keep]))}


def large_config(of: Anatomy, keep: SubnetSpec) -> Config:
    """The config of the large space that keeps exactly this."""
    ends = switch_ends(of)
    bits = np.zeros(ends[-1], dtype=bool)
    rows = np.split(bits, ends[:-1])  # views
    for row, layer, part in zip(rows, of.full_layers, keep, strict=True):
        row[list(positions(part.heads))] = True
        row[[layer.heads + unit for unit in positions(part.units)]] = True
    return {"bits": Bits(bits.size).pack(bits)}


@dataclass(frozen=True)
class TrainedSpace:
    """The sub-networks of `space`, each with one of `epochs` (rising) as one more choice, as standard NAS searches."""

    space: SubnetSpace
    epochs: tuple[float, ...]

    @property
    def name(self) -> str:
        return self.space.name

    @property
    def anatomy(self) -> Anatomy:
        return self.space.anatomy

    @property
    def choices(self) -> Mapping[str, Sequence[float] | Sequence[int] | Listed | Bits]:
        return {**self.space.choices, EPOCHS: self.epochs}

    def build(self, config: Config) -> SubnetSpec:
        return self.space.build(config)

    def canonical(self, config: Config) -> Config:
        """The same network after another number of epochs is another one."""
        return {**self.space.canonical(config), EPOCHS: config[EPOCHS]}
