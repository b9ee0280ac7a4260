"""Rivals of a network that `train` has trained on a task: other ways to the same size in the same time. Loads no torch.

`archwright train --rivals` and `archwright design --rivals` run them, so that a user sees at once when another way is
better.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.configs.training import TrainConfig

CHECKPOINT = "minilm"
"""What is made smaller where the student has no teacher."""


class NoRival(Exception):
    """Why there is no such network at the size of the student."""


@dataclass(frozen=True)
class RivalRequest:
    """What a rival may cost, and what it is to learn."""

    config: "TrainConfig"
    """Of the student."""
    student: Path
    """Run folder of the student."""
    folder: Path
    """Of the rival: whatever it needs to go on after a crash."""
    parameters: int
    """Most that it may have, all counted."""
    minutes: float
    """Most that its training may take."""
    steps: int
    """Optimizer updates of the student, those before a collapse too where --minutes were divided."""

    @property
    def checkpoint(self) -> str:
        """What is made smaller, or was fine-tuned from that: the teacher of the student, or MiniLM."""
        return self.config.objective.teacher or CHECKPOINT


@dataclass(frozen=True)
class RivalResult:
    """A rival that was trained."""

    what: str
    """What it is, in a few words."""
    parameters: int
    seconds: float
    """Wall clock of all that was done for it."""
    metrics: Mapping[str, Any]
    """On the rows that the student is judged on."""
    steps: int | None = None
    """Optimizer updates, where one network was trained."""


RIVALS: Registry[Callable[[RivalRequest], RivalResult]] = Registry(
    "rival",
    {
        "first-layers": Lazy(
            "archwright.rivals.first_layers:train_first_layers",
            "the first layers of the teacher's checkpoint (else MiniLM), as many as fit, fine-tuned with the labels",
        ),
        "compress": Lazy(
            "archwright.rivals.compressed:compress_checkpoint",
            "what `archwright compress` makes of that checkpoint within the same parameters",
        ),
        "random-design": Lazy(
            "archwright.rivals.random_design:train_random_design",
            "a random design of the student's space and size, trained in the student's way",
        ),
    },
    group="archwright.rivals",
)
"""A rival is a function: request -> result; NoRival where there is none of the size, BadInput for what may change."""
