"""Errors against sizes: fronts of several methods, the hypervolume as rectangles, quantized networks (Figure 13).

Also inherited against stand-alone errors of sub-networks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.reports.figures.panels import (
    COLOURS,
    GREY,
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
    """One point per member of each front, a staircase through those nothing of their front beats, and the original.

    Every staircase goes on to the size of the largest network that is drawn: the best of a front may be its smallest.
    """
    whole = {"nonembedding_share": 1.0, **original}
    drawn = [place for front in (*fronts.values(), [whole]) for place in plot_points(front, error, size).values()]
    end = max((x for x, _ in drawn), default=0.0)
    traces = [
        trace
        for method, front in fronts.items()
        for trace in front_traces(front, method, styles[method], errors, error, size, end)
    ]
    for x, y in plot_points([whole], error, size).values():
        look = {"size": 13, "color": ORIGINAL, "symbol": "diamond-open", "line": {"width": 2}}
        hover = [network_hover("original, fine-tuned", whole, errors)]
        more = {"text": hover, "hovertemplate": "%{text}<extra></extra>", **group("original")}
        traces.append(scatter([x], [y], cliponaxis=False, marker=look, **more))
    return Panel(name, traces, dict(size.axis), axis_title(f"{ERRORS[error]} {errors.word}", **errors.axis))


def front_traces(
    front: Sequence[Network],
    name: str,
    style: Style,
    errors: ErrorFormat,
    error: str,
    size: SizeAxis,
    end: float | None = None,
) -> list[Trace]:
    """Its points, and their staircase up to the size `end` if that is said."""
    points = plot_points(front, error, size)
    stairs = pareto_front(list(points.values()))
    if stairs and end is not None:
        stairs = [*stairs, (end, stairs[-1][1])]
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


def fidelity_panel(study: Mapping[str, Any], errors: ErrorFormat, name: str = "") -> Panel:
    """Each sub-network with its error inside the super-network and after training by itself."""
    pairs = [pair for pair in study["pairs"] if None not in pair[:2]]
    ends = [edge(pair[at] for pair in pairs for at in (0, 1)) for edge in (min, max)] if pairs else [0.0, 1.0]
    dotted = {"line": {"dash": "dot", "width": 1.2, "color": GREY}, **group("equal errors")}
    shares = [f"{percent(pair[2], 1)} of the non-embedding parameters" if len(pair) > 2 else "" for pair in pairs]
    dots = scatter(
        [pair[0] for pair in pairs],
        [pair[1] for pair in pairs],
        text=shares,
        marker={"size": 9, "color": COLOURS[0]},
        hovertemplate="%{text}<br>inherited %{x}, by itself %{y}<extra></extra>",
        **group("sub-network"),
    )
    words = f"{errors.word}, validation"
    x, y = (axis_title(f"{kind}: {words}", **errors.axis) for kind in ("inherited weights", "trained by itself"))
    return Panel(name, [scatter(ends, ends, mode="lines", hoverinfo="skip", **dotted), dots], x, y)


def quantization_panels(study: Mapping[str, Any], errors: ErrorFormat, name: str = "") -> list[Panel]:
    """Error against the memory of the weights, and against measured latency."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for point in study["points"]:
        kinds.setdefault(point_kind(point), []).append(point)
    styles = assign_styles(kinds)
    tested = any(number(point, "test_error") is not None for point in study["points"])
    split = "test" if tested else "validation"
    y = axis_title(f"{split} {errors.word}", **errors.axis)
    axes = {
        ("bytes",): axis_title("bytes of the weights", tickformat="~s", ticksuffix="B", rangemode="tozero"),
        ("latency_ms", "median"): axis_title("measured latency", ticksuffix=" ms", rangemode="tozero"),
    }
    panels = []
    for keys, x in axes.items():
        traces = [
            scatter(
                [number(point, *keys) for point in points],
                [number(point, f"{split}_error") for point in points],
                cliponaxis=False,
                text=[point_hover(point, errors) for point in points],
                marker=marker(styles[kind], 9),
                **(latency_bars(points, styles[kind].colour) if keys[0] == "latency_ms" else {}),
                hovertemplate="%{text}<extra></extra>",
                **group(kind),
            )
            for kind, points in kinds.items()
        ]
        traces += joint_front(study, f"{split}_error") if keys == ("bytes",) else []
        panels.append(Panel(name, traces, x, y))
    return panels


def joint_front(study: Mapping[str, Any], error: str) -> list[Trace]:
    """The line through the networks, of whatever bits, that none beats in validation error and bytes."""
    best = [study["points"][place] for place in study.get("joint_front") or [] if place is not None]
    pairs = [(number(point, "bytes"), number(point, error)) for point in best]
    known = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    look = {"line": {"dash": "dot", "width": 1.4, "color": GREY}, "hoverinfo": "skip", **group("joint front")}
    return [scatter([x for x, _ in known], [y for _, y in known], mode="lines", **look)] if known else []


def point_kind(point: Mapping[str, Any]) -> str:
    """Pruned or not, in how many bits, run by what."""
    trial, runtime = number(point, "trial"), point.get("runtime")
    whole = "unpruned" if trial is None or trial < 0 else "front"
    return f"{whole}, {point.get('bits')} bit" + (f", {runtime}" if runtime else "")


def point_hover(point: Mapping[str, Any], errors: ErrorFormat) -> str:
    lines = [f"{split} {errors.word} {errors.show(number(point, key), 2)}" for key, split in ERRORS.items()]
    share = f"{percent(number(point, 'nonembedding_share'), 1)} of the non-embedding parameters"
    return "<br>".join([f"<b>{plotly_text(point.get('name') or point_kind(point))}</b>", *lines, share])


def latency_bars(points: Sequence[Mapping[str, Any]], colour: str) -> dict[str, Any]:
    """The intervals of measured medians."""
    below: list[float | None] = []
    above: list[float | None] = []
    for point in points:
        low, median, high = (number(point, "latency_ms", key) for key in ("low", "median", "high"))
        known = low is not None and median is not None and high is not None
        below.append(abs(low - median) if known else None)  # type: ignore[operator]
        above.append(abs(high - median) if known else None)  # type: ignore[operator]
    look = {"type": "data", "symmetric": False, "thickness": 1, "width": 2, "color": colour}
    return {"error_x": {**look, "array": above, "arrayminus": below}}


def quantization_figures(protocol: Mapping[str, Any]) -> Figure | None:
    """Memory and latency of pruned and quantized networks, two panels per study (Figure 13); None without one."""
    studies = protocol["quantized"]
    panels = [panel for study in studies for panel in quantization_panels(study, error_format(study), study["name"])]
    return figure(panels, columns=2, height=360) if panels else None
