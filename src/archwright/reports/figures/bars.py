"""Distributions: hypervolumes side by side, the best score within each size, and the spaces before any training."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.figures.panels import (
    COLOURS,
    Figure,
    Panel,
    Style,
    Trace,
    axis_title,
    figure,
    group,
    level,
    marker,
    plotly_text,
    protocol_styles,
    scatter,
)

BINS = {"start": 0, "end": 1.0001, "size": 0.04}


def volume_boxes(protocol: Mapping[str, Any], comparison: str) -> Figure | None:
    """Hypervolume of each name, one point per seed, a panel per task (Figures 5 and 7); None without two names."""
    panels = []
    for task in protocol["groups"]:
        compared = task["comparisons"].get(comparison)
        if compared and len(compared["names"]) > 1:
            styles = protocol_styles(protocol, compared["varied"])
            boxes = [box_trace(entry["hypervolume"], name, styles[name]) for name, entry in compared["names"].items()]
            y = axis_title("hypervolume, at most 4", nticks=6)
            panels.append(Panel(task["name"], boxes, {"type": "category"}, y))
    return figure(panels) if panels else None


def box_trace(values: list[float], name: str, style: Style) -> Trace:
    return {
        "type": "box",
        "x": [plotly_text(name)] * len(values),
        "y": values,
        "boxpoints": "all",
        "jitter": 0.25,
        "pointpos": 0,
        "fillcolor": "rgba(0, 0, 0, 0)",
        "line": {"width": 1.6, "color": style.colour},
        "marker": marker(style, 6),
        "hovertemplate": "%{y:.3f}<extra>%{x}</extra>",
        **group(name),
    }


def size_bins(protocol: Mapping[str, Any]) -> Figure | None:
    """Best test score within each size, relative to the unpruned model (Figure 8); None without test scores."""
    styles = protocol_styles(protocol, "method")
    panels = [bins_panel(task["bins"], styles, name=task["name"]) for task in protocol["groups"] if task["bins"]]
    return figure(panels, height=340) if panels else None


def bins_panel(bins: Mapping[str, Any], styles: Mapping[str, Style], *, name: str = "") -> Panel:
    """The score of each method over the share that was pruned, with lines at 100, 95 and 90 % of the unpruned model."""
    traces = []
    for method, entries in bins["methods"].items():
        known = [(1 - most, entry) for most, entry in zip(bins["shares"], entries, strict=True) if entry]
        deviations = [entry["deviation"] for _, entry in known]
        colour = styles[method].colour
        bars = {"error_y": {"type": "data", "array": deviations, "thickness": 1.2, "width": 3, "color": colour}}
        trace = scatter(
            [pruned for pruned, _ in known],
            [entry["mean"] for _, entry in known],
            mode="lines+markers",
            line={"width": 1.8, "color": colour},
            marker=marker(styles[method], 8),
            hovertemplate="%{x:.0%} pruned or more: %{y:.1%}<extra>%{fullData.name}</extra>",
            **(bars if any(deviation is not None for deviation in deviations) else {}),
            **group(method),
        )
        traces.append(trace)
    x = axis_title("non-embedding parameters pruned, at least", tickformat=".0%")
    y = axis_title("best test score, unpruned = 100 %", tickformat=".0%")
    return Panel(name, traces, x, y, [level(1.0, dash="solid"), *(level(share) for share in bins["lines"])])


def mask_gallery(protocol: Mapping[str, Any]) -> Figure | None:
    """A random head mask of every space, layers downwards (Figure 2); None without a preview."""
    panels = []
    for preview in protocol["previews"]:
        for name, space in preview["spaces"].items():
            if not space["gallery"]:
                continue
            mask = space["gallery"][0]  # layers x heads
            heatmap = {
                "type": "heatmap",
                "z": mask,
                "x": list(range(1, len(mask[0]) + 1)),
                "y": list(range(1, len(mask) + 1)),
                **{"zmin": 0, "zmax": 1, "xgap": 2, "ygap": 2, "showscale": False},
                "colorscale": [[0, "rgba(125, 134, 145, .14)"], [1, COLOURS[0]]],
                "hovertemplate": "layer %{y}, head %{x}: %{z}<extra></extra>",
            }
            x = axis_title("head", dtick=2, showgrid=False)
            y = axis_title("layer", autorange="reversed", dtick=1, showgrid=False)
            panels.append(Panel(f"{name}, {preview['model']}", [heatmap], x, y))
    return figure(panels, columns=4, height=280) if panels else None


def size_histograms(protocol: Mapping[str, Any]) -> Figure | None:
    """How large uniformly drawn networks of every space are (Figure 3); None without a preview."""
    bar = {
        "type": "histogram",
        "xbins": BINS,
        "marker": {"color": COLOURS[0]},
        "hovertemplate": "%{x}: %{y}<extra></extra>",
    }
    x = axis_title("share of the non-embedding parameters", tickformat=".0%", range=[0, 1])
    panels = [
        Panel(f"{name}, {preview['model']}", [{**bar, "x": list(space["shares"])}], x, "samples")
        for preview in protocol["previews"]
        for name, space in preview["spaces"].items()
        if space["shares"]
    ]
    return figure(panels, columns=4, height=260) if panels else None
