"""Options: how a field of a config declares one, what the declaration says, and how plain values become a config.

A command has one frozen dataclass: groups of options, or the options themselves. Command line, Python API, YAML file
and run folder are made of it, and all of them check a value here: its type, its choices and its range.
"""

import ast
import inspect
import math
import numbers
import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from archwright.errors import BadInput
from archwright.registry import Registry

Config = TypeVar("Config")
Choices = Iterable[str] | Mapping[str, Any] | Callable[[], Iterable[str] | Mapping[str, Any]]
"""Names, or name -> description; a function is called only when the names are needed."""
CLOSE = 0.7
"""Similarity from which on a word is taken for a mistyped one."""
FEWEST_LETTERS = 3
"""Of a word that may be the beginning of another."""
MOST_NAMES = 20
"""Names that fit into one line of an error."""


def option(
    default: Any = MISSING,
    *,
    choices: Choices = (),
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    metavar: str | None = None,
    fills: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    way_out: str = "",
) -> Any:
    """A dataclass field with its rules: `minimum` and `maximum` may be reached, `above` and `below` may not.

    `fills` is for presets: chosen name -> values of other options that it brings along. `way_out` ends the line that
    a value out of range is answered with.
    """
    bounds = {"minimum": minimum, "maximum": maximum, "above": above, "below": below}
    rules = {"choices": choices, "metavar": metavar, "fills": fills, "way_out": way_out, "bounds": bounds}
    return field(default=default, metadata=rules)


def members(module: str, name: str) -> Callable[[], Mapping[str, str]]:
    """Choices from a table or registry of another room: names and descriptions, read only when needed."""

    def describe() -> Mapping[str, str]:
        table = getattr(import_module(f"archwright.{module}"), name)
        if isinstance(table, Registry):
            return table.descriptions()
        return {key: describe_member(member) for key, member in table.items()}

    return describe


def describe_member(member: Any) -> str:
    """First line of a description, a summary or a docstring."""
    texts = (getattr(member, name, None) for name in ("description", "summary", "__doc__"))
    text = member if isinstance(member, str) else next(filter(None, texts), "")
    return text.strip().splitlines()[0] if text.strip() else ""


@dataclass(frozen=True, eq=False)
class Option:
    """One option of a command: a field with what its type and its metadata say."""

    name: str
    type: type
    """Of one value: int, float, str, bool or Path."""
    several: bool
    """Whether the option holds a tuple of such values."""
    number_too: bool
    """A text that may be given as a number: `str | float`."""
    switch_too: bool
    """A text that may be left out, which is then true: `str | bool`."""
    field: "Field[Any]"

    @property
    def flag(self) -> str:
        return "--" + self.name.rstrip("_").replace("_", "-")  # for_ is --for, a word that Python keeps to itself

    @property
    def required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def metavar(self) -> str | None:
        return self.field.metadata.get("metavar")

    @property
    def presets(self) -> Mapping[str, Mapping[str, Any]]:
        presets: Mapping[str, Mapping[str, Any]] = self.field.metadata.get("fills", {})
        return presets

    def choices(self) -> dict[str, str]:
        """Allowed value -> what it is (may be empty); no entry at all when anything goes."""
        names = self.field.metadata.get("choices", ())
        names = names() if callable(names) else names
        described = names if isinstance(names, Mapping) else dict.fromkeys(names, "")
        return {str(name): text if isinstance(text, str) else "" for name, text in described.items()}

    def parse(self, value: Any) -> Any:
        """A text, a YAML or a Python value as the field declares it; BadInput for one that is not allowed."""
        if not self.several:
            return self._parse_one(value)
        if isinstance(value, str) and self.type is not Path:
            value = [part.strip() for part in value.split(",") if part.strip()]
        return tuple(self._parse_one(item) for item in (value if isinstance(value, list | tuple) else [value]))

    def _parse_one(self, value: Any) -> Any:
        if self.switch_too and str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        parsed = PARSERS[self.type](value) if not (self.number_too and is_number(value)) else value
        if parsed is None:
            raise BadInput(f"{self.flag} must be {KINDS[self.type]}, got {value!r}.")
        if self.type is Path and not str(value).strip():
            raise BadInput(f"{self.flag} must name a file or folder, got an empty text.")
        if isinstance(parsed, float) and not math.isfinite(parsed):
            raise BadInput(f"{self.flag} must be a finite number, got {value!r}.")
        known = self.choices()
        if known and parsed not in known:
            names = ", ".join(known) if len(known) <= MOST_NAMES else f"the {len(known)} that --help lists"
            raise BadInput(f"{self.flag} must be one of {names}, got {parsed!r}{nearest(parsed, known) or '.'}")
        if rule := broken_rule(parsed, self.field.metadata.get("bounds", {})):
            way_out = self.field.metadata["way_out"]
            raise BadInput(f"{self.flag} must {rule}, got {value}{f'; {way_out}' if way_out else ''}.")
        return parsed


def broken_rule(value: Any, bounds: Mapping[str, float | None]) -> str | None:
    """What the value must be and is not, such as "be above 0 and below 1"; None where it keeps to its bounds."""
    minimum, maximum, above, below = (bounds.get(name) for name in ("minimum", "maximum", "above", "below"))
    inside = (
        (minimum is None or value >= minimum)
        and (maximum is None or value <= maximum)
        and (above is None or value > above)
        and (below is None or value < below)
    )
    if inside:
        return None
    if (minimum, maximum, above, below) == (0, None, None, None):
        return "not be negative"
    if minimum is not None and maximum is not None:
        return f"be between {minimum} and {maximum}"
    words = {"at least": minimum, "at most": maximum, "above": above, "below": below}
    return "be " + " and ".join(f"{word} {bound}" for word, bound in words.items() if bound is not None)


def is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def parse_int(value: Any) -> int | None:
    try:
        return int(value) if isinstance(value, str | numbers.Integral) and not isinstance(value, bool) else None
    except ValueError:
        return None


def parse_float(value: Any) -> float | None:
    """Also of a text, because YAML reads 2e-5 as one."""
    try:
        return float(value) if isinstance(value, str) or is_number(value) else None
    except ValueError:
        return None


PARSERS: dict[type, Callable[[Any], Any]] = {
    int: parse_int,
    float: parse_float,
    str: lambda value: value if isinstance(value, str) else None,
    bool: lambda value: value if isinstance(value, bool) else None,
    Path: lambda value: Path(value).expanduser() if isinstance(value, str | os.PathLike) else None,
}
KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    Path: "a path",
}


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the first word that begins so, or the most similar one; nothing when none is near."""
    words = list(known)
    begun = [each for each in words if each.startswith(word)] if len(word.strip("-")) >= FEWEST_LETTERS else []
    close = begun or get_close_matches(word, words, n=1, cutoff=CLOSE)
    return f"; did you mean {close[0]}?" if close else ""


def option_groups(config: type) -> dict[str, type]:
    """The groups of options by their name in the config; the config itself, named "", where it has no groups."""
    hints = get_type_hints(config)
    groups = {f.name: hints[f.name] for f in fields(config) if is_dataclass(hints[f.name])}
    return groups or {"": config}


def config_options(config: type) -> dict[str, Option]:
    """Every option of a config by name, in the order of the help."""
    return {name: each for group in option_groups(config).values() for name, each in group_options(group).items()}


def group_options(group: type) -> dict[str, Option]:
    hints = get_type_hints(group)
    return {f.name: read_declaration(f, hints[f.name]) for f in fields(group)}


def read_declaration(declared: "Field[Any]", hint: Any) -> Option:
    """`tuple[Path, ...] | None` is several of `Path`; `str | float | bool` is a text, a number, or a bare switch."""
    union = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    types = [part for part in union if part is not NoneType]
    several = get_origin(types[0]) is tuple
    kind = get_args(types[0])[0] if several else types[0]
    text = kind is str
    return Option(declared.name, kind, several, text and float in types, text and bool in types, declared)


def make_config(config: type[Config], values: Mapping[str, Any]) -> Config:
    """The config with these values of its options; None means not given, and presets fill in what was not given."""
    options = config_options(config)
    for name in values:
        if name not in options:
            way_out = nearest(name, options) or f"; there are {', '.join(sorted(options))}."
            raise BadInput(f"unknown option {name!r}{way_out}")
    given = {name: options[name].parse(value) for name, value in values.items() if value is not None}
    filled = {**preset_values(config, given), **given}
    if missing := [each.flag for each in options.values() if each.required and each.name not in filled]:
        raise BadInput(f"the following options are required: {', '.join(missing)}.")
    groups = {
        name: group(**{f.name: filled[f.name] for f in fields(group) if f.name in filled})
        for name, group in option_groups(config).items()
    }
    made: Config = groups[""] if "" in groups else config(**groups)
    return made


def preset_values(config: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of other options that the chosen presets bring along."""
    presets = [each for each in config_options(config).values() if each.presets]
    return {k: v for each in presets for k, v in each.presets[given.get(each.name, each.field.default)].items()}


def config_values(config: Any) -> dict[str, Any]:
    """The values of all options by name: the reverse of `make_config`."""
    groups = (getattr(config, name) if name else config for name in option_groups(type(config)))
    return {f.name: getattr(group, f.name) for group in groups for f in fields(group)}


def group_title(group: type) -> str:
    """First line of its docstring, without the dot."""
    doc = inspect.getdoc(group) or ""
    generated = doc.startswith(f"{group.__name__}(")  # what @dataclass writes when there is no docstring
    return group.__name__.lower() if generated or not doc else doc.splitlines()[0].rstrip(".")


def option_docs(group: type) -> dict[str, str]:
    """Option -> the string that follows the field in the source, as one line; base classes included."""
    docs: dict[str, str] = {}
    for cls in reversed([cls for cls in group.__mro__ if is_dataclass(cls)]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        for declaration, doc in pairwise(body.body if isinstance(body, ast.ClassDef) else []):
            match declaration, doc:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = " ".join(text.split())
    return docs


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
