"""A network as an ordinary checkpoint or ONNX file, with proof that it behaves the same; torch only on use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.exporting.formats import FORMATS, Format

if TYPE_CHECKING:
    from archwright.exporting.checkpoint import export
    from archwright.exporting.parity import Parity, varied_batches

__all__ = ["FORMATS", "Format", "Parity", "export", "varied_batches"]

HOMES = {
    "export": "archwright.exporting.checkpoint",
    "Parity": "archwright.exporting.parity",
    "varied_batches": "archwright.exporting.parity",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
