"""How long a training will take: timed on a few batches, teacher and student apart."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from torch import nn

from archwright.training.loop import Update
from archwright.training.plan import TrainingPlan

TIMED_STEPS = 4
OPTIMIZER_SHARE = 1.15
"""A step of the optimizer takes about a seventh of the rest."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of one optimizer step."""

    step: float
    """All of it, the teacher's part included."""
    teacher: float
    """Of it what is spared when the teacher's answers are kept; 0 without a teacher."""
    first_epoch: float
    """Steps in which every row comes for the first time."""
    kept: float
    """Share of the rows whose answers are kept from then on."""

    def seconds(self, steps: float) -> float:
        """Of so many steps."""
        later = max(0.0, steps - self.first_epoch)
        return steps * self.step - later * self.kept * self.teacher

    def steps_within(self, seconds: float) -> int:
        """The most steps that take no longer."""
        first = self.seconds(self.first_epoch)
        if seconds <= first:
            return int(seconds / self.step)
        return int(self.first_epoch + (seconds - first) / (self.step - self.kept * self.teacher))

    def describe(self, steps: int) -> dict[str, float]:
        """For the result: what is expected of so many steps."""
        return {**asdict(self), "seconds": self.seconds(steps)}


def time_steps(plan: TrainingPlan, per_step: float, accumulate: int, kept: float) -> StepTimes:
    """Timed on a few batches; leaves weights and gradients as they were. `per_step` batches are learnt per step."""
    batches = plan.batches(0)
    step = accumulate * seconds_per_batch(plan.model, batches, plan.update)
    teacher = accumulate * seconds_of_teacher(plan, batches) if plan.teacher is not None else 0.0
    return StepTimes(step, min(teacher, 0.9 * step), len(batches) / per_step, kept)


def seconds_per_batch(model: nn.Module, batches: Sequence[Any], update: Update) -> float:
    """Of an update on one batch, and its part of an optimizer step; leaves weights and gradients as they were."""
    rng, seconds = np.random.default_rng(0), []
    model.train()
    for number in range(min(TIMED_STEPS, len(batches))):
        batch, started = batches[number], perf_counter()
        update(batch, rng, 0.5)
        seconds.append(perf_counter() - started)
    model.zero_grad(set_to_none=True)
    return float(np.median(seconds)) * OPTIMIZER_SHARE


def seconds_of_teacher(plan: TrainingPlan, batches: Sequence[Any]) -> float:
    """Of the teacher's pass over one batch."""
    device, seconds = next(plan.model.parameters()).device, []
    assert plan.teacher is not None
    for number in range(min(TIMED_STEPS, len(batches))):
        batch, started = batches[number].to(device), perf_counter()
        plan.teacher.compute(batch)
        seconds.append(perf_counter() - started)
    return float(np.median(seconds))


def forecast_line(forecast: Mapping[str, Any], steps: int) -> str:
    """What is expected, in words."""
    words = f"{steps:,} steps in about {forecast['seconds'] / 60:.1f} minutes, {1000 * forecast['step']:.0f} ms each"
    if forecast["teacher"] and forecast["kept"]:
        later = forecast["step"] - forecast["kept"] * forecast["teacher"]
        words += f", {1000 * later:.0f} ms from the second epoch on"
    return words
