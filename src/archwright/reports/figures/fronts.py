"""Errors against sizes: the fronts of several methods in one picture, and the hypervolume as rectangles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.reports.figures.panels import (
    ORIGINAL,
    SHARE_AXIS,
    Axis,
    Figure,
    Panel,
    Style,
    Trace,
    assign_styles,
    axis_title,
    figure,
    group,
    marker,
    plotly_text,
    protocol_styles,
    scatter,
)
from archwright.reports.numbers import DASH, ErrorFormat, error_format, number, percent

Network = Mapping[str, Any]
Point = tuple[float, float]


@dataclass(frozen=True)
class SizeAxis:
    """One meaning of small: what it is called, where its number lies in a network, and its axis."""

    label: str
    keys: tuple[str, ...]
    axis: Axis


SIZES: dict[str, SizeAxis] = {
    "share": SizeAxis("share", ("nonembedding_share",), SHARE_AXIS),
    "parameters": SizeAxis(
        "parameters",
        ("parameters",),
        axis_title("parameters, embeddings included", tickformat="~s", rangemode="tozero"),
    ),
    "flops": SizeAxis(
        "FLOPs", ("flops",), axis_title("FLOPs of one forward pass", tickformat="~s", rangemode="tozero")
    ),
    "latency": SizeAxis(
        "latency",
        ("latency_ms", "median"),
        axis_title("measured latency, median", ticksuffix=" ms", rangemode="tozero"),
    ),
}
ERRORS = {"validation_error": "validation", "test_error": "test"}


def fronts_panel(
    fronts: Mapping[str, Sequence[Network]],
    original: Network,
    errors: ErrorFormat,
    *,
    styles: Mapping[str, Style],
    name: str = "",
    error: str = "test_error",
    size: SizeAxis = SIZES["share"],
) -> Panel:
    """One point per member of each front, a staircase through those nothing of their front beats, and the original."""
    traces = [
        trace
        for method, front in fronts.items()
        for trace in front_traces(front, method, styles[method], errors, error, size)
    ]
    whole = {"nonembedding_share": 1.0, **original}
    for x, y in plot_points([whole], error, size).values():
        look = {"size": 13, "color": ORIGINAL, "symbol": "diamond-open", "line": {"width": 2}}
        hover = [network_hover("original, fine-tuned", whole, errors)]
        more = {"text": hover, "hovertemplate": "%{text}<extra></extra>", **group("original")}
        traces.append(scatter([x], [y], cliponaxis=False, marker=look, **more))
    return Panel(name, traces, dict(size.axis), axis_title(f"{ERRORS[error]} {errors.word}", **errors.axis))


def front_traces(
    front: Sequence[Network], name: str, style: Style, errors: ErrorFormat, error: str, size: SizeAxis
) -> list[Trace]:
    points = plot_points(front, error, size)
    stairs = pareto_front(list(points.values()))
    line = {"shape": "hv", "width": 1.8, "color": style.colour}
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    return [
        scatter(
            [x for x, _ in stairs],
            [y for _, y in stairs],
            mode="lines",
            hoverinfo="skip",
            line=line,
            **group(name),
            showlegend=False,
        ),
        scatter(
            xs,
            ys,
            cliponaxis=False,
            marker=marker(style, 9),
            text=[network_hover(name, front[place], errors) for place in points],
            hovertemplate="%{text}<extra></extra>",
            **group(name),
        ),
    ]


def plot_points(networks: Sequence[Network], error: str, size: SizeAxis = SIZES["share"]) -> dict[int, Point]:
    """Size and error of the networks that have both, by their place in the list."""
    pairs = [(number(network, *size.keys), number(network, error)) for network in networks]
    return {place: (x, y) for place, (x, y) in enumerate(pairs) if x is not None and y is not None}


def network_hover(name: str, network: Network, errors: ErrorFormat) -> str:
    """What a point says: its name, its errors and its size."""
    trial = network.get("trial")
    lines = [f"{split} {errors.word} {errors.show(number(network, key), 2)}" for key, split in ERRORS.items()]
    latency = number(network, "latency_ms", "median")
    speed = [f"latency {latency:.2f} ms"] if latency is not None else []
    share = f"{percent(number(network, 'nonembedding_share'), 1)} of the non-embedding parameters"
    head = plotly_text(name if trial is None else f"{name}, trial {trial}")
    return "<br>".join([f"<b>{head}</b>", *lines, share, *speed]).replace(DASH, "not measured")


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Points that no other beats in both numbers, from left to right."""
    front: list[Point] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front


def single_runs(protocol: Mapping[str, Any], *, most: int | None = None) -> Figure | None:
    """The fronts of one run of each method, a panel per task (Figures 9 and 10); None without two methods."""
    styles = protocol_styles(protocol, "method")
    panels = []
    for task in protocol["groups"]:
        fronts = first_fronts(task)
        if len(fronts) > 1:
            tested = any(number(member, "test_error") is not None for run in task["runs"] for member in run["front"])
            error = "test_error" if tested else "validation_error"
            original, errors = task["original"], error_format(task)
            panels.append(fronts_panel(fronts, original, errors, styles=styles, name=task["name"], error=error))
    return figure(panels[:most], height=340) if panels else None


def first_fronts(task: Mapping[str, Any]) -> dict[str, list[Network]]:
    """Method -> front of its run with the smallest seed."""
    fronts: dict[str, list[Network]] = {}
    for run in sorted(task["runs"], key=lambda run: run["seed"] or 0):
        if run["front"] and run["in_methods"]:
            fronts.setdefault(run["method"], run["front"])
    return {name: fronts[name] for name in dict.fromkeys(run["method"] for run in task["runs"]) if name in fronts}


def volume_rectangles(protocol: Mapping[str, Any]) -> Figure | None:
    """The hypervolume of one front up to (1, 1) as rectangles (Figure 4); None where errors are no shares of 1."""
    runs = [
        (task, run)
        for task in protocol["groups"]
        for run in task["runs"]
        if error_format(task).scale == "linear" and run["front"] and number(run, "hypervolume") is not None
    ]
    if not runs:
        return None
    task, run = runs[0]
    points = plot_points(run["front"], "validation_error").values()
    corners = pareto_front([(x, y) for x, y in points if x < 1 and y < 1])
    ends = [x for x, _ in corners[1:]] + [1.0]
    line = {"width": 0.6, "color": "rgba(31, 143, 179, .4)"}
    look = {"type": "rect", "layer": "below", "fillcolor": "rgba(31, 143, 179, .14)", "line": line}
    shapes = [{**look, "x0": x, "x1": end, "y0": y, "y1": 1} for (x, y), end in zip(corners, ends, strict=True)]
    method = run["method"]
    style = assign_styles([method])[method]
    front = front_traces(run["front"], method, style, error_format(task), "validation_error", SIZES["share"])
    reference = scatter([1], [1], marker={"color": ORIGINAL, "size": 10}, **group("reference (1, 1)"))
    y = axis_title("validation error", tickformat=".0%", range=[0, 1.05])
    return figure([Panel(task["name"], [*front, reference], SHARE_AXIS, y, shapes)], columns=1, height=420)
