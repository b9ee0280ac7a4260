"""Architectures in files: one config, a list, or one per line."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.search import Config

if TYPE_CHECKING:
    pass


def read_configs(file: Path) -> list[Config]:
    """The configs of a file: one, a list, or one per line."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--config must be a readable JSON file, got {file} ({error}).") from error
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise BadInput(f"--config must be JSON of ordinary depth, {file} is not.") from error
    except json.JSONDecodeError:
        found = [parsed(line, file) for line in text.splitlines() if line.strip()]
    configs = [designed(one) for one in (found if isinstance(found, list) else [found])]
    if not configs or not all(isinstance(config, dict) for config in configs):
        raise BadInput(f"--config must hold a JSON object, or a list of them, got something else in {file}.")
    return configs


def designed(entry: Any) -> Any:
    """The config that `archwright design` found, where this is its design.json; anything else as it is."""
    return entry["config"] if isinstance(entry, dict) and {"schema", "config"} <= set(entry) else entry


def parsed(line: str, file: Path) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"--config must be JSON, or JSON on every line, {file} is not ({error}).") from error
