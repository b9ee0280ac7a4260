"""The four spaces of sub-networks (Klein et al. 2024, Section 3.3), each as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archwright.search import Bits, Config
from archwright.subnet.spec import Anatomy, LayerSpec, SubnetSpec, as_part, count, positions

Masks = Callable[["SubnetSpace", Config], SubnetSpec]


@dataclass(frozen=True)
class SubnetSpace:
    """Sub-networks of one super-network; `build` gives what a sub-network keeps, layer by layer."""

    name: str
    anatomy: Anatomy
    choices: Mapping[str, Sequence[int] | Bits]
    masks: Masks
    layer_order: tuple[int, ...]
    """Layers of the super-network, the one to keep longest first."""

    def build(self, config: Config) -> SubnetSpec:
        return self.masks(self, config)

    def canonical(self, config: Config) -> Config:
        """All configs of the network without any layer are one; otherwise a config is its own network."""
        if any(count(p.heads) or count(p.units) for p in self.build(config)):
            return config
        return {n: c.pack(np.zeros(c.length, bool)) if isinstance(c, Bits) else 0 for n, c in self.choices.items()}


GONE = LayerSpec(0, 0)


def small_masks(space: SubnetSpace, config: Config) -> SubnetSpec:
    """A layer that has fewer heads or units than asked for keeps all of them."""
    kept = set(space.layer_order[: config["layers"]])
    return tuple(
        LayerSpec(min(config["heads"], of.heads), min(config["units"], of.units)) if layer in kept else GONE
        for layer, of in enumerate(space.anatomy.full_layers)
    )


def layer_masks(space: SubnetSpace, config: Config) -> SubnetSpec:
    on = Bits(space.anatomy.layers).unpack(config["layers"])
    return tuple(whole if keep else GONE for whole, keep in zip(space.anatomy.full, on, strict=True))


def medium_masks(space: SubnetSpace, config: Config) -> SubnetSpec:
    layers = range(space.anatomy.layers)
    return tuple(LayerSpec(config.get(f"heads{layer}", 0), config[f"units{layer}"]) for layer in layers)


def large_masks(space: SubnetSpace, config: Config) -> SubnetSpec:
    on = Bits(switches(space.anatomy)).unpack(config["bits"])
    rows = zip(space.anatomy.full_layers, np.split(on, ends(space.anatomy)[:-1]), strict=True)
    return tuple(
        LayerSpec(as_part(np.flatnonzero(row[: of.heads]).tolist()), as_part(np.flatnonzero(row[of.heads :]).tolist()))
        for of, row in rows
    )


def ends(of: Anatomy) -> list[int]:
    """Where the switches of each layer end, heads before units."""
    return np.cumsum([layer.heads + layer.units for layer in of.full_layers], dtype=int).tolist()


def switches(of: Anatomy) -> int:
    return sum(layer.heads + layer.units for layer in of.full_layers)


def layer_config(of: Anatomy, keep: SubnetSpec) -> Config:
    """The config of LAYER whose sub-network has the layers that `keep` has anything of."""
    return {"layers": Bits(of.layers).pack(np.array([bool(count(p.heads) or count(p.units)) for p in keep]))}


def large_config(of: Anatomy, keep: SubnetSpec) -> Config:
    """The config of LARGE that keeps exactly this."""
    bits = np.zeros(switches(of), dtype=bool)
    rows = np.split(bits, ends(of)[:-1])  # views
    for row, layer, part in zip(rows, of.full_layers, keep, strict=True):
        row[list(positions(part.heads))] = True
        row[[layer.heads + unit for unit in positions(part.units)]] = True
    return {"bits": Bits(bits.size).pack(bits)}


def small(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """Three numbers: layers, and heads and units that all of them share."""
    return {"layers": range(of.layers + 1), "heads": range(of.heads + 1), "units": range(of.units + 1)}


def layer(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """One switch per layer."""
    return {"layers": Bits(of.layers)}


def medium(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """Heads and units of every layer."""
    choices: dict[str, Sequence[int] | Bits] = {}
    for index, whole in enumerate(of.full_layers):
        heads = {f"heads{index}": range(whole.heads + 1)} if whole.heads else {}
        choices |= {**heads, f"units{index}": range(whole.units + 1)}
    return choices


def large(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """One switch per head and per unit."""
    return {"bits": Bits(switches(of))}


@dataclass(frozen=True)
class SubnetSpaceKind:
    """A space before it is known of which super-network."""

    choices: Callable[[Anatomy], dict[str, Sequence[int] | Bits]]
    masks: Masks

    @property
    def description(self) -> str:
        return (self.choices.__doc__ or "").strip()


SPACES: dict[str, SubnetSpaceKind] = {
    "small": SubnetSpaceKind(small, small_masks),
    "layer": SubnetSpaceKind(layer, layer_masks),
    "medium": SubnetSpaceKind(medium, medium_masks),
    "large": SubnetSpaceKind(large, large_masks),
}


def subnet_space(name: str, of: Anatomy, layer_order: Sequence[int] | None = None) -> SubnetSpace:
    """The named space over a super-network of this anatomy; without an order the first layers are kept longest."""
    kind = SPACES[name]
    return SubnetSpace(name, of, kind.choices(of), kind.masks, tuple(layer_order or range(of.layers)))
