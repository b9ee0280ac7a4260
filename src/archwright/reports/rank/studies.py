"""Figures of single studies: ablations as boxes, eigenvalues, the sweep of eta, powers of size and rank."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from archwright.reports.figures.parts import COLOURS, Figure, Panel, Trace, figure, group, level, plain_text, title
from archwright.reports.rank.axes import rounded
from archwright.reports.rank.rows import BASELINE, Document, decimal, kind_of, known

VARIED = {"seeds": "initialisation seeds", "batches": "batches"}
SIDES = {"ablation": ("ours", COLOURS[0]), "published_ablation": ("published", COLOURS[1])}
ETA = 0.99
FEW = 4
"""So many layers are listed one by one."""
LOG_FROM = 1000.0
"""Positive values that differ by this factor are drawn on a logarithmic axis."""
SHADES = [[0, "#f1eee6"], [0.5, "#7fb9cd"], [1, "#0a4d66"]]


def box_figures(document: Document) -> dict[tuple[str, ...], Figure]:
    """A figure for every proxy and for what varied: our ten architectures beside the published ones."""
    keys = [(proxy, kind) for proxy in ablated(document) for kind in VARIED]
    found = {(proxy, VARIED[kind]): box_panels(document, proxy, kind) for proxy, kind in keys}
    return {words: figure(panels, columns=2, height=360) for words, panels in found.items() if panels}


def ablated(document: Document) -> list[str]:
    """Names in any ablation: first those that ours and the published one share, baselines last."""
    counts = {str(row.get("proxy")) for row in document.get("rows") or () if kind_of(row) == BASELINE}
    sides = [[name for kind in VARIED for name in (document.get(side) or {}).get(kind) or {}] for side in SIDES]
    names = dict.fromkeys(name for names in sides for name in names)
    return sorted(names, key=lambda name: (name in counts, -sum(name in side for side in sides)))


def box_panels(document: Document, proxy: str, kind: str) -> list[Panel]:
    panels = []
    for side, (words, colour) in SIDES.items():
        study = document.get(side) or {}
        rows = (study.get(kind) or {}).get(proxy)
        if rows:
            axis = {**title(f"score, {words}"), "type": scale(value for row in rows for value in row)}
            boxes = [box(rows, labels(study, len(rows)), colour)]
            panels.append(
                Panel(
                    words,
                    boxes,
                    {**title("architecture, one per tenth of the trained score"), "type": "category"},
                    axis,
                )
            )
    return panels


def labels(study: Mapping[str, Any], number: int) -> list[str]:
    """What the architectures of an ablation are called: their ids, else their places."""
    ids = [str(name) for name in study.get("ids") or ()]
    return ids if len(ids) == number else [str(place) for place in range(1, number + 1)]


def scale(values: Iterable[Any]) -> str:
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    wide = bool(numbers) and min(numbers) > 0 and max(numbers) > LOG_FROM * min(numbers)
    return "log" if wide else "linear"


def box(rows: Sequence[Sequence[float | None]], names: Sequence[str], colour: str) -> Trace:
    """One box per name."""
    return {
        "type": "box",
        "x": [plain_text(name) for name, values in zip(names, rows, strict=True) for _ in values],
        "y": [rounded(value, 5) for values in rows for value in values],
        "boxpoints": "all",
        "jitter": 0.3,
        "pointpos": 0,
        "fillcolor": "rgba(0, 0, 0, 0)",
        "line": {"width": 1.4, "color": colour},
        "marker": {"size": 4, "color": colour},
        "hovertemplate": "%{y:.4~g}<extra>%{x}</extra>",
    }


def scree_figure(spectra: Mapping[str, Any]) -> Figure:
    """Eigenvalues of every layer, and how many of them reach the share eta of the variance."""
    layers = [sorted((float(v) for v in layer if v is not None and v > 0), reverse=True) for layer in spectra["layers"]]
    eta = known(spectra, "eta") or ETA
    names = [f"layer {place}" for place in range(1, len(layers) + 1)]
    x = title("eigenvalue, largest first")
    left = [curve(layer, name, place) for place, (layer, name) in enumerate(zip(layers, names, strict=True))]
    right = [curve(shares(layer), name, place) for place, (layer, name) in enumerate(zip(layers, names, strict=True))]
    needed = [reached(shares(layer), eta) for layer in layers]
    terms = f"{' + '.join(map(str, needed))} = " if 1 < len(needed) <= FEW else ""
    heading = f"η = {eta:g} needs {terms}{sum(needed)}"
    return figure(
        [
            Panel("eigenvalues", left, x, {**title("variance"), "type": "log", "exponentformat": "power", "dtick": 1}),
            Panel(
                heading,
                right,
                title("number of eigenvalues"),
                {**title("share of the variance"), "tickformat": ".0%", "range": [0, 1.03]},
                [level(eta)],
            ),
        ],
        columns=2,
        height=380,
    )


def shares(layer: Sequence[float]) -> list[float]:
    """Cumulative shares of the variance."""
    total, summed, found = sum(layer) or 1.0, 0.0, []
    for value in layer:
        summed += value
        found.append(summed / total)
    return found


def reached(cumulative: Sequence[float], eta: float) -> int:
    """The smallest number of eigenvalues whose share exceeds eta."""
    return next((place for place, share in enumerate(cumulative, 1) if share > eta), len(cumulative))


def curve(values: Sequence[float], name: str, place: int) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(range(1, len(values) + 1)),
        "y": [rounded(value, 5) for value in values],
        "line": {
            "width": 2,
            "color": COLOURS[place % len(COLOURS)],
            **({"dash": "dot"} if place >= len(COLOURS) else {}),
        },
        "hovertemplate": "%{x}: %{y:.4~g}<extra>" + name + "</extra>",
        **group(name),
    }


LINES = {
    "spearman": ("W-PCA, Spearman", "circle"),
    "within_cells": ("W-PCA, within cells", "diamond"),
    "v_pca": ("V-PCA, Spearman", "square"),
}


def eta_figure(sweep: Sequence[Mapping[str, Any]]) -> Figure:
    """Correlation for every eta; the axis spreads what lies close to 1."""
    points = sorted((eta, entry) for entry in sweep if (eta := known(entry, "eta")) is not None and eta < 1)
    etas = [eta for eta, _ in points]
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [spread(eta) for eta in etas],
            "y": [known(entry, key) for _, entry in points],
            "text": [f"η = {eta:g}" for eta in etas],
            "line": {"width": 2, "color": colour},
            "marker": {"size": 8, "color": colour, "symbol": symbol},
            "hovertemplate": "%{text}: %{y:.3f}<extra>" + words + "</extra>",
            **group(words),
        }
        for (key, (words, symbol)), colour in zip(LINES.items(), COLOURS, strict=False)
        if any(known(entry, key) is not None for _, entry in points)
    ]
    kept = spaced(etas)
    x = {
        **title("η, share of the variance"),
        "tickvals": [spread(eta) for eta in kept],
        "ticktext": [f"{eta:g}" for eta in kept],
        "tickangle": 0,
        "tickfont": {"size": 11},
    }
    return figure([Panel("", traces, x, title("rank correlation"))], columns=1, height=360, width=760)


def spread(eta: float) -> float:
    return round(-math.log10(1 - eta), 4)


def spaced(etas: Sequence[float]) -> list[float]:
    """Those whose labels do not touch."""
    kept: list[float] = []
    for eta in etas:
        if not kept or spread(eta) - spread(kept[-1]) > 0.2:
            kept.append(eta)
    return kept


def powers_figure(powers: Mapping[str, Any]) -> Figure:
    """Spearman of parameters^a x V-PCA^b; a star marks the best, a circle W-PCA (a = b = 1)."""
    a, b, table = list(powers["a"]), list(powers["b"]), [list(row) for row in powers["spearman"]]
    cells = [
        (known({"z": z}, "z"), x, y) for x, row in zip(a, table, strict=False) for z, y in zip(row, b, strict=False)
    ]
    found = [(z, x, y) for z, x, y in cells if z is not None]
    heat: Trace = {
        "type": "heatmap",
        "x": b,
        "y": a,
        "z": [[rounded(value, 4) for value in row] for row in table],
        "colorscale": SHADES,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "title": {"text": "rho"}},
        "hovertemplate": "parameters^%{y} x V-PCA^%{x}: %{z:.3f}<extra></extra>",
    }
    best = max(found, default=None)
    marks = [mark(best[2], best[1], f"best, {decimal(best[0], 3)}", "star")] if best else []
    if 1 in a and 1 in b:
        marks.append(mark(1, 1, "W-PCA", "circle-open"))
    panel = Panel(
        "",
        [heat, *marks],
        {**title("b, power of V-PCA"), "showgrid": False},
        {**title("a, power of the parameters"), "showgrid": False},
    )
    return figure([panel], columns=1, height=420, width=640)


def mark(x: float, y: float, words: str, symbol: str) -> Trace:
    look = {"size": 14, "color": COLOURS[1], "symbol": symbol, "line": {"width": 2, "color": COLOURS[1]}}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [y],
        "marker": look,
        "hovertemplate": words + "<extra></extra>",
        **group(words),
    }
