"""Statistics of chains when they are wanted, for spaces whose chains are too many to table.

What was recorded of a network lies in a file as long as a search goes on; the numbers of a chain stay for good. They
are those of `Formula.measure`: the same code on the same tensors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from archwright.proxies.formulas.inputs import FORMULA_INPUTS, TensorReference, passes_needed, roles_needed
from archwright.proxies.formulas.operations import Chain
from archwright.proxies.formulas.simplification import canonical_chain
from archwright.proxies.formulas.statistics import ChainTree, layer_numbers
from archwright.proxies.formulas.statistics import Numbers as Known
from archwright.scoring.request import ScoreRequest, record_network
from archwright.store.files import whole_file

ROOM = 4 << 30
"""Bytes of tensors that may lie on disk; networks beyond are recorded again when they are needed."""
LAYOUT = "layout"

Numbers = dict[str, dict[Chain, list[float]]]
"""By input and chain: one per layer."""


@dataclass(frozen=True)
class Taking:
    """Chains on one network: work for a process."""

    at: ScoreRequest
    wanted: Mapping[str, tuple[Chain, ...]]
    """By input."""
    inputs: tuple[str, ...]
    """All that may be wanted of this network."""
    file: Path
    """Where its tensors lie, or will."""

    def __call__(self) -> Numbers:
        parts = stored(self.file) if self.file.exists() else self._recorded()
        known: dict[tuple[Chain, ...], Known] = {}
        return {
            name: numbers(parts[name], chains, known.setdefault(chains, {})) for name, chains in self.wanted.items()
        }

    def _recorded(self) -> "Parts":
        probe = record_network(self.at, passes_needed(self.inputs), roles_needed(self.inputs))
        found = {name: [FORMULA_INPUTS[name].find(probe, layer) for layer in probe.layers] for name in self.inputs}
        keep(found, self.file)
        return {name: [list(layer) for layer in layers] for name, layers in found.items()}


@dataclass(frozen=True)
class Stored:
    """A tensor in a file; stands for a `TensorReference`."""

    file: Any
    name: str

    @property
    def key(self) -> tuple[int, str]:
        return id(self.file), self.name

    def read(self) -> torch.Tensor:
        found: torch.Tensor = self.file.get_tensor(self.name)
        return found


Parts = dict[str, list[list[TensorReference | Stored]]]
"""By input and layer."""


def numbers(
    layers: list[list[TensorReference | Stored]], chains: tuple[Chain, ...], known: Known
) -> dict[Chain, list[float]]:
    """By chain, NaN where a layer does not have the role."""
    same = {chain: canonical_chain(chain) for chain in chains}
    tree = ChainTree(same.values())
    rows = [layer_numbers(parts, tree, known) for parts in layers]
    places = {chain: place for place, chain in enumerate(tree.ends)}
    return {chain: [float(row[places[same[chain]]]) for row in rows] for chain in chains}


def keep(found: Mapping[str, list[list[TensorReference]]], file: Path) -> None:
    """Writes the tensors, where there is room for them."""
    parts = {part.key: part for layers in found.values() for layer in layers for part in layer}
    names = {key: str(place) for place, key in enumerate(parts)}
    layout = {name: [[names[part.key] for part in layer] for layer in layers] for name, layers in found.items()}
    tensors = {names[key]: part.read().detach().contiguous().clone() for key, part in parts.items()}
    taken = sum(one.stat().st_size for one in file.parent.glob("*.safetensors")) if file.parent.exists() else ROOM
    if taken + sum(tensor.nbytes for tensor in tensors.values()) <= ROOM:
        with whole_file(file) as beside:
            save_file(tensors, beside, metadata={LAYOUT: json.dumps(layout)})


def stored(file: Path) -> Parts:
    opened = safe_open(file, framework="pt")
    layout = json.loads(opened.metadata()[LAYOUT])
    return {name: [[Stored(opened, one) for one in layer] for layer in layers] for name, layers in layout.items()}
