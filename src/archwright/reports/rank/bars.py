"""Correlations as bars with the lines of the baselines (LPZero, Figure 1), and the space under an x-ray."""

from collections.abc import Sequence

from archwright.reports.figures.parts import COLOURS, GREY, Figure, Panel, Trace, figure, group, plain_text, title
from archwright.reports.rank.rows import (
    BASELINE,
    DEPTH_WIDTH,
    PARAMETERS,
    Document,
    Row,
    bounds,
    decimal,
    kind_of,
    known,
    ranked,
    reference,
)
from archwright.reports.rank.terminal import shortened

LOOKS = {BASELINE: GREY, "published": COLOURS[0], "own": COLOURS[2], "discovered": COLOURS[3]}
OTHER = COLOURS[4]
LINES = {"parameters": (PARAMETERS, COLOURS[6], ""), "depth and width": (DEPTH_WIDTH, COLOURS[1], "dash")}
"""Baselines drawn across all bars: rows, colour, dash."""
STATISTICS = {
    "Spearman": ("spearman", "value"),
    "Kendall tau-b": ("kendall_b", ""),
    "within cells": ("within_cells", "within_cells"),
    "minus depth, width": ("minus_depth_width", ""),
    "minus parameters": ("minus_parameters", ""),
}
"""What a bar can show: its key in a row, and its key in the noise ceiling."""
ROW, SPACE_AROUND = 21, 90
SHADE = "rgba(125, 134, 145, .22)"


def bar_figures(document: Document) -> dict[tuple[str, ...], Figure]:
    """A figure for every statistic that some row has."""
    found = {
        name: [row for row in ranked(document, key) if known(row, key) is not None]
        for name, (key, _) in STATISTICS.items()
    }
    return {(name,): bars(document, name, rows) for name, rows in found.items() if rows}


def bars(document: Document, statistic: str, rows: Sequence[Row]) -> Figure:
    """Rows from the largest down, coloured by origin, with intervals, the baselines' lines and the noise ceiling."""
    key, ceiling = STATISTICS[statistic]
    names = [shortened(str(row.get("proxy")), 26) for row in rows]
    kinds = dict.fromkeys(kind_of(row) for row in rows)
    traces = [*band(document, ceiling, len(rows)), *(bar(rows, kind, key) for kind in kinds)]
    traces += [
        line(document, name, key, len(rows)) for name in LINES if known(reference(document, LINES[name][0]), key)
    ]
    ticks = {"tickvals": list(range(len(rows))), "ticktext": [plain_text(name) for name in names]}
    y = {**ticks, "range": [len(rows) - 0.4, -0.6], "showgrid": False, "tickfont": {"size": 11}}
    panel = Panel("", traces, {**title(statistic), "side": "top", "zeroline": True}, y)
    return figure([panel], columns=1, height=ROW * len(rows) + SPACE_AROUND)


def bar(rows: Sequence[Row], kind: str, key: str) -> Trace:
    places = [place for place, row in enumerate(rows) if kind_of(row) == kind]
    values = [known(rows[place], key) or 0.0 for place in places]
    ends = [[known(rows[place], f"{key}_{end}") for place in places] for end in ("low", "high")]
    above, below = (
        [0.0 if end is None else abs(end - value) for end, value in zip(of, values, strict=True)]
        for of in reversed(ends)
    )
    words = [
        f"{rows[place].get('proxy')}: {decimal(known(rows[place], key), 3)} {ranged(rows[place], key)}"
        for place in places
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "x": [round(value, 4) for value in values],
        "y": places,
        "text": [plain_text(text) for text in words],
        "textposition": "none",
        "marker": {"color": LOOKS.get(kind, OTHER)},
        "error_x": {
            "type": "data",
            "array": above,
            "arrayminus": below,
            "thickness": 1.1,
            "width": 2,
            "color": "#59616c",
        },
        "hovertemplate": "%{text}<extra></extra>",
        **group(kind),
    }


def ranged(row: Row, key: str) -> str:
    interval = bounds(row, key)
    return f"({interval})" if interval else ""


def line(document: Document, name: str, key: str, rows: int) -> Trace:
    """One baseline's number across all bars."""
    names, colour, dash = LINES[name]
    value = known(reference(document, names), key) or 0.0
    look = {"color": colour, "width": 2, **({"dash": dash} if dash else {})}
    where = {"x": [value, value], "y": [-0.6, rows - 0.4], "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines", "line": look, **where, **group(f"{name} {decimal(value)}")}


def band(document: Document, key: str, rows: int) -> list[Trace]:
    """What no predictor can reach, because training itself is noisy."""
    value = known(document.get("noise_ceiling") or {}, key)
    if value is None:
        return []
    corners = {"x": [value, 1, 1, value], "y": [-0.6, -0.6, rows - 0.4, rows - 0.4]}
    look = {"fill": "toself", "fillcolor": SHADE, "line": {"width": 0, "color": GREY}, "hoverinfo": "skip"}
    return [
        {"type": "scatter", "mode": "lines", **corners, **look, **group(f"above the noise ceiling {decimal(value)}")}
    ]
