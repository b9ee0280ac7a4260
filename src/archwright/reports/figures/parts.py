"""What all figures are made of: panels side by side, one style per name, text that cannot become markup."""

import html
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Figure = dict[str, Any]
"""Plotly's `data` and `layout`; colours of axes and background are left to the page, which knows its theme."""
Trace = dict[str, Any]
Axis = dict[str, Any]

COLOURS = ("#1f8fb3", "#d9772b", "#3f9b5c", "#b2559b", "#8a7a2f", "#7268c4", "#c9494f", "#6f7b87")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "triangle-down", "x")
"""Beside the colours, so that a picture can be read without them."""
GREY = "#7d8691"
ORIGINAL = "#c2641f"
COLUMNS, HEIGHT = 3, 300
DOMAIN = "domain"
"""As reference of a shape: along the whole axis, whatever its numbers."""
SHARE_AXIS: Axis = {"title": {"text": "share of the non-embedding parameters"}, "tickformat": ".0%", "range": [0, 1.05]}


@dataclass(frozen=True)
class Style:
    """How one method looks in every figure of a page."""

    colour: str
    symbol: str


@dataclass(frozen=True)
class Panel:
    """One plot of a figure."""

    title: str
    traces: list[Trace]
    x: Axis = field(default_factory=dict)
    y: Axis = field(default_factory=dict)
    shapes: list[dict[str, Any]] = field(default_factory=list)


def styles_of(names: Iterable[str]) -> dict[str, Style]:
    """A style for every name, in their order; after eight they repeat."""
    looks = itertools.cycle(zip(COLOURS, SYMBOLS, strict=True))
    return {name: Style(*look) for name, look in zip(dict.fromkeys(names), looks, strict=False)}


def looks_of(protocol: Mapping[str, Any], varied: str) -> dict[str, Style]:
    """One style for every value of a setting, the same in all panels and figures of a page."""
    compared = [one for of in protocol["groups"] for one in of["comparisons"].values()]
    return styles_of(name for one in compared if one["varied"] == varied for name in one["names"])


def figure(panels: Sequence[Panel], *, columns: int = COLUMNS, height: int = HEIGHT, width: int = 0) -> Figure:
    """Panels in rows of at most `columns`; the legend names each group once. A `width` of 0 sets no limit."""
    wide = max(1, min(columns, len(panels)))
    layout: dict[str, Any] = {
        "grid": {"rows": -(-len(panels) // wide), "columns": wide, "pattern": "independent"},
        "meta": {"panels": len(panels), "columns": wide, "height": height, "width": width},
        "annotations": [_title(panel, place) for place, panel in enumerate(panels, 1) if panel.title],
        "shapes": [{**shape, **_refs(place, shape)} for place, panel in enumerate(panels, 1) for shape in panel.shapes],
        "legend": {"orientation": "h"},
    }
    for place, panel in enumerate(panels, 1):
        layout[f"xaxis{_number(place)}"], layout[f"yaxis{_number(place)}"] = dict(panel.x), dict(panel.y)
    traces = [{**trace, **_axes(place)} for place, panel in enumerate(panels, 1) for trace in panel.traces]
    return {"data": _named_once(traces), "layout": layout}


def plain_text(value: object) -> str:
    """A name as plotly shows it: its own few tags stay text."""
    return html.escape(str(value), quote=False)


def group(name: str) -> dict[str, Any]:
    """What puts a trace under a name of the legend."""
    return {"name": plain_text(name), "legendgroup": plain_text(name)}


def level(y: float, *, dash: str = "dot", colour: str = GREY) -> dict[str, Any]:
    """A line across a panel."""
    return {"type": "line", "x0": 0, "x1": 1, "y0": y, "y1": y, "xref": DOMAIN, "line": _thin(dash, colour)}


def title(text: str) -> dict[str, Any]:
    return {"title": {"text": text}}


def number(network: Mapping[str, Any], *keys: str) -> float | None:
    """What lies at the end of the keys, when it is a number."""
    value: Any = network
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and value == value else None


def _thin(dash: str, colour: str) -> dict[str, Any]:
    return {"dash": dash, "width": 1.2, "color": colour}


def _number(place: int) -> str:
    return "" if place == 1 else str(place)


def _axes(place: int) -> dict[str, str]:
    return {"xaxis": f"x{_number(place)}", "yaxis": f"y{_number(place)}"}


def _refs(place: int, shape: Mapping[str, Any]) -> dict[str, Any]:
    names = {axis: f"{axis}{_number(place)}" for axis in "xy"}
    return {
        f"{axis}ref": f"{name} domain" if shape.get(f"{axis}ref") == DOMAIN else name for axis, name in names.items()
    }


def _title(panel: Panel, place: int) -> dict[str, Any]:
    where = {"xref": f"x{_number(place)} domain", "yref": f"y{_number(place)} domain", "x": 0, "y": 1}
    look = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 13}, "yshift": 4}
    return {"text": f"<b>{plain_text(panel.title)}</b>", **where, **look}


def _named_once(traces: list[Trace]) -> list[Trace]:
    seen: set[str] = set()
    for trace in traces:
        name = trace.get("legendgroup")
        trace["showlegend"] = bool(name) and name not in seen and trace.get("showlegend", True)
        if trace["showlegend"]:
            seen.add(str(name))
    return traces
