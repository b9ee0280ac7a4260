"""From the text a user typed to the value a field declares, or one line about what is wrong with it."""

import argparse
import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a type hint asks of the command line: `tuple[Path, ...] | None` is several of `Path`."""

    type: type
    several: bool = False


def kind_of(hint: Any) -> Kind:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
    if typing.get_origin(hint) is tuple:
        return Kind(typing.get_args(hint)[0], several=True)
    return Kind(hint)


def choices_of(field: "dataclasses.Field[Any]") -> dict[str, str]:
    """Allowed value -> what it is (may be empty); no entry at all when anything goes.

    The metadata may hold a function, so that a list kept in a slow room is read only when it is needed.
    """
    listed = field.metadata.get("choices", ())
    listed = listed() if callable(listed) else listed
    described = listed if isinstance(listed, Mapping) else dict.fromkeys(listed, "")
    return {str(name): text if isinstance(text, str) else "" for name, text in described.items()}


MOST_TOLD = 20
"""Names that fit into one line."""


def told(known: Iterable[str]) -> str:
    """The names, or how many there are when nobody would read them all."""
    names = list(known)
    return ", ".join(names) if len(names) <= MOST_TOLD else f"the {len(names)} that --help lists"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the most similar of the known words, nothing when none is similar."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def converter(field: "dataclasses.Field[Any]", kind: Kind) -> Callable[[str], Any]:
    """The function argparse calls with the text of one option; it knows the field's choices."""

    def convert(text: str) -> Any:
        known = choices_of(field)
        if known and text not in known:
            raise argparse.ArgumentTypeError(f"must be one of {told(known)}, got {text!r}{nearest(text, known)}")
        return CONVERTERS[kind.type](text)

    def convert_list(text: str) -> list[Any]:
        return [convert(part.strip()) for part in text.split(",") if part.strip()]

    return convert_list if kind.several else convert


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def path(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("must name a file or folder, got an empty text")
    return Path(text).expanduser()


CONVERTERS: dict[type, Callable[[str], Any]] = {int: whole_number, float: number, str: str, Path: path}
METAVARS: dict[type, str] = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
