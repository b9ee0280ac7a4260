"""Options that would have no effect: they are refused, so that nobody believes in them."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from archwright.errors import BadInput


def changed_flags(options: Any) -> set[str]:
    """Flags of the options of a group that are not at their defaults."""
    defaults = type(options)()
    names = (f.name for f in fields(options) if getattr(options, f.name) != getattr(defaults, f.name))
    return {f"--{name.replace('_', '-')}" for name in names}


def refuse_options(flags: Iterable[str], when: str) -> None:
    """Raises BadInput where there are any; `when` says why they have no effect."""
    if names := sorted(flags):
        has, it = ("has", "it") if len(names) == 1 else ("have", "them")
        raise BadInput(f"{', '.join(names)} {has} no effect {when}; leave {it} out.")
