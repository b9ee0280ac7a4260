"""Architectures in files: one config, a list, or one per line."""

import json
from pathlib import Path
from typing import Any

from archwright.errors import BadInput
from archwright.search import Config


def read_configs(file: Path) -> list[Config]:
    """The configs of a file: one, a list, or one per line; of a design.json of `archwright design` its config."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--config must be a readable JSON file, got {file} ({error}).") from error
    try:
        entries = json.loads(text)
    except RecursionError as error:
        raise BadInput(f"--config must be JSON of ordinary depth, {file} is not.") from error
    except json.JSONDecodeError:
        entries = read_lines(text, file)
    configs = [
        entry["config"] if isinstance(entry, dict) and {"schema", "config"} <= set(entry) else entry
        for entry in (entries if isinstance(entries, list) else [entries])
    ]
    if not configs or not all(isinstance(config, dict) for config in configs):
        raise BadInput(f"--config must hold a JSON object, or a list of them, got something else in {file}.")
    return configs


def read_lines(text: str, file: Path) -> list[Any]:
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"--config must be JSON, or JSON on every line, {file} is not ({error}).") from error
