"""The training loop: one for everything; losses and distillation are functions given to it."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
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


Update = Callable[[Any, np.random.Generator, float], float]
"""Batch, randomness of this step, share of the training done -> loss; leaves the gradients in the Parameters."""


def task_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, or mean squared error for a single output."""
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits.squeeze(-1), targets.to(logits.dtype))
    return nn.functional.cross_entropy(logits, targets)


def distillation(logits: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL divergence from the softened teacher (Equation 2, no T^2 factor), or squared error for a single output."""
    if logits.shape[-1] == 1:
        return nn.functional.mse_loss(logits, teacher)
    soft, target = (torch.log_softmax(x / temperature, dim=-1) for x in (logits, teacher))
    return nn.functional.kl_div(soft, target, log_target=True, reduction="batchmean")


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
) -> int:
    """Number of steps done now; `batches(epoch)` is the data of one epoch, and a checkpoint continues bit by bit."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    device = parameters[0].device
    optimizer = torch.optim.AdamW(decay_groups(model, schedule.weight_decay), lr=schedule.learning_rate, fused=True)
    start = resume(model, optimizer, checkpoints)
    saved = time.monotonic()
    optimizer.zero_grad()
    model.train()
    with progress(title, schedule.steps, unit="steps") as bar, torch.random.fork_rng(devices=[]):
        bar.advance(start)
        for step, batch in remaining(batches, start, schedule.steps):
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
                checkpoints.save(snapshot(model, optimizer, step + 1))
                saved = time.monotonic()
    model.eval()
    return schedule.steps - start


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


def snapshot(model: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> dict[str, Any]:
    return {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()["state"]}


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, checkpoints: Checkpoints | None) -> int:
    """The step to go on with, after the last checkpoint has been put into model and optimizer."""
    state = checkpoints.load() if checkpoints else None
    if state is None:
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state["optimizer"]})
    return int(state["step"])
