"""The loop: one for everything that is trained."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from archwright.errors import Failed
from archwright.progress import Bar, progress, quiet
from archwright.training.batch_order import Epochs, remaining
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.optimizer import adamw, set_rates
from archwright.training.schedule import Schedule
from archwright.training.state import Carry, Checkpoints, resume, snapshot, tensors_of

Update = Callable[[Any, np.random.Generator, float], float | torch.Tensor]
"""Batch, randomness of this step, share of the training done -> loss; leaves the gradients in the Parameters.

A tensor is as good as a number, and does not make a GPU wait."""


class StepRecord(NamedTuple):
    """What one step has to tell. After an interruption steps come again: the later record counts."""

    step: int
    """From 0."""
    loss: float
    """Mean over all targets of all processes."""
    learning_rate: float
    """The head's."""
    tokens: int
    """Tokens that are not padding, of all processes."""
    seconds: float
    """From the end of the step before, so making the batch is part of it."""


def train_network(
    model: nn.Module,
    batches: Epochs,
    update: Update,
    schedule: Schedule,
    *,
    seed: int,
    checkpoints: Checkpoints | None = None,
    every_seconds: float = 60.0,
    title: str = "training",
    stop: int | None = None,
    carry: Carry | None = None,
    log: Callable[[StepRecord], None] | None = None,
    group: ProcessGroup | None = None,
) -> int:
    """Number of steps done now; `batches(epoch)` is the data of one epoch, and a checkpoint continues bit by bit.

    With `stop` only the schedule's first steps are done and then saved, for a later call to go on. Of several processes
    all call this with the same arguments (`together` of each its own); the first one alone saves, logs and talks.
    """
    group = group or SINGLE_PROCESS
    end = schedule.steps if stop is None else min(stop, schedule.steps)
    optimizer = adamw(model, schedule)
    start = resume(model, optimizer, checkpoints, carry, group)
    group.share(tensors_of(model).values())
    keep = CheckpointTimer(checkpoints, every_seconds, group)
    step_of = TrainingStep(model, update, schedule, seed, optimizer, group, resumable=checkpoints is not None)
    optimizer.zero_grad()
    model.train()
    with talking(group), progress(title, end, unit="steps") as bar, torch.random.fork_rng(devices=[]):
        bar.advance(start)
        for step, own in remaining(batches, start, end, accumulate=schedule.accumulate, group=group):
            record = step_of(step, own, due=keep.due())
            tell(record, bar, log if group.first else None)
            if step_of.due:
                keep.save(snapshot(model, optimizer, step + 1, carry, group))
    if checkpoints and start < end < schedule.steps:
        keep.save(snapshot(model, optimizer, end, carry, group))
    model.eval()
    group.wait()
    return max(0, end - start)


def talking(group: ProcessGroup) -> AbstractContextManager[Any]:
    """Of several processes one shows its progress."""
    return nullcontext() if group.first else quiet()


def tell(record: StepRecord, bar: Bar, log: Callable[[StepRecord], None] | None) -> None:
    speed = {"k tokens/s": record.tokens / record.seconds / 1000} if record.tokens else {}
    bar.advance(1, loss=record.loss, **speed)
    if log:
        log(record)


class CheckpointTimer:
    """Saves when it is time, on the first process."""

    def __init__(self, checkpoints: Checkpoints | None, every_seconds: float, group: ProcessGroup):
        self.checkpoints, self.every_seconds, self.group = checkpoints, every_seconds, group
        self.saved = time.monotonic()

    def due(self) -> bool:
        return self.group.first and bool(self.checkpoints) and time.monotonic() - self.saved > self.every_seconds

    def save(self, state: dict[str, Any]) -> None:
        if self.checkpoints and self.group.first:
            self.checkpoints.save(state)
        self.saved = time.monotonic()


class TrainingStep:
    """One optimizer update after another, all of them alike."""

    def __init__(
        self,
        model: nn.Module,
        update: Update,
        schedule: Schedule,
        seed: int,
        optimizer: torch.optim.Optimizer,
        group: ProcessGroup,
        *,
        resumable: bool,
    ):
        self.update, self.schedule, self.seed, self.resumable = update, schedule, seed, resumable
        self.optimizer, self.group = optimizer, group
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = self.parameters[0].device
        self.ended = time.perf_counter()
        self.due = False

    def __call__(self, step: int, own: list[Any], *, due: bool) -> StepRecord:
        """The step is done; `due` of the first process becomes `self.due` of all."""
        learning_rate = set_rates(self.optimizer, step, self.schedule)
        value = self.gradients(step, own)
        self.group.average(self.parameters)
        slope = nn.utils.clip_grad_norm_(self.parameters, self.schedule.clip)
        loss, norm, tokens, save = self.agreed(value, slope, sum(map(tokens_of, own)), due)
        check(loss, norm, step, self.resumable)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.due = save > 0
        begun, self.ended = self.ended, time.perf_counter()
        return StepRecord(step, loss, learning_rate, int(tokens), self.ended - begun)

    def gradients(self, step: int, own: list[Any]) -> Any:
        """The loss, its gradients left in the Parameters."""
        sow(step_seed(self.seed, step, self.group.rank), self.device)
        rng, share = np.random.default_rng((self.seed, step)), step / self.schedule.steps
        with mixed_precision(self.device), self.group.step(own):
            return sum(self.update(batch, rng, share) for batch in own)

    def agreed(self, value: Any, slope: torch.Tensor, tokens: int, due: bool) -> tuple[float, float, float, float]:
        """Loss, norm of the gradient, tokens and whether to save, of all processes, with one wait for the device."""
        loss = torch.as_tensor(value, dtype=torch.float32, device=self.device) / self.group.processes
        rest = torch.tensor([tokens, due], dtype=torch.float32, device=self.device)
        loss, tokens, save = self.group.summed(torch.cat([loss.reshape(1), rest])).unbind()
        found = torch.stack([loss, slope.to(loss), tokens, save])
        loss, norm, tokens, save = found.tolist()
        return loss, norm, tokens, save


def mixed_precision(device: torch.device) -> AbstractContextManager[Any]:
    """bfloat16 for the matrix products where the device is made for it; plain float32 on a CPU and on older GPUs."""
    fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.autocast(device.type, dtype=torch.bfloat16) if fast else nullcontext()


def sow(seed: int, device: torch.device) -> None:
    """Seeds dropout on this device alone: torch.manual_seed does it for every kind there is, half a millisecond."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """The first process has the seeds of a process that is alone."""
    return int(np.random.SeedSequence((seed, step, rank) if rank else (seed, step)).generate_state(1)[0])


def tokens_of(batch: Any) -> int:
    """Tokens that are not padding, 0 when the batch does not say."""
    inputs = getattr(batch, "inputs", {})
    if "attention_mask" in inputs:
        return int(inputs["attention_mask"].sum())
    return int(inputs["input_ids"].numel()) if "input_ids" in inputs else 0


def check(loss: float, slope: float, step: int, resumable: bool) -> None:
    """The gradient too: the loss is that of the first sub-network, and another one may have gone wrong."""
    if not (np.isfinite(loss) and np.isfinite(slope)):
        kept = "the last good checkpoint is kept; " if resumable else ""
        found = f"the loss became {loss} and the norm of its gradient {slope} at step {step}"
        raise Failed(f"{found}; {kept}lower the learning rate and run again.")
