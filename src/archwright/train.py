"""The training loop: one for everything; losses and distillation are functions given to it."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from archwright.errors import Failed
from archwright.progress import progress


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn."""

    steps: int
    """Optimizer updates."""
    learning_rate: float = 1e-4
    """Peak; it rises over the warm-up and then falls to zero, both linearly."""
    warmup: float = 0.1
    """Share of the steps with rising learning rate, 0 to 1."""
    weight_decay: float = 0.01
    """Pulls matrices towards zero; biases and norms are left alone."""
    clip: float = 1.0
    """Largest norm of the gradient."""


class Checkpoints(Protocol):
    """Where a half-done training lies; `store` provides one that survives kill -9."""

    def load(self) -> dict[str, Any] | None: ...
    def save(self, state: dict[str, Any]) -> None: ...


class Carry(Protocol):
    """What an update remembers between steps, as JSON values, so that a resumed training goes on with it."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...


Update = Callable[[Any, np.random.Generator, float], float]
"""Batch, randomness of this step, share of the training done -> loss; leaves the gradients in the Parameters."""


PIECE = 2**22
"""Logits worked on at once: a language model has so many that every copy of all of them would be felt."""


NO_TARGET = -100


def task_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of all positions that have a target (not -100), or squared error for a single output.

    Logits and targets: rows x classes and rows (classification, multiple choice), rows x 2 x time and rows x 2 (starts
    and ends of answers), rows x time x vocabulary and rows x time (language modelling).
    """
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits.squeeze(-1), targets.to(logits.dtype))
    wanted = targets.flatten()
    return mean_of(cross_entropies, logits.flatten(0, -2), wanted, count=(wanted != NO_TARGET).sum())


def distillation(logits: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL divergence from the softened teacher, mean over positions (Equation 2, no T^2 factor), or squared error."""
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits, teacher)
    flat = logits.flatten(0, -2)
    total = partial(divergences, temperature=temperature)
    return mean_of(total, flat, teacher.flatten(0, -2), count=torch.tensor(len(flat), device=flat.device))


def cross_entropies(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits, targets, ignore_index=NO_TARGET, reduction="sum")


def divergences(logits: torch.Tensor, teacher: torch.Tensor, *, temperature: float) -> torch.Tensor:
    soft, target = (torch.log_softmax(x / temperature, dim=-1) for x in (logits, teacher))
    return nn.functional.kl_div(soft, target, log_target=True, reduction="sum")


Total = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def mean_of(total: Total, logits: torch.Tensor, aims: torch.Tensor, *, count: torch.Tensor) -> torch.Tensor:
    """`total` over all positions by `count`; for many logits in pieces, so that its temporaries stay small."""
    if logits.numel() <= PIECE:
        return total(logits, aims) / count
    mean: torch.Tensor = InPieces.apply(total, logits, aims, count)
    return mean


class InPieces(torch.autograd.Function):
    """A mean over positions; its gradient is made piece by piece on the way forward: one copy of the logits."""

    @staticmethod
    def forward(ctx: Any, total: Total, logits: torch.Tensor, aims: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        size, wanted = max(1, PIECE // logits.shape[-1]), ctx.needs_input_grad[1]
        gradient = torch.empty_like(logits) if wanted else None
        mean: Any = 0.0
        for start in range(0, len(logits), size):
            with torch.set_grad_enabled(wanted):
                piece = logits[start : start + size].detach().requires_grad_(wanted)
                part = total(piece, aims[start : start + size]) / count
            if gradient is not None:
                gradient[start : start + size] = torch.autograd.grad(part, piece)[0]
            mean = mean + part.detach()
        ctx.save_for_backward(gradient)
        return mean

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[None, torch.Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return None, gradient if float(slopes[0]) == 1.0 else gradient * slopes[0], None, None


def train(
    model: nn.Module,
    batches: Callable[[int], Iterable[Any]],
    update: Update,
    schedule: Schedule,
    *,
    seed: int,
    checkpoints: Checkpoints | None = None,
    every_seconds: float = 60.0,
    title: str = "training",
    stop: int | None = None,
    carry: Carry | None = None,
) -> int:
    """Number of steps done now; `batches(epoch)` is the data of one epoch, and a checkpoint continues bit by bit.

    With `stop` only the schedule's first steps are done and then saved, for a later call to go on.
    """
    end = schedule.steps if stop is None else min(stop, schedule.steps)
    parameters = [p for p in model.parameters() if p.requires_grad]
    device = parameters[0].device
    optimizer = torch.optim.AdamW(decay_groups(model, schedule.weight_decay), lr=schedule.learning_rate, fused=True)
    start = resume(model, optimizer, checkpoints, carry)
    saved = time.monotonic()
    optimizer.zero_grad()
    model.train()
    with progress(title, end, unit="steps") as bar, torch.random.fork_rng(devices=[]):
        bar.advance(start)
        for step, batch in remaining(batches, start, end):
            for group in optimizer.param_groups:
                group["lr"] = schedule.learning_rate * rate(step, schedule)
            torch.manual_seed(step_seed(seed, step))  # dropout
            with mixed_precision(device):
                loss = update(batch, np.random.default_rng((seed, step)), step / schedule.steps)
            slope = nn.utils.clip_grad_norm_(parameters, schedule.clip)
            check(loss, float(slope), step, checkpoints is not None)
            optimizer.step()
            optimizer.zero_grad()
            bar.advance(1, loss=loss)
            if checkpoints and time.monotonic() - saved > every_seconds:
                checkpoints.save(snapshot(model, optimizer, step + 1, carry))
                saved = time.monotonic()
    if checkpoints and start < end < schedule.steps:
        checkpoints.save(snapshot(model, optimizer, end, carry))
    model.eval()
    return max(0, end - start)


def mixed_precision(device: torch.device) -> AbstractContextManager[Any]:
    """bfloat16 for the matrix products where the device is made for it; plain float32 on a CPU."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if device.type == "cuda" else nullcontext()


def step_seed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence((seed, step)).generate_state(1)[0])


def rate(step: int, schedule: Schedule) -> float:
    """Share of the peak learning rate at this step."""
    rising = max(1, round(schedule.warmup * schedule.steps))
    return min((step + 1) / rising, (schedule.steps - step) / max(1, schedule.steps - rising), 1.0)


def remaining(batches: Callable[[int], Iterable[Any]], start: int, steps: int) -> Iterator[tuple[int, Any]]:
    """Step number and batch from `start` on, epoch after epoch."""
    step, epoch = 0, 0
    while step < steps:
        for batch in batches(epoch):
            if step >= steps:
                return
            if step >= start:
                yield step, batch
            step += 1
        epoch += 1


def decay_groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    """Matrices are decayed, biases and norms are not."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in trained if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in trained if p.dim() <= 1], "weight_decay": 0.0},
    ]


def check(loss: float, slope: float, step: int, resumable: bool) -> None:
    """The gradient too: the loss is that of the first sub-network, and another one may have gone wrong."""
    if not (np.isfinite(loss) and np.isfinite(slope)):
        kept = "the last good checkpoint is kept; " if resumable else ""
        found = f"the loss became {loss} and the norm of its gradient {slope} at step {step}"
        raise Failed(f"{found}; {kept}lower the learning rate and run again.")


def snapshot(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, carry: Carry | None) -> dict[str, Any]:
    remembered = carry.state() if carry else {}
    return {
        "step": step,
        "model": tensors_of(model),
        "optimizer": optimizer.state_dict()["state"],
        "carry": remembered,
    }


def tensors_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each once however many modules share it."""
    saved = model.state_dict().keys()
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {name: tensor.detach() for name, tensor in named.items() if name in saved}


def resume(
    model: nn.Module, optimizer: torch.optim.Optimizer, checkpoints: Checkpoints | None, carry: Carry | None
) -> int:
    """The step to go on with, after the last checkpoint has been put into model, optimizer and memory."""
    state = checkpoints.load() if checkpoints else None
    if state is None:
        return 0
    for name, tensor in tensors_of(model).items():
        tensor.copy_(state["model"][name])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state["optimizer"]})
    if carry:
        carry.restore(state["carry"])
    return int(state["step"])
