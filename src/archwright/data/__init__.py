"""Text to batches: tasks, tokenized rows and padded batches. What needs torch is loaded when first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.data.rows import Rows, Split
from archwright.data.tasks import TASKS, Task, load_task
from archwright.data.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from archwright.data.batching import Batch, Encoded, batches, encode, evaluation_batches, median_length

__all__ = [
    "TASKS",
    "Batch",
    "Encoded",
    "Rows",
    "Split",
    "Task",
    "batches",
    "encode",
    "evaluation_batches",
    "load_task",
    "load_tokenizer",
    "median_length",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("archwright.data.batching"), name)
