"""The loop: one for everything that is trained, which batches every step of it learns from, and how it is resumed."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import nn

from archwright.callbacks import tell_step
from archwright.errors import BadInput, Failed
from archwright.progress import progress, quiet
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.optimizer import build_optimizer, set_rates
from archwright.training.precision import has_bfloat16, mixed_precision
from archwright.training.recomputation import recompute_layers
from archwright.training.schedule import Schedule

Epochs = Callable[[int], Iterable[Any]]
"""The data of one epoch; where it is a sequence, batches that are not needed are not even made."""
Update = Callable[[Any, np.random.Generator, float], float | torch.Tensor]
"""Batch, randomness of this step, share of the training done -> loss; leaves the gradients in the Parameters.

A tensor is as good as a number, and does not make a GPU wait."""


class Checkpoints(Protocol):
    """Where a half-done training lies; `store` provides one that survives kill -9."""

    def load(self) -> dict[str, Any] | None: ...
    def save(self, state: dict[str, Any]) -> None: ...


class Carry(Protocol):
    """What an update remembers between steps, so that a resumed training goes on with it.

    The values of the dict are JSON values, or tensors, which may differ from process to process.
    """

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


class StepRecord(NamedTuple):
    """One step for the log. After an interruption steps come again: the later record counts."""

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
    precision: str | None = None,
    share_rows: bool = False,
    optimizer: str = "adamw",
    recompute: bool = False,
    watch: Callable[[int], bool] | None = None,
) -> int:
    """Number of steps done now; `batches(epoch)` is the data of one epoch, and a checkpoint continues bit by bit.

    With `stop` only the schedule's first steps are done and then saved, for a later call to go on. Of several processes
    all call this with the same arguments (`group` of each its own); the first one alone saves, logs and shows progress.
    Each has batches of its own, so that a step learns from `processes` times as many rows as a batch has; with
    `share_rows` each has its rows of every batch, and what is carried must be the same for all.
    `precision` is that of the matrix products, float32 or bfloat16; None: bfloat16 on a GPU that is made for it.
    `optimizer` is adamw or adamw-8bit; with `recompute` layers keep only their inputs for the way back. `watch` is
    asked after every step, with the number of steps done, whether to end the training there, in all processes alike;
    that step is then not saved.
    """
    group = group or SINGLE_PROCESS
    end = schedule.steps if stop is None else min(stop, schedule.steps)
    group.wait_for_first()  # it may have been busy with something else for long
    dealers = SINGLE_PROCESS if share_rows else group
    adamw = build_optimizer(model, schedule, optimizer, seed=seed)
    start = load_state(model, adamw, checkpoints, carry, dealers)
    group.share(model_tensors(model).values())
    timer = CheckpointTimer(checkpoints, every_seconds, group)
    resumable = checkpoints is not None
    take_step = TrainingStep(model, update, schedule, seed, adamw, group, resumable=resumable, precision=precision)
    adamw.zero_grad()
    model.train()
    shown = nullcontext() if group.first else quiet()
    kept = recompute_layers(model, recompute)
    with shown, kept, progress(title, end, unit="steps") as bar, torch.random.fork_rng(devices=[]):
        bar.advance(start)
        for step, own in remaining_batches(batches, start, end, accumulate=schedule.accumulate, group=dealers):
            own = [group.take_rows(batch) for batch in own] if share_rows else own
            record = take_step(step, own, due=timer.due())
            speed = {"k tokens/s": record.tokens / record.seconds / 1000} if record.tokens else {}
            bar.advance(1, loss=record.loss, **speed)
            if group.first:
                tell_step(title, step, step_numbers(record))
            if log and group.first:
                log(record)
            if watch is not None and watch(step + 1):  # asked before this step is saved: a resumed training asks again
                end = step + 1
                break
            if take_step.due:
                timer.save(training_state(model, adamw, step + 1, carry, dealers))
        else:
            if checkpoints and start < end < schedule.steps:
                timer.save(training_state(model, adamw, end, carry, dealers))
    model.eval()
    group.wait()
    return max(0, end - start)


def step_numbers(record: StepRecord) -> dict[str, float]:
    """What callbacks are told of a step."""
    speed = {"tokens_per_second": record.tokens / record.seconds} if record.tokens and record.seconds else {}
    return {"loss": record.loss, "learning_rate": record.learning_rate, **speed}


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
        precision: str | None,
    ):
        self.update, self.schedule, self.seed, self.resumable = update, schedule, seed, resumable
        self.optimizer, self.group = optimizer, group
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.device = device = self.parameters[0].device
        usual = "bfloat16" if device.type == "cuda" and has_bfloat16(device) else "float32"
        self.precision = precision or usual
        self.ended = time.perf_counter()
        self.due = False

    def __call__(self, step: int, own: list[Any], *, due: bool) -> StepRecord:
        """The step is done; `due` of the first process becomes `self.due` of all."""
        learning_rate = set_rates(self.optimizer, step, self.schedule)
        own_loss = self.gradients(step, own)
        self.group.average(self.parameters)
        norm = nn.utils.clip_grad_norm_(self.parameters, self.schedule.clip)
        loss, norm, tokens, save = self.combine(own_loss, norm, sum(map(tokens_of, own)), due)
        check_finite(loss, norm, step, self.resumable)
        self.optimizer.step()
        self.optimizer.zero_grad()
        torch.clear_autocast_cache()  # inside another autocast the old weights in bfloat16 would be used for ever
        self.due = save > 0
        begun, self.ended = self.ended, time.perf_counter()
        return StepRecord(step, loss, learning_rate, int(tokens), self.ended - begun)

    def gradients(self, step: int, own: list[Any]) -> Any:
        """The loss, its gradients left in the Parameters."""
        # The first process has the seeds of a process that is alone.
        streams = (self.seed, step, self.group.rank) if self.group.rank else (self.seed, step)
        dropout = int(np.random.SeedSequence(streams).generate_state(1)[0])
        torch.default_generator.manual_seed(dropout)  # torch.manual_seed would seed every kind of device there is
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(dropout)
        rng, share = np.random.default_rng((self.seed, step)), step / self.schedule.steps
        with mixed_precision(self.device, self.precision), self.group.step(own):
            return sum(self.update(batch, rng, share) for batch in own)

    def combine(self, loss: Any, norm: torch.Tensor, tokens: int, due: bool) -> tuple[float, float, float, float]:
        """Loss, norm of the gradient, tokens and whether to save, of all processes, with one wait for the device."""
        loss = torch.as_tensor(loss, dtype=torch.float32, device=self.device) / self.group.processes
        rest = torch.tensor([tokens, due], dtype=torch.float32, device=self.device)
        loss, total, save = self.group.sum(torch.cat([loss.reshape(1), rest])).unbind()
        values = torch.stack([loss, norm.to(loss), total, save]).tolist()
        return values[0], values[1], values[2], values[3]


def tokens_of(batch: Any) -> int:
    """Tokens that are not padding, 0 when the batch does not say."""
    inputs = {} if getattr(batch, "stand_in", False) else getattr(batch, "inputs", {})
    if "attention_mask" in inputs:
        return int(inputs["attention_mask"].sum())
    return int(inputs["input_ids"].numel()) if "input_ids" in inputs else 0


def check_finite(loss: float, norm: float, step: int, resumable: bool) -> None:
    """The gradient too: the loss is that of the first sub-network, and another one may have gone wrong."""
    if not (np.isfinite(loss) and np.isfinite(norm)):
        kept = "the last good checkpoint is kept; " if resumable else ""
        raise Failed(
            f"the loss became {loss} and the norm of its gradient {norm} at step {step}; {kept}lower the learning rate "
            "and run again."
        )


def remaining_batches(
    batches: Epochs, start: int, steps: int, *, accumulate: int = 1, group: ProcessGroup = SINGLE_PROCESS
) -> Iterator[tuple[int, list[Any]]]:
    """Step number and this process's batches from `start` on, epoch after epoch.

    Batches are dealt like cards: of the `processes` x `accumulate` batches of a step, process r has r, r + processes,
    and so on. A step may begin at the end of one epoch and end in the next, so all steps are of one size.
    """
    per_step = accumulate * group.processes
    own = batches_at(batches, range(start * per_step + group.rank, steps * per_step, group.processes))
    for step in range(start, steps):
        yield step, list(islice(own, accumulate))


def batches_at(batches: Epochs, positions: range) -> Iterator[Any]:
    """The batches at these positions of all epochs in a row."""
    epoch, before = 0, 0
    while positions:
        size = yield from epoch_batches(batches(epoch), positions, before)
        if size == 0:
            raise BadInput(f"epoch {epoch} of the training data has no batch; give more text or a smaller batch size.")
        before, epoch = before + size, epoch + 1
        positions = positions[len(range(positions.start, min(before, positions.stop), positions.step)) :]


def epoch_batches(data: Iterable[Any], positions: range, before: int) -> Generator[Any, None, int]:
    """Those of one epoch, which begins at position `before`; returns how many batches the epoch has."""
    if isinstance(data, Sequence):
        inside = positions[: len(range(positions.start, before + len(data), positions.step))]
        yield from (data[position - before] for position in inside)
        return len(data)
    size = 0
    for size, batch in enumerate(data, 1):
        if before + size - 1 in positions:
            yield batch
        if before + size - 1 >= positions[-1]:
            break
    return size


def training_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, step: int, carry: Carry | None, group: ProcessGroup
) -> dict[str, Any]:
    """Everything to go on with; what is carried is that of all processes, of which every one must ask."""
    carried: dict[str, Any] = {}
    for rank, values in enumerate(group.gather(carry.state() if carry else {})):
        carried |= {rank_prefix(rank) + name: value for name, value in values.items()}
    state = optimizer.state_dict()["state"]
    return {"step": step, "model": model_tensors(model), "optimizer": state, "carry": carried}


def rank_prefix(rank: int) -> str:
    """Before the names of what a process carries; a process alone has none."""
    return f"{rank}/" if rank else ""


def model_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each once however many modules share it."""
    saved = model.state_dict().keys()
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor.detach() for name, tensor in named.items() if name in saved}


def load_state(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    checkpoints: Checkpoints | None,
    carry: Carry | None,
    group: ProcessGroup,
) -> int:
    """The step to go on with, after the last checkpoint has been put into model, optimizer and carry."""
    state = checkpoints.load() if checkpoints else None
    if state is None:
        return 0
    for name, tensor in model_tensors(model).items():
        tensor.copy_(state["model"][name])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state["optimizer"]})
    if carry:
        own = rank_prefix(group.rank)
        parts = ((key, *key.rpartition("/")) for key in state["carry"])
        carry.restore({name: state["carry"][key] for key, rank, slash, name in parts if rank + slash == own})
    return int(state["step"])
