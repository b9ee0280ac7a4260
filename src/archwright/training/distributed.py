"""Several processes that train one network: their means are those of one process with all their rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

BUCKET = 2**23
"""Numbers of gradients that are averaged in one message."""

Targets = Callable[[Any], float]
"""How many targets of one kind a batch has, or what they weigh together."""


class ProcessGroup:
    """The processes of one training and this one's rank; alone unless `join_process_group` says otherwise.

    Messages go through accelerate. Its `prepare`, which wraps the network in DistributedDataParallel, is not used: a
    step may train several sub-networks, each with gradients in other parameters, means are over the targets of all
    processes instead of over processes, and two processes must give the gradients of one with twice the rows.
    """

    def __init__(self, processes: int = 1, rank: int = 0, device: torch.device | None = None):
        self.processes, self.rank, self.device = processes, rank, device or torch.device("cpu")
        self._batches: Sequence[Any] = ()
        self._counts: dict[Targets, torch.Tensor] = {}

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and shows progress."""
        return self.rank == 0

    @contextmanager
    def step(self, batches: Sequence[Any]) -> Iterator[None]:
        """Inside, `count` is over all of these batches, which one optimizer step of this process learns from."""
        self._batches, self._counts = batches, {}
        try:
            yield
        finally:
            self._batches, self._counts = (), {}

    def count(self, here: torch.Tensor, targets: Targets) -> torch.Tensor:
        """What to divide a sum over the targets `here` by, so that the step's gradient is a mean over all targets.

        `targets` counts the same targets in any batch. Every process must ask for the same counts in the same order.
        """
        if self.processes == 1 and len(self._batches) < 2:
            return here
        if targets not in self._counts:
            own = sum(targets(batch) for batch in self._batches) if len(self._batches) > 1 else here
            total = torch.as_tensor(own, dtype=torch.float32, device=self.device)
            self._counts[targets] = self.sum(total) / self.processes  # gradients are averaged over processes
        return self._counts[targets].to(here.device)

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over all processes."""
        if self.processes == 1:
            return tensor
        from accelerate.utils import reduce

        total: torch.Tensor = reduce(tensor, "sum")
        return total

    def gather(self, values: dict[str, Any]) -> list[dict[str, Any]]:
        """What every process has given, by rank."""
        if self.processes == 1:
            return [values]
        from accelerate.utils import gather_object

        return list(gather_object([values]))

    def share(self, tensors: Iterable[torch.Tensor]) -> None:
        """Everyone has what the first process has in these."""
        if self.processes > 1:
            from accelerate.utils import broadcast

            broadcast(list(tensors))

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.processes > 1:
            from accelerate import PartialState

            PartialState().wait_for_everyone()

    @torch.no_grad()
    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Every gradient becomes its mean over processes; one that only others have counts as zero here."""
        if self.processes == 1:
            return
        every = list(parameters)
        has_gradient = torch.tensor([p.grad is not None for p in every], dtype=torch.float32, device=self.device)
        trained = [p for p, count in zip(every, self.sum(has_gradient).tolist(), strict=True) if count]
        for parameter in trained:
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for bucket in buckets([p.grad for p in trained if p.grad is not None]):
            flat = self.sum(torch.cat([gradient.flatten() for gradient in bucket]))
            parts = (flat / self.processes).split([gradient.numel() for gradient in bucket])
            torch._foreach_copy_(bucket, [part.view_as(old) for part, old in zip(parts, bucket, strict=True)])


def buckets(tensors: Iterable[torch.Tensor]) -> Iterator[list[torch.Tensor]]:
    """Neighbours of one dtype, about `BUCKET` numbers together."""
    bucket: list[torch.Tensor] = []
    for tensor in tensors:
        if bucket and (
            sum(map(torch.Tensor.numel, bucket)) + tensor.numel() > BUCKET or tensor.dtype != bucket[0].dtype
        ):
            yield bucket
            bucket = []
        bucket.append(tensor)
    if bucket:
        yield bucket


SINGLE_PROCESS = ProcessGroup()


def join_process_group(*, cpu: bool = False) -> ProcessGroup:
    """This process's place among those that torchrun or `accelerate launch` has started; alone if nothing did.

    accelerate decides on the device: its own GPU for every process where there are any and `cpu` is not asked for.
    """
    from accelerate import PartialState

    state = PartialState(cpu=cpu)
    device = torch.device("cpu") if state.device.type == "cpu" else state.device  # accelerate numbers CPUs too
    return ProcessGroup(state.num_processes, state.process_index, device)
