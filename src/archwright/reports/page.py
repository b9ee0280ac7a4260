"""One HTML file from a result: the data goes in as JSON, the scripts beside this file draw it."""

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from archwright.reports.measures import measure_of
from archwright.reports.studies import study_sections
from archwright.reports.words import commands, headline, preview_headline, title


def report_html(result: Mapping[str, Any]) -> str:
    """A page that opens from disk without any network: front, layers, numbers and how they were made.

    `result` is the content of a `compress --json` file, schema "archwright/compress/1"; any number may be None.
    """
    measure = measure_of(result)
    view = {
        "result": result,
        "headline": headline(result),
        "commands": [commands(result, member) for member in result["front"]],
        "measure": measure.key,
        "error_note": measure.explained.format(metric=result.get("metric") or "metric"),
        "sections": study_sections(result),
    }
    return _page("report.html", view, title(result))


def panels_page(view: Mapping[str, Any], name: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """A page of sections: `eyebrow`, `title`, `lead`, `cards`, `sections` (see panels.py) and `footer`.

    `styles` and `scripts` are further files of this room that the sections need.
    """
    more = {"styles": "\n".join(map(_source, styles)), "scripts": "\n".join(map(_source, scripts))}
    return _page("panels.html", view, name, more)


def preview_html(preview: Mapping[str, Any]) -> str:
    """A page with mask gallery and size histograms of every space (Klein et al. 2024, Figures 2 and 3).

    `preview` has the schema "archwright/preview/1"; sizes are shares of the non-embedding parameters.
    """
    view = {"preview": preview, "headline": preview_headline(preview)}
    return _page("preview.html", view, f"{preview['model']}: what can be removed")


def embed(value: Any) -> str:
    """JSON that is safe between script tags, with null for every number JSON does not know."""
    text = json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _page(template: str, view: Mapping[str, Any], name: str, more: Mapping[str, str] | None = None) -> str:
    """Fills the template in one pass, so a value that looks like a placeholder stays text."""
    escaped = html.escape(name).encode("utf-8", "replace").decode("utf-8")
    values = {"title": escaped, "data": embed(view), **(more or {})}

    def filled(match: re.Match[str]) -> str:
        return values[match[1]] if match[1] in values else _source(match[1])

    return re.sub(r"\{\{ ([\w.]+) \}\}", filled, _own(template))


def _source(name: str) -> str:
    text = files("plotly").joinpath("package_data", name).read_text("utf-8") if name in _PLOTLY else _own(name)
    return re.sub(r"</(script|style)", r"<\\/\1", text, flags=re.IGNORECASE)


def _own(name: str) -> str:
    return files("archwright.reports").joinpath(name).read_text("utf-8")


_PLOTLY = frozenset({"plotly.min.js"})
