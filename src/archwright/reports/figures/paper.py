"""The figures of Klein et al. 2024 from our runs: functions from a protocol document to plotly's data and layout."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

from archwright.reports.figures.fronts import quantization_figures, single_runs, volume_rectangles
from archwright.reports.figures.panels import (
    COLOURS,
    Figure,
    Panel,
    Style,
    Trace,
    assign_styles,
    axis_title,
    band,
    figure,
    group,
    level,
    line,
    marker,
    plotly_text,
    protocol_styles,
    scatter,
)
from archwright.reports.numbers import number

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


SECONDS = "seconds"


SEARCH = "search"
"""The phase in which the seconds of the trials are counted."""


def regret_curves(protocol: Mapping[str, Any], comparison: str, *, unit: str = SECONDS) -> Figure | None:
    """Mean regret of each name over time with its deviation over seeds, a panel per task; None without such runs."""
    panels = []
    for task in protocol["groups"]:
        if comparison not in task["comparisons"]:
            continue
        compared = task["comparisons"][comparison]
        styles = protocol_styles(protocol, compared["varied"])
        traces: list[Trace] = []
        for name, entry in compared["names"].items():
            curve = entry["over"][unit]
            traces += band(curve["x"], curve["mean"], curve["deviation"], name, styles[name])
            traces.append(line(curve["x"], curve["mean"], name, styles[name]))
        y = axis_title("hypervolume regret", rangemode="tozero")
        panels.append(Panel(task["name"], traces, unit, y))
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


@dataclass(frozen=True)
class PaperFigure:
    """One figure of the paper."""

    title: str
    caption: str
    needs: str
    """What the documents must have; what to run when they do not."""
    draw: Callable[[Mapping[str, Any]], Figure | None]
    """From a document of schema "archwright/protocol/1"; None when its runs are missing."""
    repeats: str = ""
    """Number of a figure that looks the same when there are few tasks; a page then shows only that one."""


PREVIEW = "a preview: `archwright compress --preview MODEL --json FILE`"
METHODS = "two or more methods on one task"
FIGURES: dict[str, PaperFigure] = {
    "2": PaperFigure(
        "Head masks drawn at random from each space",
        "A row is a layer, a filled cell a kept head.",
        PREVIEW,
        mask_gallery,
    ),
    "3": PaperFigure(
        "Sizes of networks drawn at random from each space",
        "How many of the samples have which share of the non-embedding parameters.",
        PREVIEW,
        size_histograms,
    ),
    "4": PaperFigure(
        "Hypervolume as rectangles",
        "The hypervolume of a front is the area of the rectangles between its members and the reference point.",
        "one finished run whose error is a share of 1",
        volume_rectangles,
    ),
    "5": PaperFigure(
        "Hypervolume of the search spaces",
        "One point per seed; higher is better.",
        "weight-sharing runs in two or more spaces, otherwise alike",
        partial(volume_boxes, comparison="spaces"),
    ),
    "6": PaperFigure(
        "Average ranks of the samplers",
        "Over bootstrap samples of tasks and seeds; lower is better.",
        "runs of two or more samplers on the same tasks",
        rank_curves,
    ),
    "7": PaperFigure(
        "Hypervolume of the training strategies",
        "One point per seed; higher is better.",
        "weight-sharing runs of two or more strategies, otherwise alike",
        partial(volume_boxes, comparison="strategies"),
    ),
    "8": PaperFigure(
        "Best test score within each size",
        "Relative to the unpruned model, with lines at 100, 95 and 90 %; bars are one deviation over seeds.",
        "runs with test errors",
        size_bins,
    ),
    "9": PaperFigure(
        "Fronts of single runs on three tasks",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        partial(single_runs, most=3),
    ),
    "10": PaperFigure(
        "Fronts of single runs on every task",
        "The first seed of each method; lower and further left is better.",
        METHODS,
        single_runs,
        repeats="9",
    ),
    "11": PaperFigure(
        "Regret of the samplers in standard NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of standard NAS",
        partial(regret_curves, comparison="standard_samplers"),
    ),
    "12": PaperFigure(
        "Regret of the samplers in weight-sharing NAS",
        "Mean over seeds and one deviation; lower is better.",
        "runs of weight-sharing NAS",
        partial(regret_curves, comparison="samplers"),
    ),
    "13": PaperFigure(
        "Pruning and quantization",
        "Error against the memory of the weights and against measured latency; lower and further left is better.",
        "a comparison with `--compare quantized`",
        quantization_figures,
    ),
}
"""By the number they have in the paper."""
