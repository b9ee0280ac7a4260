"""The front and the preview for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archwright.reports.canvas import Canvas, bars
from archwright.reports.measures import DASH, Measure, measure_of, percent, signed
from archwright.reports.words import count, headline, loss, preview_headline

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

HEIGHT = 14
Point = tuple[float, float]


def front_table(result: Mapping[str, Any]) -> Table:
    """The front against the original, smallest first; a tick marks members near the original (`Measure.near`)."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(headline(result)), title_justify="left", title_style="bold", box=None, pad_edge=False)
    measure = measure_of(result)
    names = ("trial", "share", "parameters", "FLOPs", "latency", "int8", "validation", "test", measure.loss_heading)
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("original", *_cells({"nonembedding_share": 1.0, **result["original"]}, measure), "", style="bold")
    for member in result["front"]:
        table.add_row(Text(str(member.get("trial"))), *_cells(member, measure), _loss(result, member, measure))
    return table


def _cells(network: Mapping[str, Any], measure: Measure) -> list[str]:
    median = (network.get("latency_ms") or {}).get("median")
    size = network.get("int8_bytes")
    return [
        percent(network.get("nonembedding_share")),
        count(network.get("parameters")),
        count(network.get("flops")),
        DASH if median is None else f"{median:.2f} ms",
        DASH if size is None else f"{count(size)}B",
        measure.show(network.get("validation_error"), 1),
        measure.show(network.get("test_error"), 1),
    ]


def _loss(result: Mapping[str, Any], member: Mapping[str, Any], measure: Measure) -> str:
    lost = loss(result, member)
    return DASH if lost is None else f"{signed(lost * 100)} {'✓' if lost <= measure.near else ' '}"


def front_plot(result: Mapping[str, Any], width: int = 72) -> str:
    """Validation error over the share of non-embedding parameters, drawn with characters, at most `width` wide."""
    front, tried = _points(result["front"]), _points(result.get("trials", ()))
    original = _points([{"nonembedding_share": 1.0, **result["original"]}])
    supernet = _points([{"nonembedding_share": 1.0, **(result.get("supernet") or {})}])
    if not front + original + supernet:
        return "Nothing to plot: no network has a validation error.\n"
    canvas = Canvas.around(
        front + tried + original + supernet, columns=max(width - 9, 20), rows=HEIGHT, measure=measure_of(result)
    )
    canvas.steps(sorted(front))
    for points, mark in ((tried, "·"), (front, "●"), (supernet, "□"), (original, "◆")):
        canvas.marks(points, mark)
    key = ["● front", "· tried", "◆ original", *(["□ super-network"] if supernet else [])]
    return canvas.text(below="share of the non-embedding parameters", key=key)


def _points(networks: Sequence[Mapping[str, Any]]) -> list[Point]:
    pairs = [(network.get("nonembedding_share"), network.get("validation_error")) for network in networks]
    return [(float(share), float(error)) for share, error in pairs if share is not None and error is not None]


def preview_text(preview: Mapping[str, Any]) -> Group:
    """What can be removed: the headline, one small histogram per space, and an example of its head masks."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("space", "networks", "sizes of random samples, 0 to 100 %", "middle half"):
        table.add_column(name, no_wrap=True)
    for name, space in preview["spaces"].items():
        table.add_row(Text(name), *_space_cells(space))
    model = Text(f"{preview['model']}: {preview['layers']} layers, {preview['heads']} heads, {preview['units']} units")
    return Group(model, Text(preview_headline(preview)), Text(""), table, Text(""), _gallery(preview))


def _gallery(preview: Mapping[str, Any]) -> Table:
    """A random head mask of every space side by side: layers downwards, heads across."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, title="heads kept (■) in a random sub-network", title_justify="left")
    masks = {name: space["gallery"][0] for name, space in preview["spaces"].items() if space["gallery"]}
    for name in masks:
        table.add_column(Text(name), no_wrap=True)
    for rows in zip(*masks.values(), strict=True):
        table.add_row(*(Text("".join("■" if kept else "·" for kept in row)) for row in rows))
    return table


def _space_cells(space: Mapping[str, Any]) -> tuple[str, str, str]:
    shares = sorted(share for share in space["shares"] if share is not None)
    size = space.get("size_log10")
    networks = DASH if size is None else f"10^{size:.1f}"
    if not shares:
        return networks, DASH, DASH
    quarter, last = len(shares) // 4, len(shares) - 1
    return networks, bars(shares, 35), f"{percent(shares[quarter])} to {percent(shares[last - quarter])}"
