"""How long and how fast to learn."""

from dataclasses import dataclass


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
    betas: tuple[float, float] = (0.9, 0.999)
    """How much of the mean gradient and of its mean square AdamW keeps at every step."""
    eps: float = 1e-8
    """Added to the root of the mean square by AdamW."""
    layer_decay: float = 1.0
    """Factor of the learning rate from one layer down to the next; the head learns at the full rate."""
    accumulate: int = 1
    """Batches per update on every process: their gradients are those of one batch of all their rows."""


def rate(step: int, schedule: Schedule) -> float:
    """Share of the peak learning rate at this step."""
    rising = max(1, round(schedule.warmup * schedule.steps))
    return min((step + 1) / rising, (schedule.steps - step) / max(1, schedule.steps - rising), 1.0)
