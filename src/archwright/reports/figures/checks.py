"""Two further studies: inherited against stand-alone errors, and quantized networks (Figure 13)."""

from collections.abc import Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import (
    COLOURS,
    GREY,
    Figure,
    Panel,
    Trace,
    figure,
    group,
    number,
    plain_text,
    styles_of,
    title,
)
from archwright.reports.measures import Measure, measure_of, percent


def honesty_figure(honesty: Mapping[str, Any], measure: Measure, name: str = "") -> Figure:
    """Each sub-network with its error inside the super-network and after training by itself."""
    return figure([honesty_panel(honesty, measure, name)], columns=1, height=440, width=620)


def honesty_panel(honesty: Mapping[str, Any], measure: Measure, name: str = "") -> Panel:
    pairs = [pair for pair in honesty["pairs"] if None not in pair[:2]]
    ends = [edge(pair[at] for pair in pairs for at in (0, 1)) for edge in (min, max)] if pairs else [0.0, 1.0]
    same: Trace = {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "hoverinfo": "skip"}
    same |= {"line": {"dash": "dot", "width": 1.2, "color": GREY}, **group("equal errors")}
    dots: Trace = {
        "type": "scatter",
        "mode": "markers",
        "x": [pair[0] for pair in pairs],
        "y": [pair[1] for pair in pairs],
        "text": [f"{percent(pair[2], 1)} of the non-embedding parameters" if len(pair) > 2 else "" for pair in pairs],
        "marker": {"size": 9, "color": COLOURS[0]},
        "hovertemplate": "%{text}<br>inherited %{x}, by itself %{y}<extra></extra>",
        **group("sub-network"),
    }
    axis = {"tickformat": measure.ticks, "type": measure.scale}
    words = f"{measure.word}, validation"
    return Panel(
        name,
        [same, dots],
        {**title(f"inherited weights: {words}"), **axis},
        {**title(f"trained by itself: {words}"), **axis},
    )


def quantized_panels(quantized: Mapping[str, Any], measure: Measure, name: str = "") -> list[Panel]:
    """Error against the memory of the weights, and against measured latency."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for point in quantized["points"]:
        kinds.setdefault(kind_of(point), []).append(point)
    looks = styles_of(kinds)
    tested = any(number(point, "test_error") is not None for point in quantized["points"])
    error, axis = ("test_error", "test") if tested else ("validation_error", "validation")
    y = {**title(f"{axis} {measure.word}"), "tickformat": measure.ticks, "type": measure.scale}
    axes = {
        ("bytes",): {**title("bytes of the weights"), "tickformat": "~s", "ticksuffix": "B", "rangemode": "tozero"},
        ("latency_ms", "median"): {**title("measured latency"), "ticksuffix": " ms", "rangemode": "tozero"},
    }
    clouds = {
        keys: [_cloud(points, kind, looks[kind], keys, error, measure) for kind, points in kinds.items()]
        for keys in axes
    }
    clouds["bytes",] += joint_front(quantized, error)
    return [Panel(name, traces, axes[keys], y) for keys, traces in clouds.items()]


def joint_front(quantized: Mapping[str, Any], error: str) -> list[Trace]:
    """The line through the networks, of whatever bits, that none beats in validation error and bytes."""
    best = [quantized["points"][place] for place in quantized.get("joint_front") or [] if place is not None]
    placed = sorted(
        (number(point, "bytes"), number(point, error)) for point in best if is_placed(point, "bytes", error)
    )
    if not placed:
        return []
    line = {"mode": "lines", "line": {"dash": "dot", "width": 1.4, "color": GREY}, "hoverinfo": "skip"}
    return [
        {"type": "scatter", **line, "x": [x for x, _ in placed], "y": [y for _, y in placed], **group("joint front")}
    ]


def is_placed(point: Mapping[str, Any], *keys: str) -> bool:
    return all(number(point, key) is not None for key in keys)


def kind_of(point: Mapping[str, Any]) -> str:
    """Pruned or not, in how many bits, run by what."""
    trial = number(point, "trial")
    runtime = point.get("runtime")
    whole = "unpruned" if trial is None or trial < 0 else "front"
    return f"{whole}, {point.get('bits')} bit" + (f", {runtime}" if runtime else "")


def _cloud(
    points: Sequence[Mapping[str, Any]], kind: str, look: Any, keys: tuple[str, ...], error: str, measure: Measure
) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "cliponaxis": False,
        "x": [number(point, *keys) for point in points],
        "y": [number(point, error) for point in points],
        "text": [_words(point, measure) for point in points],
        "marker": {"size": 9, "color": look.colour, "symbol": look.symbol},
        **interval(points, keys, look.colour),
        "hovertemplate": "%{text}<extra></extra>",
        **group(kind),
    }


def interval(points: Sequence[Mapping[str, Any]], keys: tuple[str, ...], colour: str) -> dict[str, Any]:
    """The interval of a measured median as bars; nothing for what was counted."""
    if len(keys) == 1:
        return {}
    rows = [[number(point, keys[0], end) for end in ("low", "median", "high")] for point in points]
    known = [None not in row for row in rows]
    below, above = (
        [abs(row[end] - row[1]) if full else None for row, full in zip(rows, known, strict=True)]  # type: ignore[operator]
        for end in (0, 2)
    )
    look = {"type": "data", "symmetric": False, "thickness": 1, "width": 2, "color": colour}
    return {"error_x": {**look, "array": above, "arrayminus": below}}


def _words(point: Mapping[str, Any], measure: Measure) -> str:
    errors = [
        f"{word} {measure.word} {measure.show(number(point, f'{word}_error'), 2)}" for word in ("validation", "test")
    ]
    share = f"{percent(number(point, 'nonembedding_share'), 1)} of the non-embedding parameters"
    return "<br>".join([f"<b>{plain_text(point.get('name') or kind_of(point))}</b>", *errors, share])


def quantized_figure(quantized: Mapping[str, Any], measure: Measure) -> Figure:
    return figure(quantized_panels(quantized, measure), columns=2, height=380)


def quantized(protocol: Mapping[str, Any]) -> Figure | None:
    """Memory and latency of pruned and quantized networks, two panels per study (Figure 13); None without one."""
    panels = [
        panel for study in protocol["quantized"] for panel in quantized_panels(study, measure_of(study), study["name"])
    ]
    return figure(panels, columns=2, height=360) if panels else None
