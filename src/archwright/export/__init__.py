"""A network as an ordinary checkpoint or ONNX file, with proof that it behaves the same; torch only on use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archwright.export.formats import FORMATS, Format

if TYPE_CHECKING:
    from archwright.export.checkpoint import export
    from archwright.export.parity import Parity, varied_batches

__all__ = ["FORMATS", "Format", "Parity", "export", "varied_batches"]

HOMES = {
    "export": "archwright.export.checkpoint",
    "Parity": "archwright.export.parity",
    "varied_batches": "archwright.export.parity",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
