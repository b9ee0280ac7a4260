"""Calibration on a Ray cluster: importance batch by batch, and repairs candidate by candidate, at its nodes.

Networks and batches travel there; sums of scores and repaired networks come back, recordings of layers do not. A node
needs archwright alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import torch

from archwright.compression.context import RunContext
from archwright.data.batching import Batch
from archwright.logs import logger
from archwright.networks.pruned import PrunedNetwork
from archwright.parallel.pool import RayPool
from archwright.parallel.ray_cluster import SharedValue, connect, share_value
from archwright.subnet.importance import BatchWork
from archwright.subnet.pruning import REPAIRS
from archwright.subnet.pruning.streams import StreamRecording, record_streams
from archwright.subnet.spec import SubnetSpec

Wanted = Mapping[str, tuple[str, SubnetSpec]]
"""Candidate -> the network it is made of, and what it keeps of it."""
_recordings: dict[str, StreamRecording] = {}  # of this process of a node: that of the network it repaired last


def measures_on_ray(context: RunContext) -> bool:
    """Whether nodes measure: tasks take processors, so where this process has a GPU that is faster."""
    return context.config.search.ray is not None and context.task_data.device.type == "cpu"


class RayRunner:
    """Measures on batches at the nodes of the cluster; sums are in the order of the batches, as in one process."""

    def __init__(self, address: str, network: PrunedNetwork) -> None:
        self.address, self.network = address, network
        self._shared: SharedValue | None = None

    def total(
        self, work: BatchWork, model: PrunedNetwork, batches: Sequence[Any], advance: Callable[[], None]
    ) -> list[torch.Tensor]:
        assert model is self.network  # it was sent as it was
        with connect(self.address) as ray:
            self._shared = self._shared or share_value(ray, model)
            tasks = [BatchTask(self._shared, work, batch) for batch in batches]
            parts: dict[int, list[torch.Tensor]] = {}
            for index, part in RayPool(ray).map_unordered(tasks):
                parts[index] = part
                advance()
        totals = parts[0]
        for index in range(1, len(batches)):
            totals = [total + part for total, part in zip(totals, parts[index], strict=True)]
        return totals


@dataclass(frozen=True)
class BatchTask:
    """One batch, for a node."""

    network: SharedValue
    work: BatchWork
    batch: Any

    def __call__(self) -> list[torch.Tensor]:
        torch.set_num_threads(1)
        return self.work(self.network.load(), self.batch)


def repair_on_ray(
    context: RunContext,
    networks: Mapping[str, PrunedNetwork],
    wanted: Wanted,
    batches: list[Batch],
    deadline: float | None,
) -> Iterator[tuple[str, PrunedNetwork]]:
    """The candidates as they come back from the nodes; after the deadline no more are waited for."""
    if not wanted:
        return
    with connect(str(context.config.search.ray)) as ray:
        shared = {name: share_value(ray, networks[name]) for name in {name for name, _ in wanted.values()}}
        rows, repair = share_value(ray, batches), context.config.supernet.repair
        sources = list(wanted)
        tasks = [RepairTask(shared[name], rows, spec, repair) for name, spec in wanted.values()]
        for done, (index, network) in enumerate(RayPool(ray).map_unordered(tasks), 1):
            yield sources[index], network
            if deadline is not None and monotonic() > deadline and done < len(tasks):
                logger.info("no time for %d of the candidates", len(tasks) - done)
                return


@dataclass(frozen=True)
class RepairTask:
    """One candidate, for a node."""

    network: SharedValue
    batches: SharedValue
    spec: SubnetSpec
    repair: str

    def __call__(self) -> PrunedNetwork:
        torch.set_num_threads(1)
        network = self.network.load()
        if self.network.key not in _recordings:
            _recordings.clear()
            _recordings[self.network.key] = record_streams(network, self.batches.load())
        return REPAIRS[self.repair](network, self.spec, _recordings[self.network.key])
