"""Correlations as bars with the lines of the baselines (LPZero, Figure 1), and the choices of good architectures."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import (
    COLOURS,
    GREY,
    Figure,
    Panel,
    Trace,
    axis_title,
    figure,
    group,
    plotly_text,
    scatter,
)
from archwright.reports.numbers import count, decimal, number, shorten
from archwright.reports.rank.rows import (
    BASELINE,
    DEPTH_WIDTH,
    PARAMETERS,
    STATISTICS,
    Document,
    Row,
    Statistic,
    baseline_row,
    origin,
    row_interval,
    sort_rows,
)

LOOKS = {BASELINE: GREY, "published": COLOURS[0], "own": COLOURS[2], "discovered": COLOURS[3]}
OTHER = COLOURS[4]
LINES = {"parameters": (PARAMETERS, COLOURS[6], ""), "depth and width": (DEPTH_WIDTH, COLOURS[1], "dash")}
"""Baselines drawn across all bars: rows, colour, dash."""
ROW, SPACE_AROUND = 21, 90
SHADE = "rgba(125, 134, 145, .22)"


def bar_figures(document: Document) -> dict[tuple[str, ...], Figure]:
    """A figure for every statistic that some row has."""
    figures: dict[tuple[str, ...], Figure] = {}
    for statistic in STATISTICS:
        rows = [row for row in sort_rows(document, statistic.key) if number(row, statistic.key) is not None]
        if statistic.bar and rows:
            figures[statistic.bar,] = bar_figure(document, statistic, rows)
    return figures


def bar_figure(document: Document, statistic: Statistic, rows: Sequence[Row]) -> Figure:
    """Rows from the largest down, coloured by origin, with intervals, the baselines' lines and the noise ceiling."""
    bottom = len(rows) - 0.4
    traces: list[Trace] = []
    ceiling = number(document.get("noise_ceiling") or {}, statistic.ceiling)
    if ceiling is not None:  # what no predictor can reach, because training itself is noisy
        look = {"fill": "toself", "fillcolor": SHADE, "line": {"width": 0, "color": GREY}, "hoverinfo": "skip"}
        look |= group(f"above the noise ceiling {decimal(ceiling)}")
        traces.append(scatter([ceiling, 1, 1, ceiling], [-0.6, -0.6, bottom, bottom], mode="lines", **look))
    traces += [bar_trace(rows, kind, statistic.key) for kind in dict.fromkeys(origin(row) for row in rows)]
    for name, (names, colour, dash) in LINES.items():
        value = number(baseline_row(document, names), statistic.key)
        if value:
            line = {"color": colour, "width": 2, **({"dash": dash} if dash else {})}
            look = {"line": line, "hoverinfo": "skip", **group(f"{name} {decimal(value)}")}
            traces.append(scatter([value, value], [-0.6, bottom], mode="lines", **look))
    labels = [plotly_text(shorten(str(row.get("proxy")))) for row in rows]
    ticks = {"tickvals": list(range(len(rows))), "ticktext": labels}
    y = {**ticks, "range": [bottom, -0.6], "showgrid": False, "tickfont": {"size": 11}}
    panel = Panel("", traces, axis_title(statistic.bar, side="top", zeroline=True), y)
    return figure([panel], columns=1, height=ROW * len(rows) + SPACE_AROUND)


def bar_trace(rows: Sequence[Row], kind: str, key: str) -> Trace:
    places = [place for place, row in enumerate(rows) if origin(row) == kind]
    values = [number(rows[place], key) or 0.0 for place in places]
    low, high = ([number(rows[place], f"{key}_{end}") for place in places] for end in ("low", "high"))
    below, above = (
        [0.0 if end is None else abs(end - value) for end, value in zip(ends, values, strict=True)]
        for ends in (low, high)
    )
    bars = {"type": "data", "array": above, "arrayminus": below, "thickness": 1.1, "width": 2, "color": "#59616c"}
    hover = [f"{rows[place].get('proxy')}: {row_interval(rows[place], key, digits=3)}" for place in places]
    return {
        "type": "bar",
        "orientation": "h",
        "x": [round(value, 4) for value in values],
        "y": places,
        "text": [plotly_text(text) for text in hover],
        "textposition": "none",
        "marker": {"color": LOOKS.get(kind, OTHER)},
        "error_x": bars,
        "hovertemplate": "%{text}<extra></extra>",
        **group(kind),
    }


Entry = Mapping[str, Any]
"""One value of one choice: its architectures `n`, their `mean` score, and its shares of all and of the best."""
MEAN, TOP = "mean trained score", "share of the top 10 %"
SHARES = {"top_share": ("of the top 10 %", "circle", COLOURS[0]), "share": ("of all", "circle-open", COLOURS[1])}
MOST_CHOICES = 16
"""So many choices are shown: those that explain most of the trained score."""
MOST_WORDS = 12
"""More values than this are drawn along an axis of numbers."""
FEW = 5
"""Values that fewer networks have do not count for what a choice explains."""


def xray_figures(entries: Sequence[Entry]) -> dict[tuple[str, ...], Figure]:
    """Mean trained score, and share of the best, for every value of the choices that matter most.

    All panels of means share the range of the numbers, so that they can be compared.
    """
    choices = important_choices(entries)
    means = [mean for entry in entries if (mean := number(entry, "mean")) is not None]
    room = ((max(means) - min(means)) * 0.08 if means else 0.0) or 0.05
    ends = {"range": [min(means) - room, max(means) + room]} if means else {}
    mean_panels, share_panels = [], []
    for choice, values in choices.items():
        x = {"type": "linear" if has_number_axis(values) else "category", "nticks": 8}
        trace = value_trace(values, "mean", "circle", COLOURS[0])
        mean_panels.append(Panel(choice, [trace], x, axis_title(MEAN, **ends)))
        traces = [
            {**value_trace(values, key, symbol, colour), **group(words)}
            for key, (words, symbol, colour) in SHARES.items()
            if any(number(entry, key) is not None for entry in values)
        ]
        share_panels.append(Panel(choice, traces, x, axis_title("share", tickformat=".0%", range=[-0.05, 1.05])))
    panels = {MEAN: mean_panels, TOP: share_panels} if choices else {}
    return {(words,): figure(each, columns=4, height=250) for words, each in panels.items()}


def important_choices(entries: Sequence[Entry], most: int = MOST_CHOICES) -> dict[str, list[Entry]]:
    """Entries by choice, in their order; of many choices only those whose values differ most, none without a choice."""
    choices: dict[str, list[Entry]] = {}
    for entry in entries:
        choices.setdefault(str(entry.get("choice")), []).append(entry)
    choices = {name: values for name, values in choices.items() if len(values) > 1}
    best = sorted(choices, key=lambda name: -variance_between(choices[name]))[:most]
    return {name: values for name, values in choices.items() if name in best}


def variance_between(values: Sequence[Entry]) -> float:
    """Variance between the means of values that some networks have, weighted by their number."""
    numbers = [(number(entry, "n") or 0.0, number(entry, "mean")) for entry in values]
    pairs = [(n, mean) for n, mean in numbers if mean is not None and n >= FEW]
    total = sum(n for n, _ in pairs) or 1.0
    centre = sum(n * mean for n, mean in pairs) / total
    return sum(n * (mean - centre) ** 2 for n, mean in pairs) / total


def value_trace(values: Sequence[Entry], key: str, symbol: str, colour: str) -> Trace:
    total = sum(number(entry, "n") or 0.0 for entry in values) or 1.0
    numeric = all(number(entry, "value") is not None for entry in values)
    hover = []
    for entry in values:
        share = number(entry, "top_share")
        best = "" if share is None else f", {share:.0%} of the top 10 %"
        mean, networks = decimal(number(entry, "mean")), count(number(entry, "n"))
        hover.append(plotly_text(f"{entry.get('value')}: mean {mean}, {networks} networks{best}"))
    sizes = [round(7 + 9 * (number(entry, "n") or 0.0) / total, 1) for entry in values]
    return scatter(
        [number(entry, "value") if has_number_axis(values) else plotly_text(entry.get("value")) for entry in values],
        [number(entry, key) for entry in values],
        mode="lines+markers" if numeric and len(values) <= MOST_WORDS else "markers",
        text=hover,
        marker={"size": sizes, "color": colour, "symbol": symbol},
        line={"width": 1.2, "color": GREY},
        hovertemplate="%{text}<extra></extra>",
    )


def has_number_axis(values: Sequence[Entry]) -> bool:
    """Whether there are too many values to name each below the axis."""
    return len(values) > MOST_WORDS and all(number(entry, "value") is not None for entry in values)
