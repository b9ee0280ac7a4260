"""Two further studies: inherited against stand-alone errors, and quantized networks (Figure 13)."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.panels import (
    COLOURS,
    GREY,
    Figure,
    Panel,
    Trace,
    assign_styles,
    axis_title,
    figure,
    group,
    marker,
    plotly_text,
    scatter,
)
from archwright.reports.numbers import ErrorFormat, error_format, number, percent


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


def fidelity_figure(study: Mapping[str, Any], errors: ErrorFormat) -> Figure:
    return figure([fidelity_panel(study, errors)], columns=1, height=440, width=620)


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
    lines = [f"{split} {errors.word} {errors.show(number(point, f'{split}_error'), 2)}" for split in SPLITS]
    share = f"{percent(number(point, 'nonembedding_share'), 1)} of the non-embedding parameters"
    return "<br>".join([f"<b>{plotly_text(point.get('name') or point_kind(point))}</b>", *lines, share])


SPLITS = ("validation", "test")


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


def quantization_figure(study: Mapping[str, Any], errors: ErrorFormat) -> Figure:
    return figure(quantization_panels(study, errors), columns=2, height=380)


def quantization_figures(protocol: Mapping[str, Any]) -> Figure | None:
    """Memory and latency of pruned and quantized networks, two panels per study (Figure 13); None without one."""
    studies = protocol["quantized"]
    panels = [panel for study in studies for panel in quantization_panels(study, error_format(study), study["name"])]
    return figure(panels, columns=2, height=360) if panels else None
