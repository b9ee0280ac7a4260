"""What happened over trials or time: regret with its spread over seeds, average ranks, raw hypervolumes."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from archwright.reports.figures.panels import (
    Figure,
    Panel,
    Trace,
    assign_styles,
    axis_title,
    band,
    figure,
    line,
    protocol_styles,
)
from archwright.reports.numbers import number

SECONDS = "seconds"
SEARCH = "search"
"""The phase in which the seconds of the trials are counted."""


def regret_curves(protocol: Mapping[str, Any], comparison: str, *, unit: str = SECONDS) -> Figure | None:
    """Mean regret of each name over time with its deviation over seeds, a panel per task; None without such runs."""
    panels = []
    for group in protocol["groups"]:
        if comparison not in group["comparisons"]:
            continue
        compared = group["comparisons"][comparison]
        styles = protocol_styles(protocol, compared["varied"])
        traces: list[Trace] = []
        for name, entry in compared["names"].items():
            curve = entry["over"][unit]
            traces += band(curve["x"], curve["mean"], curve["deviation"], name, styles[name])
            traces.append(line(curve["x"], curve["mean"], name, styles[name]))
        y = axis_title("hypervolume regret", rangemode="tozero")
        panels.append(Panel(group["name"], traces, unit, y))
    return figure(panels) if panels else None


def rank_curves(protocol: Mapping[str, Any]) -> Figure | None:
    """Average ranks over trials or time, a panel per kind of search and model (Figure 6); None without two samplers."""
    panels = []
    for ranking in protocol["ranks"]:
        styles = protocol_styles(protocol, ranking["varied"])
        traces = [line(ranking["steps"], ranks, name, styles[name]) for name, ranks in ranking["ranks"].items()]
        tasks = len(ranking["tasks"])
        name = f"{ranking['name']}, {tasks} {'task' if tasks == 1 else 'tasks'}"
        panels.append(Panel(name, traces, ranking["unit"], "average rank, 1 is best"))
    return figure(panels, columns=2) if panels else None


def volume_curves(methods: Mapping[str, Mapping[str, Any]]) -> dict[str, Figure]:
    """Raw hypervolume of each method over time and over trials."""
    styles = assign_styles(methods)
    axes = {"time": SECONDS, "trials": "trials"}
    traces: dict[str, list[Trace]] = {label: [] for label in axes}
    for name, method in methods.items():
        values = method.get("hypervolume_over_time") or []
        seconds = trial_seconds(method)
        if values and len(seconds) == len(values):
            last = max(seconds[-1], method.get("seconds") or 0.0)
            traces["time"].append(line([*seconds, last], [*values, values[-1]], name, styles[name], step=True))
        if values:
            traces["trials"].append(line(range(1, len(values) + 1), values, name, styles[name], step=True))
    y = axis_title("hypervolume", nticks=6)
    return {
        label: figure([Panel("", curves, axis_title(axes[label], rangemode="tozero"), y)], columns=1, height=360)
        for label, curves in traces.items()
        if curves
    }


def trial_seconds(method: Mapping[str, Any]) -> list[float]:
    """When each trial was done, training before the search included; those without a time are left out."""
    phases = method.get("seconds_by_phase") or {}
    start = sum(value or 0.0 for _, value in takewhile(lambda phase: phase[0] != SEARCH, phases.items()))
    times = [number(row, "seconds") for row in method.get("trials") or []]
    return [start + time for time in times if time is not None]
