"""The commands as Python functions: the same options, as keywords."""

import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from archwright.cli.arguments import field_docs
from archwright.cli.values import kind_of
from archwright.commands import COMMANDS, Command, call


def verb(name: str) -> Callable[..., Any]:
    """The command as a function, with the signature and documentation that `help` and editors show."""

    def run(**options: Any) -> Any:
        return call(
            COMMANDS[name], {option: as_declared(value, hints.get(option)) for option, value in options.items()}
        )

    hints = {
        option: hint for group in COMMANDS[name].option_types for option, hint in typing.get_type_hints(group).items()
    }
    run.__name__ = run.__qualname__ = name
    run.__doc__ = documentation(COMMANDS[name])
    run.__signature__ = Signature(list(parameters(COMMANDS[name])))  # type: ignore[attr-defined]
    return run


def as_declared(value: Any, hint: Any) -> Any:
    """A path may be given as text, and several values as a list."""
    kind = kind_of(hint)
    if isinstance(value, list) and kind.several:
        return tuple(as_declared(item, kind.type) for item in value)
    return Path(value) if isinstance(value, str) and kind.type is Path and not kind.several else value


def parameters(command: Command) -> Iterator[Parameter]:
    for group in command.option_types:
        hints = typing.get_type_hints(group)
        for field in fields(group):
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])


def documentation(command: Command) -> str:
    docs = {name: doc for group in command.option_types for name, doc in field_docs(group).items()}
    return "\n".join((f"{command.summary}\n", *(f"{name}: {doc}" for name, doc in docs.items())))


def _default(field: "Field[Any]") -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is MISSING else field.default
