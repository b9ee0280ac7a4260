"""What happened over trials or time: regret with its spread over seeds, average ranks, raw hypervolumes."""

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from archwright.reports.figures.parts import (
    Figure,
    Panel,
    Style,
    Trace,
    figure,
    group,
    looks_of,
    number,
    styles_of,
    title,
)

SECONDS = "seconds"
SEARCH = "search"
"""The phase in which the seconds of the trials are counted."""


def line(x: Sequence[float], y: Sequence[float | None], name: str, look: Style, *, step: bool = False) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines" if len(x) > 1 else "markers",
        "x": list(x),
        "y": list(y),
        "line": {"width": 2, "color": look.colour, "shape": "hv" if step else "linear"},
        "marker": {"size": 8, "color": look.colour, "symbol": look.symbol},
        "hovertemplate": "%{y:.3f}<extra>%{fullData.name}</extra>",
        **group(name),
    }


def band(
    x: Sequence[float], mean: Sequence[float], deviation: Sequence[float | None], name: str, look: Style
) -> list[Trace]:
    """The area of one deviation around the mean; nothing where there is only one seed."""
    spread = [(at, m, d) for at, m, d in zip(x, mean, deviation, strict=True) if d is not None]
    if not spread:
        return []
    there = [(at, m + d) for at, m, d in spread] + [(at, m - d) for at, m, d in reversed(spread)]
    fill = {
        "fill": "toself",
        "fillcolor": faded(look.colour),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "mode": "lines",
    }
    points = {"x": [at for at, _ in there], "y": [y for _, y in there]}
    return [{"type": "scatter", **points, **fill, **group(name), "showlegend": False}]


def faded(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, .16)"


def regret_curves(protocol: Mapping[str, Any], comparison: str, *, unit: str = SECONDS) -> Figure | None:
    """Mean regret of each name over time with its deviation over seeds, a panel per task; None without such runs."""
    found = [(of, of["comparisons"][comparison]) for of in protocol["groups"] if comparison in of["comparisons"]]
    panels = [
        Panel(
            of["name"],
            curve_traces(compared, unit, looks_of(protocol, compared["varied"])),
            title(unit),
            {**title("hypervolume regret"), "rangemode": "tozero"},
        )
        for of, compared in found
    ]
    return figure(panels) if panels else None


def curve_traces(compared: Mapping[str, Any], unit: str, looks: Mapping[str, Style]) -> list[Trace]:
    traces = []
    for name, entry in compared["names"].items():
        curve = entry["over"][unit]
        traces += band(curve["x"], curve["mean"], curve["deviation"], name, looks[name])
        traces.append(line(curve["x"], curve["mean"], name, looks[name]))
    return traces


def rank_curves(protocol: Mapping[str, Any]) -> Figure | None:
    """Average ranks over trials or time, a panel per kind of search and model (Figure 6); None without two samplers."""
    panels = []
    for ranked in protocol["ranks"]:
        looks = looks_of(protocol, ranked["varied"])
        traces = [line(ranked["steps"], ranks, name, looks[name]) for name, ranks in ranked["ranks"].items()]
        tasks = len(ranked["tasks"])
        name = f"{ranked['name']}, {tasks} {'task' if tasks == 1 else 'tasks'}"
        panels.append(Panel(name, traces, title(ranked["unit"]), title("average rank, 1 is best")))
    return figure(panels, columns=2) if panels else None


def volume_curves(methods: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """Raw hypervolume of each method over time and over trials."""
    looks = styles_of(methods)
    axes = {"time": SECONDS, "trials": "trials"}
    traces: dict[str, list[Trace]] = {label: [] for label in axes}
    for name, method in methods.items():
        values = method.get("hypervolume_over_time") or []
        seconds = seconds_of(method)
        if values and len(seconds) == len(values):
            last = max(seconds[-1], method.get("seconds") or 0.0)
            traces["time"].append(line([*seconds, last], [*values, values[-1]], name, looks[name], step=True))
        if values:
            traces["trials"].append(line(range(1, len(values) + 1), values, name, looks[name], step=True))
    axis = {**title("hypervolume"), "nticks": 6}
    return {
        label: figure([Panel("", drawn, {**title(axes[label]), "rangemode": "tozero"}, axis)], columns=1, height=360)
        for label, drawn in traces.items()
        if drawn
    }


def seconds_of(method: Mapping[str, Any]) -> list[float]:
    """When each trial was done, training before the search included; those without a time are left out."""
    phases = method.get("seconds_by_phase") or {}
    began = sum(value or 0.0 for _, value in takewhile(lambda phase: phase[0] != SEARCH, phases.items()))
    times = [number(row, "seconds") for row in method.get("trials") or []]
    return [began + time for time in times if time is not None]
