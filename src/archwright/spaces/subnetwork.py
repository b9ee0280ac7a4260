"""The four spaces of sub-networks (Klein et al. 2024, Section 3.3), also with a choice of how long to train."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archwright.search import EPOCHS, Bits, Config
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, as_part, count, positions

SubnetChoices = Mapping[str, Sequence[int] | Bits]
GONE = LayerSpec(0, 0)


@dataclass(frozen=True)
class SubnetSpace(ABC):
    """Sub-networks of one super-network."""

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


class SmallSpace(SubnetSpace):
    """Three numbers: layers, and heads and units that all of them share."""

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


class LayerSpace(SubnetSpace):
    """One switch per layer."""

    @cached_property
    def choices(self) -> SubnetChoices:
        return {"layers": Bits(self.anatomy.layers)}

    def build(self, config: Config) -> SubnetSpec:
        on = Bits(self.anatomy.layers).unpack(config["layers"])
        return tuple(whole if keep else GONE for whole, keep in zip(self.anatomy.full, on, strict=True))


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


SPACES: dict[str, type[SubnetSpace]] = {
    "small": SmallSpace,
    "layer": LayerSpace,
    "medium": MediumSpace,
    "large": LargeSpace,
}


def subnet_space(name: str, of: Anatomy, layer_order: Sequence[int] | None = None) -> SubnetSpace:
    """The named space over a super-network of this anatomy; without an order the first layers are kept longest."""
    return SPACES[name](name, of, tuple(layer_order or range(of.layers)))


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
    def choices(self) -> Mapping[str, Sequence[float] | Sequence[int] | Bits]:
        return {**self.space.choices, EPOCHS: self.epochs}

    def build(self, config: Config) -> SubnetSpec:
        return self.space.build(config)

    def canonical(self, config: Config) -> Config:
        """The same network after another number of epochs is another one."""
        return {**self.space.canonical(config), EPOCHS: config[EPOCHS]}
