"""Figures of single studies: ablations as boxes, eigenvalues, the sweep of eta, powers of size and rank."""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from archwright.reports.figures.panels import (
    COLOURS,
    Figure,
    Panel,
    Trace,
    axis_title,
    figure,
    group,
    level,
    plotly_text,
    scatter,
)
from archwright.reports.numbers import decimal, number
from archwright.reports.rank.axes import round_digits
from archwright.reports.rank.rows import BASELINE, Document, origin

SETTINGS = {"seeds": "initialisation seeds", "batches": "batches"}
SIDES = {"ablation": ("ours", COLOURS[0]), "published_ablation": ("published", COLOURS[1])}
ETA = 0.99
FEW = 4
"""So many layers are listed one by one."""
LOG_FROM = 1000.0
"""Positive values that differ by this factor are drawn on a logarithmic axis."""
SHADES = [[0, "#f1eee6"], [0.5, "#7fb9cd"], [1, "#0a4d66"]]
LINES = {
    "spearman": ("W-PCA, Spearman", "circle"),
    "within_cells": ("W-PCA, within cells", "diamond"),
    "v_pca": ("V-PCA, Spearman", "square"),
}


def box_figures(document: Document) -> dict[tuple[str, ...], Figure]:
    """A figure for every proxy and for what varied: our ten architectures beside the published ones."""
    figures: dict[tuple[str, ...], Figure] = {}
    for proxy in ablation_proxies(document):
        for kind, words in SETTINGS.items():
            panels = box_panels(document, proxy, kind)
            if panels:
                figures[proxy, words] = figure(panels, columns=2, height=360)
    return figures


def ablation_proxies(document: Document) -> list[str]:
    """Names in any ablation: first those that ours and the published one share, baselines last."""
    baselines = {str(row.get("proxy")) for row in document.get("rows") or () if origin(row) == BASELINE}
    sides = [[name for kind in SETTINGS for name in (document.get(side) or {}).get(kind) or {}] for side in SIDES]
    names = dict.fromkeys(name for names in sides for name in names)
    return sorted(names, key=lambda name: (name in baselines, -sum(name in side for side in sides)))


def box_panels(document: Document, proxy: str, kind: str) -> list[Panel]:
    """One box per architecture, called by its id or else by its place."""
    panels = []
    for side, (words, colour) in SIDES.items():
        study = document.get(side) or {}
        rows: Sequence[Sequence[float | None]] = (study.get(kind) or {}).get(proxy) or ()
        if not rows:
            continue
        ids = [str(name) for name in study.get("ids") or ()]
        names = ids if len(ids) == len(rows) else [str(place) for place in range(1, len(rows) + 1)]
        boxes: Trace = {
            "type": "box",
            "x": [plotly_text(name) for name, values in zip(names, rows, strict=True) for _ in values],
            "y": [round_digits(value, 5) for values in rows for value in values],
            "boxpoints": "all",
            "jitter": 0.3,
            "pointpos": 0,
            "fillcolor": "rgba(0, 0, 0, 0)",
            "line": {"width": 1.4, "color": colour},
            "marker": {"size": 4, "color": colour},
            "hovertemplate": "%{y:.4~g}<extra>%{x}</extra>",
        }
        x = axis_title("architecture, one per tenth of the trained score", type="category")
        known = [value for row in rows for value in row if value is not None and math.isfinite(value)]
        wide = bool(known) and min(known) > 0 and max(known) > LOG_FROM * min(known)
        y = axis_title(f"score, {words}", type="log" if wide else "linear")
        panels.append(Panel(words, [boxes], x, y))
    return panels


def scree_figure(spectra: Mapping[str, Any]) -> Figure:
    """Eigenvalues of every layer, and the smallest number of them whose share of the variance exceeds eta."""
    eta = number(spectra, "eta") or ETA
    left, right, sizes = [], [], []
    for place, layer in enumerate(spectra["layers"]):
        eigenvalues = sorted((float(v) for v in layer if v is not None and v > 0), reverse=True)
        shares = [value / (sum(eigenvalues) or 1.0) for value in accumulate(eigenvalues)]
        left.append(eigenvalue_curve(eigenvalues, place))
        right.append(eigenvalue_curve(shares, place))
        sizes.append(next((n for n, share in enumerate(shares, 1) if share > eta), len(shares)))
    terms = f"{' + '.join(map(str, sizes))} = " if 1 < len(sizes) <= FEW else ""
    variance = axis_title("variance", type="log", exponentformat="power", dtick=1)
    share = axis_title("share of the variance", tickformat=".0%", range=[0, 1.03])
    heading, x = f"η = {eta:g} needs {terms}{sum(sizes)}", "number of eigenvalues"
    panels = [
        Panel("eigenvalues", left, "eigenvalue, largest first", variance),
        Panel(heading, right, x, share, [level(eta)]),
    ]
    return figure(panels, columns=2, height=380)


def eigenvalue_curve(values: Sequence[float], layer: int) -> Trace:
    name = f"layer {layer + 1}"
    dash = {"dash": "dot"} if layer >= len(COLOURS) else {}
    return scatter(
        range(1, len(values) + 1),
        [round_digits(value, 5) for value in values],
        mode="lines",
        line={"width": 2, "color": COLOURS[layer % len(COLOURS)], **dash},
        hovertemplate="%{x}: %{y:.4~g}<extra>" + name + "</extra>",
        **group(name),
    )


def eta_figure(sweep: Sequence[Mapping[str, Any]]) -> Figure:
    """Correlation for every eta; the axis spreads what lies close to 1."""
    points = sorted((eta, entry) for entry in sweep if (eta := number(entry, "eta")) is not None and eta < 1)
    etas = [eta for eta, _ in points]
    places = [round(-math.log10(1 - eta), 4) for eta in etas]
    traces = [
        scatter(
            places,
            [number(entry, key) for _, entry in points],
            mode="lines+markers",
            text=[f"η = {eta:g}" for eta in etas],
            line={"width": 2, "color": colour},
            marker={"size": 8, "color": colour, "symbol": symbol},
            hovertemplate="%{text}: %{y:.3f}<extra>" + words + "</extra>",
            **group(words),
        )
        for (key, (words, symbol)), colour in zip(LINES.items(), COLOURS, strict=False)
        if any(number(entry, key) is not None for _, entry in points)
    ]
    ticks: dict[float, str] = {}
    for place, eta in zip(places, etas, strict=True):
        if not ticks or place - max(ticks) > 0.2:  # labels must not touch
            ticks[place] = f"{eta:g}"
    look = {"tickvals": list(ticks), "ticktext": list(ticks.values()), "tickangle": 0, "tickfont": {"size": 11}}
    x = axis_title("η, share of the variance", **look)
    return figure([Panel("", traces, x, "rank correlation")], columns=1, height=360, width=760)


def powers_figure(powers: Mapping[str, Any]) -> Figure:
    """Spearman of parameters^a x V-PCA^b; a star marks the best, a circle W-PCA (a = b = 1)."""
    a, b, rows = list(powers["a"]), list(powers["b"]), [list(row) for row in powers["spearman"]]
    known = [
        (rho, x, y)
        for x, row in zip(a, rows, strict=False)
        for y, value in zip(b, row, strict=False)
        if (rho := round_digits(value, 17)) is not None
    ]
    heat: Trace = {
        "type": "heatmap",
        "x": b,
        "y": a,
        "z": [[round_digits(value, 4) for value in row] for row in rows],
        "colorscale": SHADES,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "title": {"text": "rho"}},
        "hovertemplate": "parameters^%{y} x V-PCA^%{x}: %{z:.3f}<extra></extra>",
    }
    marks = []
    if known:
        rho, x, y = max(known)
        marks.append(mark_trace(y, x, f"best, {decimal(rho, 3)}", "star"))
    if 1 in a and 1 in b:
        marks.append(mark_trace(1, 1, "W-PCA", "circle-open"))
    axes = axis_title("b, power of V-PCA", showgrid=False), axis_title("a, power of the parameters", showgrid=False)
    return figure([Panel("", [heat, *marks], *axes)], columns=1, height=420, width=640)


def mark_trace(x: float, y: float, words: str, symbol: str) -> Trace:
    look = {"size": 14, "color": COLOURS[1], "symbol": symbol, "line": {"width": 2, "color": COLOURS[1]}}
    return scatter([x], [y], marker=look, hovertemplate=words + "<extra></extra>", **group(words))
