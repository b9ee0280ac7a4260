"""The four spaces of sub-networks (Klein et al. 2024, Section 3.3), each as data."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archwright.search import Bits, Config
from archwright.subnet.keep import Anatomy, Keep, LayerKeep, count, positions, simplest

Masks = Callable[["SubnetSpace", Config], Keep]


@dataclass(frozen=True)
class SubnetSpace:
    """Sub-networks of one super-network; `build` gives what a sub-network keeps, layer by layer."""

    name: str
    anatomy: Anatomy
    choices: Mapping[str, Sequence[int] | Bits]
    masks: Masks
    layer_order: tuple[int, ...]
    """Layers of the super-network, the one to keep longest first."""

    def build(self, config: Config) -> Keep:
        return self.masks(self, config)

    def canonical(self, config: Config) -> Config:
        """All configs of the network without any layer are one; otherwise a config is its own network."""
        if any(count(p.heads) or count(p.units) for p in self.build(config)):
            return config
        return {n: c.pack(np.zeros(c.length, bool)) if isinstance(c, Bits) else 0 for n, c in self.choices.items()}


def small_masks(space: SubnetSpace, config: Config) -> Keep:
    kept = set(space.layer_order[: config["layers"]])
    same, gone = LayerKeep(config["heads"], config["units"]), LayerKeep(0, 0)
    return tuple(same if layer in kept else gone for layer in range(space.anatomy.layers))


def layer_masks(space: SubnetSpace, config: Config) -> Keep:
    of = space.anatomy
    on = Bits(of.layers).unpack(config["layers"])
    return tuple(LayerKeep(of.heads, of.units) if keep else LayerKeep(0, 0) for keep in on)


def medium_masks(space: SubnetSpace, config: Config) -> Keep:
    layers = range(space.anatomy.layers)
    return tuple(LayerKeep(config[f"heads{layer}"], config[f"units{layer}"]) for layer in layers)


def large_masks(space: SubnetSpace, config: Config) -> Keep:
    of = space.anatomy
    bits = Bits(of.layers * (of.heads + of.units)).unpack(config["bits"]).reshape(of.layers, -1)
    return tuple(
        LayerKeep(
            simplest(np.flatnonzero(row[: of.heads]).tolist()), simplest(np.flatnonzero(row[of.heads :]).tolist())
        )
        for row in bits
    )


def layer_config(of: Anatomy, keep: Keep) -> Config:
    """The config of LAYER whose sub-network has the layers that `keep` has anything of."""
    return {"layers": Bits(of.layers).pack(np.array([bool(count(p.heads) or count(p.units)) for p in keep]))}


def large_config(of: Anatomy, keep: Keep) -> Config:
    """The config of LARGE that keeps exactly this."""
    bits = np.zeros((of.layers, of.heads + of.units), dtype=bool)
    for row, part in zip(bits, keep, strict=True):
        row[list(positions(part.heads))] = True
        row[[of.heads + unit for unit in positions(part.units)]] = True
    return {"bits": Bits(bits.size).pack(bits.reshape(-1))}


def small(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """Three numbers: layers, and heads and units that all of them share."""
    return {"layers": range(of.layers + 1), "heads": range(of.heads + 1), "units": range(of.units + 1)}


def layer(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """One switch per layer."""
    return {"layers": Bits(of.layers)}


def medium(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """Heads and units of every layer."""
    choices: dict[str, Sequence[int] | Bits] = {}
    for index in range(of.layers):
        choices |= {f"heads{index}": range(of.heads + 1), f"units{index}": range(of.units + 1)}
    return choices


def large(of: Anatomy) -> dict[str, Sequence[int] | Bits]:
    """One switch per head and per unit."""
    return {"bits": Bits(of.layers * (of.heads + of.units))}


@dataclass(frozen=True)
class Kind:
    """A space before it is known of which super-network."""

    choices: Callable[[Anatomy], dict[str, Sequence[int] | Bits]]
    masks: Masks

    @property
    def description(self) -> str:
        return (self.choices.__doc__ or "").strip()


SPACES: dict[str, Kind] = {
    "small": Kind(small, small_masks),
    "layer": Kind(layer, layer_masks),
    "medium": Kind(medium, medium_masks),
    "large": Kind(large, large_masks),
}


def subnet_space(name: str, of: Anatomy, layer_order: Sequence[int] | None = None) -> SubnetSpace:
    """The named space over a super-network of this anatomy; without an order the first layers are kept longest."""
    kind = SPACES[name]
    return SubnetSpace(name, of, kind.choices(of), kind.masks, tuple(layer_order or range(of.layers)))
