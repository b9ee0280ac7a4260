"""Errors against sizes: the fronts of several methods in one picture, and the hypervolume as rectangles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archwright.reports.figures.parts import (
    ORIGINAL,
    SHARE_AXIS,
    Axis,
    Figure,
    Panel,
    Style,
    Trace,
    figure,
    group,
    looks_of,
    number,
    plain_text,
    styles_of,
    title,
)
from archwright.reports.measures import DASH, Measure, measure_of, percent

Network = Mapping[str, Any]


@dataclass(frozen=True)
class Size:
    """One meaning of small."""

    label: str
    keys: tuple[str, ...]
    axis: Axis


SIZES: dict[str, Size] = {
    "share": Size("share", ("nonembedding_share",), SHARE_AXIS),
    "parameters": Size(
        "parameters",
        ("parameters",),
        {**title("parameters, embeddings included"), "tickformat": "~s", "rangemode": "tozero"},
    ),
    "flops": Size(
        "FLOPs", ("flops",), {**title("FLOPs of one forward pass"), "tickformat": "~s", "rangemode": "tozero"}
    ),
    "latency": Size(
        "latency",
        ("latency_ms", "median"),
        {**title("measured latency, median"), "ticksuffix": " ms", "rangemode": "tozero"},
    ),
}
ERRORS = {"validation_error": "validation", "test_error": "test"}


def fronts_panel(
    fronts: Mapping[str, Sequence[Network]],
    original: Network,
    measure: Measure,
    *,
    looks: Mapping[str, Style],
    name: str = "",
    error: str = "test_error",
    size: Size = SIZES["share"],
) -> Panel:
    """One point per member of each front, a staircase through those nothing of their front beats, and the original."""
    traces = [
        trace
        for method, front in fronts.items()
        for trace in _front(front, method, looks[method], measure, error, size)
    ]
    whole = {"nonembedding_share": 1.0, **original}
    traces += [_original(whole, measure, error, size)] if _placed([whole], error, size) else []
    axis = {**title(f"{ERRORS[error]} {measure.word}"), "tickformat": measure.ticks, "type": measure.scale}
    return Panel(name, traces, dict(size.axis), axis)


def _front(front: Sequence[Network], name: str, look: Style, measure: Measure, error: str, size: Size) -> list[Trace]:
    members = _placed(front, error, size)
    points = [(number(member, *size.keys), number(member, error)) for member in members]
    stairs = undominated([(x, y) for x, y in points if x is not None and y is not None])
    line = {"shape": "hv", "width": 1.8, "color": look.colour}
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "hoverinfo": "skip",
            "line": line,
            **xy(stairs),
            **group(name),
            "showlegend": False,
        },
        {
            "type": "scatter",
            "mode": "markers",
            "cliponaxis": False,
            **xy(points),
            "marker": {"size": 9, "color": look.colour, "symbol": look.symbol},
            "text": [hover(name, member, measure) for member in members],
            "hovertemplate": "%{text}<extra></extra>",
            **group(name),
        },
    ]


def _original(original: Network, measure: Measure, error: str, size: Size) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "cliponaxis": False,
        **xy([(number(original, *size.keys), number(original, error))]),
        "marker": {"size": 13, "color": ORIGINAL, "symbol": "diamond-open", "line": {"width": 2}},
        "text": [hover("original, fine-tuned", original, measure)],
        "hovertemplate": "%{text}<extra></extra>",
        **group("original"),
    }


def _placed(networks: Sequence[Network], error: str, size: Size) -> list[Network]:
    return [n for n in networks if number(n, *size.keys) is not None and number(n, error) is not None]


def hover(name: str, network: Network, measure: Measure) -> str:
    """What a point says: its name, its errors and its size."""
    trial = network.get("trial")
    errors = [f"{word} {measure.word} {measure.show(number(network, key), 2)}" for key, word in ERRORS.items()]
    latency = number(network, "latency_ms", "median")
    speed = [f"latency {latency:.2f} ms"] if latency is not None else []
    share = f"{percent(number(network, 'nonembedding_share'), 1)} of the non-embedding parameters"
    head = plain_text(name if trial is None else f"{name}, trial {trial}")
    return "<br>".join([f"<b>{head}</b>", *errors, share, *speed]).replace(DASH, "not measured")


def undominated(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points that no other beats in both numbers, from left to right."""
    kept: list[tuple[float, float]] = []
    for point in sorted(points):
        if not kept or point[1] < kept[-1][1]:
            kept.append(point)
    return kept


def xy(points: Sequence[tuple[float | None, float | None]]) -> dict[str, list[float | None]]:
    return {"x": [x for x, _ in points], "y": [y for _, y in points]}


def single_runs(protocol: Mapping[str, Any], *, most: int | None = None) -> Figure | None:
    """The fronts of one run of each method, a panel per task (Figures 9 and 10); None without two methods."""
    groups = [of for of in protocol["groups"] if len(first_fronts(of)) > 1][:most]
    looks = looks_of(protocol, "method")
    panels = [
        fronts_panel(
            first_fronts(of), of["original"], measure_of(of), looks=looks, name=of["name"], error=judged_by(of)
        )
        for of in groups
    ]
    return figure(panels, height=340) if panels else None


def first_fronts(of: Mapping[str, Any]) -> dict[str, list[Network]]:
    """Method -> front of its run with the smallest seed."""
    runs = sorted(of["runs"], key=lambda run: run["seed"] or 0)
    fronts: dict[str, list[Network]] = {}
    for run in (run for run in runs if run["front"] and run["in_methods"]):
        fronts.setdefault(run["method"], run["front"])
    return {name: fronts[name] for name in dict.fromkeys(run["method"] for run in of["runs"]) if name in fronts}


def judged_by(of: Mapping[str, Any]) -> str:
    """Test errors where they were measured, validation errors otherwise."""
    tested = any(number(member, "test_error") is not None for run in of["runs"] for member in run["front"])
    return "test_error" if tested else "validation_error"


def rectangles(protocol: Mapping[str, Any]) -> Figure | None:
    """The hypervolume of one front up to (1, 1) as rectangles (Figure 4); None where errors are no shares of 1."""
    found = [
        (of, run)
        for of in protocol["groups"]
        for run in of["runs"]
        if measure_of(of).scale == "linear" and run["front"] and number(run, "hypervolume") is not None
    ]
    return figure([_volume(*found[0])], columns=1, height=420) if found else None


def _volume(of: Mapping[str, Any], run: Mapping[str, Any]) -> Panel:
    points = [(number(m, "nonembedding_share"), number(m, "validation_error")) for m in run["front"]]
    corner = undominated([(x, y) for x, y in points if x is not None and y is not None and x < 1 and y < 1])
    ends = [x for x, _ in corner[1:]] + [1.0]
    look = {
        "type": "rect",
        "layer": "below",
        "fillcolor": "rgba(31, 143, 179, .14)",
        "line": {"width": 0.6, "color": "rgba(31, 143, 179, .4)"},
    }
    shapes = [{**look, "x0": x, "x1": end, "y0": y, "y1": 1} for (x, y), end in zip(corner, ends, strict=True)]
    front = _front(
        run["front"],
        run["method"],
        styles_of([run["method"]])[run["method"]],
        measure_of(of),
        "validation_error",
        SIZES["share"],
    )
    reference: Trace = {
        "type": "scatter",
        "mode": "markers",
        **xy([(1, 1)]),
        "marker": {"color": ORIGINAL, "size": 10},
        **group("reference (1, 1)"),
    }
    axis = {**title("validation error"), "tickformat": ".0%", "range": [0, 1.05]}
    return Panel(of["name"], [*front, reference], SHARE_AXIS, axis, shapes)
