"""Statistics of untrained networks as work for a process: of all chains at once, or of some, and kept on disk.

A space whose chains are too many to take all (`LazyStatistics`) keeps what was recorded of a network in a file as long
as a search goes on. The numbers are those of `Formula.measure`: the same code on the same tensors.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from archwright.errors import Failed
from archwright.parallel.pool import WorkerPool
from archwright.progress import progress
from archwright.proxies.formulas.inputs import FORMULA_INPUTS, TensorReference, required_passes, required_roles
from archwright.proxies.formulas.operations import STATISTICS_REVISION, Chain
from archwright.proxies.formulas.reductions import Values
from archwright.proxies.formulas.simplification import canonical_chain
from archwright.proxies.formulas.statistics import ChainTree, Numbers, TensorSource, layer_numbers, statistics
from archwright.scoring.request import ScoreRequest, record_network, record_shapes
from archwright.scoring.scorer import cache_key
from archwright.store import digest, write_atomic
from archwright.store.files import atomic_file, sweep_folder

FOLDER = "statistics"
ROOM = 4 << 30
"""Bytes of tensors that may lie on disk; networks beyond are recorded again when they are needed."""
LAYOUT = "layout"

ChainNumbers = dict[str, dict[Chain, list[float]]]
"""By input and chain: one number per layer."""


def network_key(request: ScoreRequest) -> str:
    """Name of everything that the statistics of a network depend on: what is recorded of it, and revisions.

    Not the text of the code: a comment may change without costing hours of statistics.
    """
    return digest(cache_key(request), f"statistics {STATISTICS_REVISION}")


@dataclass(frozen=True)
class StatisticsRequest:
    """A network, and the inputs and chains whose numbers are needed of it; calling it takes them."""

    at: ScoreRequest
    inputs: tuple[str, ...]
    chains: tuple[Chain, ...]

    def __call__(self) -> Values:
        """Inputs x chains x layers; where all inputs are counts, no weight is drawn and nothing is run."""
        if all(FORMULA_INPUTS[name].scalar for name in self.inputs):
            probe = record_shapes(self.at)
        else:
            probe = record_network(self.at, required_passes(self.inputs), required_roles(self.inputs))
        return np.asarray(statistics(probe, self.chains, self.inputs), dtype=np.float64)

    @property
    def key(self) -> str:
        return digest(network_key(self.at), repr((self.inputs, self.chains)))


def take_statistics(requests: Sequence[StatisticsRequest], folder: Path, pool: WorkerPool) -> list[Values]:
    """The statistics of each; what lies in the folder is not taken again, the rest lies there as soon as it is."""
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    sweep_folder(folder / FOLDER)
    files = [folder / FOLDER / f"{request.key}.npy" for request in requests]
    undone = {file: request for file, request in zip(files, requests, strict=True) if not file.exists()}
    names = list(undone)
    with progress("statistics", len(undone), "networks") as bar:
        for index, values in pool.map_unordered(list(undone.values())):
            buffer = io.BytesIO()
            np.save(buffer, values, allow_pickle=False)
            write_atomic(names[index], buffer.getvalue())
            bar.advance()
    return [read_statistics(file, request) for file, request in zip(files, requests, strict=True)]


def read_statistics(file: Path, request: StatisticsRequest) -> Values:
    try:
        values = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Failed(f"{file} is damaged ({error}); delete it and run the same command again.") from error
    if values.ndim != 3 or values.shape[:2] != (len(request.inputs), len(request.chains)):
        raise Failed(f"{file} is damaged (shape {values.shape}); delete it and run the same command again.")
    return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True)
class LazyStatistics:
    """Some chains on one network: work for a process."""

    at: ScoreRequest
    chains: Mapping[str, tuple[Chain, ...]]
    """By input."""
    inputs: tuple[str, ...]
    """All that may be needed of this network in the search."""
    file: Path
    """Where its tensors lie, or will."""

    def __call__(self) -> ChainNumbers:
        tensors = open_tensors(self.file) if self.file.exists() else self._record()
        known: dict[tuple[Chain, ...], Numbers] = {}
        return {
            name: chain_numbers(tensors[name], chains, known.setdefault(chains, {}), summed=FORMULA_INPUTS[name].summed)
            for name, chains in self.chains.items()
        }

    def _record(self) -> "LayerTensors":
        probe = record_network(self.at, required_passes(self.inputs), required_roles(self.inputs))
        tensors = {name: [FORMULA_INPUTS[name].find(probe, layer) for layer in probe.layers] for name in self.inputs}
        store_tensors(tensors, self.file)
        return tensors


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file; stands for a `TensorReference`."""

    file: Any
    name: str

    @property
    def key(self) -> tuple[int, str]:
        return id(self.file), self.name

    def read(self) -> torch.Tensor:
        tensor: torch.Tensor = self.file.get_tensor(self.name)
        return tensor


LayerTensors = Mapping[str, Sequence[Sequence[TensorSource]]]
"""By input and layer."""


def chain_numbers(
    layers: Sequence[Sequence[TensorSource]], chains: tuple[Chain, ...], known: Numbers, *, summed: bool = False
) -> dict[Chain, list[float]]:
    """By chain, NaN where a layer does not have the role."""
    canonical = {chain: canonical_chain(chain) for chain in chains}
    tree = ChainTree(canonical.values())
    rows = [layer_numbers(tensors, tree, known, summed=summed) for tensors in layers]
    columns = {chain: index for index, chain in enumerate(tree.ends)}
    return {chain: [float(row[columns[canonical[chain]]]) for row in rows] for chain in chains}


def store_tensors(inputs: Mapping[str, list[list[TensorReference]]], file: Path) -> None:
    """Writes the tensors, where there is room for them."""
    references = {tensor.key: tensor for layers in inputs.values() for layer in layers for tensor in layer}
    names = {key: str(index) for index, key in enumerate(references)}
    layout = {name: [[names[tensor.key] for tensor in layer] for layer in layers] for name, layers in inputs.items()}
    tensors = {names[key]: tensor.read().detach().contiguous().clone() for key, tensor in references.items()}
    used = sum(other.stat().st_size for other in file.parent.glob("*.safetensors")) if file.parent.exists() else ROOM
    if used + sum(tensor.nbytes for tensor in tensors.values()) <= ROOM:
        with atomic_file(file) as beside:
            save_file(tensors, beside, metadata={LAYOUT: json.dumps(layout)})


def open_tensors(file: Path) -> LayerTensors:
    opened = safe_open(file, framework="pt")
    layout = json.loads(opened.metadata()[LAYOUT])
    return {name: [[StoredTensor(opened, at) for at in layer] for layer in layers] for name, layers in layout.items()}
