"""The spaces before anything is trained: example masks and sizes of random samples (Figures 2 and 3)."""

from collections.abc import Mapping
from typing import Any

from archwright.reports.figures.parts import COLOURS, Figure, Panel, figure, title

BINS = {"start": 0, "end": 1.0001, "size": 0.04}


def masks(protocol: Mapping[str, Any]) -> Figure | None:
    """A random head mask of every space, layers downwards; None without a preview."""
    panels = [
        Panel(
            f"{name}, {preview['model']}",
            [
                {
                    "type": "heatmap",
                    "z": space["gallery"][0],
                    "x": list(range(1, len(space["gallery"][0][0]) + 1)),
                    "y": list(range(1, len(space["gallery"][0]) + 1)),
                    "zmin": 0,
                    "zmax": 1,
                    "xgap": 2,
                    "ygap": 2,
                    "showscale": False,
                    "colorscale": [[0, "rgba(125, 134, 145, .14)"], [1, COLOURS[0]]],
                    "hovertemplate": "layer %{y}, head %{x}: %{z}<extra></extra>",
                }
            ],
            {**title("head"), "dtick": 2, "showgrid": False},
            {**title("layer"), "autorange": "reversed", "dtick": 1, "showgrid": False},
        )
        for preview in protocol["previews"]
        for name, space in preview["spaces"].items()
        if space["gallery"]
    ]
    return figure(panels, columns=4, height=280) if panels else None


def histograms(protocol: Mapping[str, Any]) -> Figure | None:
    """How large uniformly drawn networks of every space are; None without a preview."""
    bar = {
        "type": "histogram",
        "xbins": BINS,
        "marker": {"color": COLOURS[0]},
        "hovertemplate": "%{x}: %{y}<extra></extra>",
    }
    x = {**title("share of the non-embedding parameters"), "tickformat": ".0%", "range": [0, 1]}
    panels = [
        Panel(f"{name}, {preview['model']}", [{**bar, "x": list(space["shares"])}], x, title("samples"))
        for preview in protocol["previews"]
        for name, space in preview["spaces"].items()
        if space["shares"]
    ]
    return figure(panels, columns=4, height=260) if panels else None
