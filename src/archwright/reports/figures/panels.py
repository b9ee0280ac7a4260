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
    x: Axis | str
    """An axis as plotly describes it, or its title."""
    y: Axis | str
    shapes: list[dict[str, Any]] = field(default_factory=list)


def assign_styles(names: Iterable[str]) -> dict[str, Style]:
    """A style for every name, in their order; after eight they repeat."""
    looks = itertools.cycle(zip(COLOURS, SYMBOLS, strict=True))
    return {name: Style(*look) for name, look in zip(dict.fromkeys(names), looks, strict=False)}


def protocol_styles(protocol: Mapping[str, Any], setting: str) -> dict[str, Style]:
    """One style for every value of a setting, the same in all panels and figures of a page."""
    comparisons = [each for group in protocol["groups"] for each in group["comparisons"].values()]
    return assign_styles(name for each in comparisons if each["varied"] == setting for name in each["names"])


def figure(panels: Sequence[Panel], *, columns: int = COLUMNS, height: int = HEIGHT, width: int = 0) -> Figure:
    """Panels in rows of at most `columns`; the legend names each group once. A `width` of 0 sets no limit."""
    wide = max(1, min(columns, len(panels)))
    layout: dict[str, Any] = {
        "grid": {"rows": -(-len(panels) // wide), "columns": wide, "pattern": "independent"},
        "meta": {"panels": len(panels), "columns": wide, "height": height, "width": width},
        "annotations": [],
        "shapes": [],
        "legend": {"orientation": "h"},
    }
    traces: list[Trace] = []
    names: set[str] = set()
    for place, panel in enumerate(panels, 1):
        end = "" if place == 1 else str(place)
        for axis, look in (("xaxis", panel.x), ("yaxis", panel.y)):
            layout[axis + end] = axis_title(look) if isinstance(look, str) else dict(look)
        for shape in panel.shapes:
            refs = {f"{axis}ref": axis + end + (" domain" if shape.get(f"{axis}ref") else "") for axis in "xy"}
            layout["shapes"].append({**shape, **refs})
        if panel.title:
            where = {"xref": f"x{end} domain", "yref": f"y{end} domain", "x": 0, "y": 1}
            look = {"xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 13}, "yshift": 4}
            layout["annotations"].append({"text": f"<b>{plotly_text(panel.title)}</b>", **where, **look})
        for trace in panel.traces:
            name = trace.get("legendgroup")
            first = bool(name) and name not in names and trace.get("showlegend", True)
            names |= {str(name)} if first else set()
            traces.append({**trace, "xaxis": f"x{end}", "yaxis": f"y{end}", "showlegend": first})
    return {"data": traces, "layout": layout}


def plotly_text(value: object) -> str:
    """A name as plotly shows it: its own few tags stay text."""
    return html.escape(str(value), quote=False)


def group(name: str) -> dict[str, Any]:
    """What puts a trace under a name of the legend."""
    return {"name": plotly_text(name), "legendgroup": plotly_text(name)}


def level(y: float, *, dash: str = "dot", colour: str = GREY) -> dict[str, Any]:
    """A line across a panel."""
    line = {"dash": dash, "width": 1.2, "color": colour}
    return {"type": "line", "x0": 0, "x1": 1, "y0": y, "y1": y, "xref": DOMAIN, "line": line}


def ink_on(colour: str) -> str:
    """Black or white, whichever can be read better on this colour (WCAG 2: the ratio of their luminances)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#fff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000"


def axis_title(words: str, **more: Any) -> Axis:
    """An axis with this title, and whatever else plotly knows of an axis."""
    return {"title": {"text": words}, **more}


def scatter(
    x: Sequence[float | str | None], y: Sequence[float | str | None], *, mode: str = "markers", **more: Any
) -> Trace:
    return {"type": "scatter", "mode": mode, "x": list(x), "y": list(y), **more}


def marker(style: Style, size: int) -> dict[str, Any]:
    return {"size": size, "color": style.colour, "symbol": style.symbol}


def line(x: Sequence[float], y: Sequence[float | None], name: str, style: Style, *, step: bool = False) -> Trace:
    """A curve, or a point if that is all there is."""
    return scatter(
        x,
        y,
        mode="lines" if len(x) > 1 else "markers",
        line={"width": 2, "color": style.colour, "shape": "hv" if step else "linear"},
        marker=marker(style, 8),
        hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
        **group(name),
    )


def band(
    x: Sequence[float], mean: Sequence[float], deviation: Sequence[float | None], name: str, style: Style
) -> list[Trace]:
    """The area of one deviation around the mean; nothing where there is only one seed."""
    known = [(at, m, d) for at, m, d in zip(x, mean, deviation, strict=True) if d is not None]
    if not known:
        return []
    edge = [(at, m + d) for at, m, d in known] + [(at, m - d) for at, m, d in reversed(known)]
    red, green, blue = (int(style.colour[at : at + 2], 16) for at in (1, 3, 5))
    fill = {"fill": "toself", "fillcolor": f"rgba({red}, {green}, {blue}, .16)", "line": {"width": 0}}
    xs, ys = [at for at, _ in edge], [y for _, y in edge]
    return [scatter(xs, ys, mode="lines", hoverinfo="skip", **fill, **group(name), showlegend=False)]
