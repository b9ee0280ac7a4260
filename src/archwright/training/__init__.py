"""The training loop: one for everything; losses, distillation and lessons are functions given to it.

What needs torch is loaded when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.training.schedule import Schedule, rate

if TYPE_CHECKING:
    from archwright.training.batch_order import remaining
    from archwright.training.distributed import ALONE, Together, join
    from archwright.training.loop import Record, Update, train
    from archwright.training.losses import distillation, task_loss
    from archwright.training.state import Carry, Checkpoints, tensors_of

__all__ = [
    "ALONE",
    "Carry",
    "Checkpoints",
    "Record",
    "Schedule",
    "Together",
    "Update",
    "distillation",
    "join",
    "rate",
    "remaining",
    "task_loss",
    "tensors_of",
    "train",
]

PLACES = {
    "loop": ("Record", "Update", "train"),
    "losses": ("distillation", "task_loss"),
    "order": ("remaining",),
    "state": ("Carry", "Checkpoints", "tensors_of"),
    "together": ("ALONE", "Together", "join"),
}
"""Which file has which name."""


def __getattr__(name: str) -> Any:
    for file, names in PLACES.items():
        if name in names:
            return getattr(import_module(f"archwright.training.{file}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
