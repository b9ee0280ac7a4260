"""One number per run: hypervolumes side by side, and the best score within each size."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.figures.parts import (
    Figure,
    Panel,
    Style,
    Trace,
    figure,
    group,
    level,
    looks_of,
    plain_text,
    title,
)


def volume_boxes(protocol: Mapping[str, Any], comparison: str) -> Figure | None:
    """Hypervolume of each name, one point per seed, a panel per task (Figures 5 and 7); None without two names."""
    found = [(of, of["comparisons"].get(comparison)) for of in protocol["groups"]]
    panels = [
        volume_panel(of["name"], compared, looks_of(protocol, compared["varied"]))
        for of, compared in found
        if compared and len(compared["names"]) > 1
    ]
    return figure(panels) if panels else None


def volume_panel(name: str, compared: Mapping[str, Any], looks: Mapping[str, Style]) -> Panel:
    traces = [_box(entry["hypervolume"], method, looks[method]) for method, entry in compared["names"].items()]
    return Panel(name, traces, {"type": "category"}, {**title("hypervolume, at most 4"), "nticks": 6})


def _box(values: list[float], name: str, look: Style) -> Trace:
    return {
        "type": "box",
        "x": [plain_text(name)] * len(values),
        "y": values,
        "boxpoints": "all",
        "jitter": 0.25,
        "pointpos": 0,
        "fillcolor": "rgba(0, 0, 0, 0)",
        "line": {"width": 1.6, "color": look.colour},
        "marker": {"size": 6, "color": look.colour, "symbol": look.symbol},
        "hovertemplate": "%{y:.3f}<extra>%{x}</extra>",
        **group(name),
    }


def size_bins(protocol: Mapping[str, Any]) -> Figure | None:
    """Best test score within each size, relative to the unpruned model (Figure 8); None without test scores."""
    looks = looks_of(protocol, "method")
    panels = [bins_panel(of["bins"], looks, name=of["name"]) for of in protocol["groups"] if of["bins"]]
    return figure(panels, height=340) if panels else None


def bins_panel(bins: Mapping[str, Any], looks: Mapping[str, Style], *, name: str = "") -> Panel:
    """The score of each method over the share that was pruned, with lines at 100, 95 and 90 % of the unpruned model."""
    traces = [_scores(bins, method, looks[method]) for method in bins["methods"]]
    x = {**title("non-embedding parameters pruned, at least"), "tickformat": ".0%"}
    y = {**title("best test score, unpruned = 100 %"), "tickformat": ".0%"}
    lines = [level(1.0, dash="solid"), *(level(share) for share in bins["lines"])]
    return Panel(name, traces, x, y, lines)


def _scores(bins: Mapping[str, Any], method: str, look: Style) -> Trace:
    entries = [(1 - most, entry) for most, entry in zip(bins["shares"], bins["methods"][method], strict=True) if entry]
    spread = [entry["deviation"] for _, entry in entries]
    bars = {"error_y": {"type": "data", "array": spread, "thickness": 1.2, "width": 3, "color": look.colour}}
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [pruned for pruned, _ in entries],
        "y": [entry["mean"] for _, entry in entries],
        "line": {"width": 1.8, "color": look.colour},
        "marker": {"size": 8, "color": look.colour, "symbol": look.symbol},
        "hovertemplate": "%{x:.0%} pruned or more: %{y:.1%}<extra>%{fullData.name}</extra>",
        **(bars if any(d is not None for d in spread) else {}),
        **group(method),
    }
