"""Proxies that `archwright discover` found: those of the package, and the user's own, each a formula in a JSON file."""

import json
import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import from_json, parse
from archwright.proxies.formulas.operations import STATISTICS_REVISION
from archwright.proxies.proxy import Proxy

if TYPE_CHECKING:
    from archwright.probe import Probe

SCHEMA = "archwright/proxy/1"
GALLERY = "discovered.json"
"""Those of the package: a list."""
VARIABLE = "ARCHWRIGHT_PROXIES"
DEFAULT = Path("runs/proxies")


def proxy_folder() -> Path:
    """Where the user's are: the folder that ARCHWRIGHT_PROXIES names, or runs/proxies here."""
    return Path(os.environ.get(VARIABLE) or DEFAULT)


def load_discovered_proxies() -> dict[str, Proxy]:
    """All by name; one of the user's hides one of the package with the same name."""
    gallery = json.loads(files("archwright.proxies.formulas").joinpath(GALLERY).read_text("utf-8"))
    own = [read_proxy_file(file) for file in sorted(proxy_folder().glob("*.json"))] if proxy_folder().is_dir() else []
    return {str(entry["name"]): as_proxy(entry) for entry in (*gallery, *own)}


def read_proxy_file(file: Path) -> dict[str, Any]:
    try:
        entry = json.loads(file.read_text("utf-8"))
        if entry["schema"] == SCHEMA and entry["name"]:
            from_json(entry["json"])
            return dict(entry)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise BadInput(f"{file} must hold a proxy that `archwright discover --save` wrote; delete it or find it again.")


def as_proxy(entry: Mapping[str, Any]) -> Proxy:
    """The formula as a proxy; its text is the content, so that another formula of the same name is another proxy."""
    formula = from_json(entry["json"])
    text = str(formula)
    return Proxy(
        str(entry["name"]), entry.get("summary") or text, measure_formula, (text,), "archwright discover",
        formula.passes, formula.roles, "discovered", content=text, revision=STATISTICS_REVISION,
    )  # fmt: skip


def measure_formula(probe: "Probe", text: str) -> float:
    return parse(text).measure(probe)
