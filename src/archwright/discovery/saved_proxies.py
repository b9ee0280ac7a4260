"""Found proxies on disk: one JSON file each, with where they come from."""

import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archwright.errors import BadInput
from archwright.proxies import PROXIES
from archwright.proxies.formulas.discovered import SCHEMA, proxy_folder
from archwright.store import write_whole

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_name(name: str | None) -> None:
    """Raises BadInput for what cannot be the name of a proxy."""
    if name is not None and not NAME.fullmatch(name):
        raise BadInput(f"--save must be a name of small letters, digits and _, at most 40, got {name!r}.")
    if name is not None and name in PROXIES and PROXIES[name].origin not in ("discovered",):
        raise BadInput(f"--save must be a name of its own, {name!r} is a listed proxy; choose another.")


def save(name: str, best: Mapping[str, Any], provenance: Mapping[str, Any]) -> Path:
    """The file of the proxy; one of the same name that was found before is replaced."""
    numbers = ("formula", "json", "size", "train", "held_out", "within_cells", "kendall_b", "verdict")
    entry = {"schema": SCHEMA, "name": name, **{key: best[key] for key in numbers}, "provenance": dict(provenance)}
    place = proxy_folder()
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / f"{name}.json", json.dumps(entry, indent=1))
    return place / f"{name}.json"


def commit() -> str | None:
    """Of the code that runs, where it is a git checkout."""
    where = Path(__file__).parents[1]
    words = ["git", "-C", str(where), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
