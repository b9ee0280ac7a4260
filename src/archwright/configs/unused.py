"""Options that would have no effect: they are refused, so that nobody believes in them."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from archwright.errors import BadInput


def given(options: Any) -> set[str]:
    """Options of a group that are not as they are when nobody names them."""
    usual = type(options)()
    names = (one.name for one in fields(options) if getattr(options, one.name) != getattr(usual, one.name))
    return {f"--{name.replace('_', '-')}" for name in names}


def refuse(idle: Iterable[str], when: str) -> None:
    """Raises BadInput where there are any; `when` says what makes them so."""
    if names := sorted(idle):
        has, it = ("has", "it") if len(names) == 1 else ("have", "them")
        raise BadInput(f"{', '.join(names)} {has} no effect {when}; leave {it} out.")
