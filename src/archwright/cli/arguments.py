"""Command line options out of frozen dataclasses: one `--kebab-case` option per field, its docstring the help."""

import argparse
import ast
import inspect
import textwrap
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from itertools import pairwise
from typing import Any

from archwright.cli.values import METAVARS, Kind, choices_of, converter, kind_of


def add_group(parser: argparse.ArgumentParser, group: type, *, positional: Collection[str] = (), explain: bool) -> None:
    """Every field of the dataclass as an option below the group's title; those in `positional` without dashes.

    Only what the user gave lands in the namespace, so the dataclass alone knows the defaults. Help texts, which
    read source files and every list of choices, are made only when `explain` asks for them.
    """
    section = parser.add_argument_group(_title(group))
    hints, docs = typing.get_type_hints(group), field_docs(group) if explain else {}
    for field in fields(group):
        words = _option(field, hints[field.name]) | {"help": _help(field, docs.get(field.name, "")) if explain else ""}
        if field.name in positional:
            section.add_argument(field.name, **_as_positional(field, words, kind_of(hints[field.name])))
        else:
            section.add_argument(option_name(field.name), dest=field.name, default=argparse.SUPPRESS, **words)


def option_name(field_name: str) -> str:
    return "--" + field_name.replace("_", "-")


def given_values(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """What the user gave, as the dataclasses declare it: lists become tuples, a positional left out is left out."""
    given = {name: value for name, value in namespace.items() if value is not None}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def field_docs(group: type) -> dict[str, str]:
    """Field name -> the string that follows the field in the source, as one line; base classes included."""
    docs: dict[str, str] = {}
    for cls in reversed([cls for cls in group.__mro__ if is_dataclass(cls)]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        docs |= dict(_documented(body.body if isinstance(body, ast.ClassDef) else []))
    return docs


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, doc in pairwise(body):
        match field, doc:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())


def _title(group: type) -> str:
    doc = inspect.getdoc(group) or ""
    generated = doc.startswith(f"{group.__name__}(")  # what @dataclass writes when there is no docstring
    return group.__name__.lower() if generated or not doc else doc.splitlines()[0].rstrip(".")


def _option(field: "Field[Any]", hint: Any) -> dict[str, Any]:
    kind = kind_of(hint)
    if kind.type is bool:
        return {"action": argparse.BooleanOptionalAction}
    words = {"type": converter(field, kind), "metavar": field.metadata.get("metavar") or METAVARS[kind.type]}
    required = {"required": True} if is_required(field) else {}
    return words | required | ({"action": "extend"} if kind.several else {})


def _as_positional(field: "Field[Any]", words: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """What argparse needs to know; a field that holds several takes as many words as there are, without commas."""
    kept = {key: value for key, value in words.items() if key not in ("required", "action")}
    metavar = {"metavar": field.metadata.get("metavar") or field.name.upper()}
    optional = {} if is_required(field) else {"nargs": "?", "default": None}
    several = {"nargs": "+" if is_required(field) else "*", "type": converter(field, Kind(kind.type))}
    return kept | metavar | optional | (several if kind.several else {})


def is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _help(field: "Field[Any]", doc: str) -> str:
    choices = choices_of(field)
    plain = ", ".join(name for name, text in choices.items() if not text)
    first = (doc, f"One of: {plain}." if plain else "", _default_text(field))
    described = (f"{name}: {text}" for name, text in choices.items() if text)
    return "\n".join((" ".join(part for part in first if part), *described)).replace("%", "%%")


def _default_text(field: "Field[Any]") -> str:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    if any(default is nothing for nothing in (MISSING, None, False)) or default in ("", ()):
        return ""
    words = ",".join(map(str, default)) if isinstance(default, tuple) else "on" if default is True else str(default)
    return f"(default: {words})"
