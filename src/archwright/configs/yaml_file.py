"""A config as a YAML file: one flat key per option, below a comment with the title of its group."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from archwright.configs.options import config_options, config_values, group_title, nearest, option_groups
from archwright.errors import BadInput


def read_config(path: Path, config: type) -> dict[str, Any]:
    """The options that the file gives, by name and of the declared types, for `make_config`; null means not given."""
    options, values = config_options(config), {}
    for key, value in read_mapping(path).items():
        name = str(key).replace("-", "_")
        if name not in options:
            way_out = nearest(name, options) or "; `--help` lists the options."
            raise BadInput(f"{path}: unknown option {str(key)!r}{way_out}")
        try:
            values[name] = None if value is None else options[name].parse(value)
        except BadInput as error:
            raise BadInput(f"{path}: {error}") from None
    return {name: value for name, value in values.items() if value is not None}


def read_mapping(path: Path) -> Mapping[Any, Any]:
    import yaml  # type: ignore[import-untyped]

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise BadInput(f"{path} must be YAML, such as `trials: 100`; it is not{where} ({reason}).") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadInput(f"{path} must have one line per option, such as `trials: 100`, got a {type(content).__name__}.")
    return content


def config_text(config: Any, *, title: str) -> str:
    """All options of the config as YAML; `title` is the comment at the top."""
    import yaml

    values, lines = config_values(config), [f"# {title}"]
    for group in option_groups(type(config)).values():
        lines += ["", f"# {group_title(group)}"]
        for name in (f.name for f in fields(group)):
            value = yaml.safe_dump(
                plain_value(values[name]), default_flow_style=True, width=float("inf"), allow_unicode=True
            )
            lines.append(f"{name}: {value.strip().removesuffix('...').strip()}")  # a scalar ends with the dots
    return "\n".join(lines) + "\n"


def plain_value(value: Any) -> Any:
    """As YAML knows it: paths are texts, tuples are lists."""
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def write_config(path: Path, config: Any, *, title: str = "Options; `--options FILE` reads them.") -> None:
    """Writes all options of the config to a file that `read_config` understands.

    Only its owner can read it: the address of a store may hold a password.
    """
    from archwright.store import write_atomic

    write_atomic(path, config_text(config, title=title), mode=0o600)
