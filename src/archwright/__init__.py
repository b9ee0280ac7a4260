"""Make language models smaller, and find small ones, without guessing.

The verbs of the command line as functions, with its options as keywords:

>>> import archwright as aw
>>> run = aw.compress(task="movie-reviews")
>>> run.select(params=0.5).save_pretrained("smaller")

Importing the package loads no torch; the first call does.
"""

import sys
from types import ModuleType
from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "compress", "design", "export", "open_run", "rank", "score", "select", "train"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from archwright import commands
    from archwright.cli.verbs import verb

    return verb(name) if name in commands.COMMANDS else getattr(commands, name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Importing a room makes it an attribute of the package; `export` stays the verb of that name all the same."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
