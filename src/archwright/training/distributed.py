"""Several processes that train one network: their means are those of one process with all their rows.

Gradients and counts travel as messages in which all take part at once, which must not be kept waiting for long. What
the first process decides (which phase comes next, how many steps it has) goes through the launcher's store: the others
ask for it now and then, asleep in between, for hours if need be.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

import torch
from torch import nn

from archwright.errors import BadInput, Failed, ToldElsewhere
from archwright.parallel.launcher import launched_processes
from archwright.subnet.importance import HERE, BatchWork

Value = TypeVar("Value")
JOINS = count()
"""Numbers the times that this process joined others: every process of a launch joins equally often."""
POLL_SECONDS = 0.02, 0.5
"""Between two looks at the store, at first and at most."""
FATE = "fate"
"""Name of what the first process failed with."""
FATE_SECONDS = 2.0
"""How long a process that lost the others looks for what the first one failed with."""
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

    def __init__(self, processes: int = 1, rank: int = 0, device: torch.device | None = None, store: Any = None):
        self.processes, self.rank, self.device = processes, rank, device or torch.device("cpu")
        self._store, self._decisions = store, 0
        self._batches: Sequence[Any] = ()
        self._counts: dict[Targets, torch.Tensor] = {}
        self._averaged = False

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and shows progress."""
        return self.rank == 0

    @contextmanager
    def step(self, batches: Sequence[Any]) -> Iterator[None]:
        """Inside, `count` is over all of these batches, which one optimizer step of this process learns from."""
        self._batches, self._counts, self._averaged = batches, {}, False
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
        idle = any(getattr(batch, "stand_in", False) for batch in self._batches)
        if targets not in self._counts:
            own = sum(targets(batch) for batch in self._batches) if len(self._batches) > 1 else here
            total = torch.as_tensor(0 if idle else own, dtype=torch.float32, device=self.device)
            self._counts[targets] = self.sum(total) / self.processes  # gradients are averaged over processes
        total = self._counts[targets].to(here.device)
        return torch.full_like(total, torch.inf) if idle else total  # what a stand-in says counts nothing

    def sum(self, tensor: torch.Tensor) -> torch.Tensor:
        """The sum over all processes."""
        if self.processes == 1:
            return tensor
        from accelerate.utils import reduce

        with report_lost_process():
            total: torch.Tensor = reduce(tensor.to(self.device), "sum")
        return total.to(tensor.device)

    def mean(self, number: float) -> float:
        """Over all processes."""
        if self.processes == 1:
            return number
        return float(self.sum(torch.tensor(number, dtype=torch.float64, device=self.device))) / self.processes

    def deal(self, batches: Sequence[Any]) -> list[Any]:
        """This process's part of whole batches; the parts of all processes are all of them."""
        return list(batches[self.rank :: self.processes])

    def total(
        self, work: BatchWork, model: Any, batches: Sequence[Any], advance: Callable[[], None]
    ) -> list[torch.Tensor]:
        """The sums over all batches of what is measured on each; every process measures on a part of them."""
        own = self.deal(batches)
        totals = HERE.total(work, model, own or batches[:1], advance)
        return [self.sum(total if own else torch.zeros_like(total)) for total in totals]

    def take_rows(self, batch: Any) -> Any:
        """This process's rows of a batch that all processes share, as long as its longest row.

        A process for which there is none gets another one's row as a stand-in, which counts nothing.
        """
        if self.processes == 1:
            return batch
        own = slice(self.rank, None, self.processes)
        stand_in = self.rank >= len(batch.rows)
        own = slice(0, 1) if stand_in else own
        return replace(
            batch,
            inputs={name: tensor[own] for name, tensor in batch.inputs.items()},
            targets=batch.targets[own],
            rows=batch.rows[own],
            asked=None if batch.asked is None else batch.asked[own],
            stand_in=stand_in,
        )

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

            with report_lost_process():
                broadcast(list(tensors))

    def wait(self) -> None:
        """Until all processes have come here."""
        if self.processes > 1:
            from accelerate import PartialState

            with report_lost_process():
                PartialState().wait_for_everyone()

    def agree(self, value: Value) -> Value:
        """What the first process has, a JSON value, for all: they wait until it has come here, however long it takes.

        The others raise what the first one failed with, where it did.
        """
        if self.processes == 1:
            return value
        self._decisions += 1  # all ask for the same things in the same order
        key = f"decision-{self._decisions}"
        if self.first:
            self._store.set(key, json.dumps(value))
            return value
        seconds, longest = POLL_SECONDS
        while not self._store.check([key]):
            self._raise_fate()
            time.sleep(seconds)
            seconds = min(2 * seconds, longest)
        agreed: Value = json.loads(self._store.get(key))
        return agreed

    def wait_for_first(self) -> None:
        """Until the first process has come here; it does not wait for the others."""
        self.agree(None)

    @contextmanager
    def first_ahead(self) -> Iterator[None]:
        """The first process is through with the block before the others begin it: they find what it has written."""
        if not self.first:
            self.wait_for_first()
        yield
        if self.first:
            self.wait_for_first()

    @contextmanager
    def fail_together(self) -> Iterator[None]:
        """What the first process fails with inside, the others fail with too, and say nothing about it.

        One that fails by itself says so; the others then find that it is gone.
        """
        try:
            yield
        except BaseException as error:
            if self.processes > 1 and self.first:
                with suppress(RuntimeError):  # the store may be gone with everything else
                    self._store.set(FATE, json.dumps([fate_of(error), str(error)]))
            elif self.processes > 1 and not isinstance(error, ToldElsewhere):
                end = time.monotonic() + FATE_SECONDS * isinstance(error, Failed | RuntimeError)
                self._raise_fate(error)
                while time.monotonic() < end:  # a connection that broke: the first one may be about to say why
                    time.sleep(POLL_SECONDS[0])
                    self._raise_fate(error)
            raise

    def _raise_fate(self, cause: BaseException | None = None) -> None:
        """ToldElsewhere when the first process has failed."""
        try:
            if not self._store.check([FATE]):
                return
            kind, line = json.loads(self._store.get(FATE))
        except RuntimeError as error:  # whose process held the store
            raise ToldElsewhere(KeyboardInterrupt()) from error
        kinds: dict[str, type[BaseException]] = {"bad input": BadInput, "interrupted": KeyboardInterrupt}
        raise ToldElsewhere(kinds.get(kind, Failed)(line)) from cause

    def average_part(self, parameters: Iterable[nn.Parameter]) -> None:
        """As `average`, for an update that needs the means of a part of its step; all its parts must be."""
        self._averaged = False
        self.average(parameters)
        self._averaged = True

    @torch.no_grad()
    def average(self, parameters: Iterable[nn.Parameter]) -> None:
        """Every gradient becomes its mean over processes; one that only others have counts as zero here.

        Nothing happens where the step's update has done that part by part.
        """
        if self.processes == 1 or self._averaged:
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


@contextmanager
def report_lost_process() -> Iterator[None]:
    """Failed when another process is gone, of which torch says in many words that a connection is closed."""
    try:
        yield
    except RuntimeError as error:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Failed(
            f"another process of this command has ended ({first_line}); what it said stands above. The same command "
            "again goes on from here."
        ) from error


def fate_of(error: BaseException) -> str:
    """How a command ends that fails with this error, in a word."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "bad input" if isinstance(error, BadInput) else "failed"


SINGLE_PROCESS = ProcessGroup()


def join_process_group(*, cpu: bool = False) -> ProcessGroup:
    """This process's place among those that torchrun or `accelerate launch` has started; alone if nothing did.

    accelerate decides on the device: its own GPU for every process where there are any and `cpu` is not asked for.
    """
    from accelerate import PartialState

    state = PartialState(cpu=cpu)
    device = torch.device("cpu") if state.device.type == "cpu" else state.device  # accelerate numbers CPUs too
    return ProcessGroup(state.num_processes, state.process_index, device, connect_store(state.num_processes))


def join_launched(device: str) -> ProcessGroup:
    """As `join_process_group` on this device, for commands that are alone unless they were launched."""
    if launched_processes() == 1:
        return SINGLE_PROCESS
    from archwright.devices import resolve_device

    return join_process_group(cpu=resolve_device(device).type == "cpu")


def connect_store(processes: int) -> Any:
    """The launcher's store; None for a process that is alone.

    A restart by the launcher and every further command of a program have names of their own in it.
    """
    if processes == 1:
        return None
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = torch.distributed.TCPStore(host, port, is_master=False, wait_for_workers=False)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return torch.distributed.PrefixStore(f"archwright-{attempt}-{next(JOINS)}", store)
