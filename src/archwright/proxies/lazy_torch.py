"""torch, imported at its first use: the operations of formulas apply it, but to read or print one must not load it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
else:

    class LazyModule:
        """Stands for torch; after the first use its names are found as quickly as those of the module."""

        def __getattr__(self, name: str) -> Any:
            module = import_module("torch")
            self.__dict__.update(vars(module))
            return getattr(module, name)

    torch = LazyModule()

__all__ = ["torch"]
