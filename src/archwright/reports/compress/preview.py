"""What can be removed from a model, before anything is trained: a page and a text (Klein et al. 2024, Figures 2, 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from archwright.reports.numbers import DASH, count, fact, percent
from archwright.reports.page import render_page
from archwright.reports.tables import Column, ReportTable, table
from archwright.reports.text_plot import text_histogram

if TYPE_CHECKING:
    from rich.console import Group

NOTE = (
    "{layers} layers, {heads} heads and {units} units per layer. Three random samples per space: a row is a layer, a "
    "filled cell a kept head, the bar beside it the share of feed-forward units kept. Below, how large random samples "
    "are, as a share of the non-embedding parameters. Nothing is trained yet."
)


def render_preview_page(preview: Mapping[str, Any]) -> str:
    """A page with mask gallery and size histograms of every space.

    `preview` has the schema "archwright/preview/1"; sizes are shares of the non-embedding parameters.
    """
    sizes = {name: fact(str(preview.get(name) or "")) for name in ("layers", "heads", "units")}
    return render_page(
        f"{preview['model']}: what can be removed",
        [],
        command=f"archwright compress --preview · family {fact(preview.get('family'))}",
        lead=preview_headline(preview),
        data={"preview": preview},
        template="preview.html",
        context={"note": NOTE.format(**sizes)},
        scripts=("preview.js",),
        plotly=False,
    )


def preview_headline(preview: Mapping[str, Any]) -> str:
    total, fixed = preview["parameters"], preview["embedding_parameters"]
    if not total or fixed is None:
        return "The sizes of this model are not known."
    left = f"the smallest reachable network has {count(preview['smallest_parameters'])}"
    return f"{count(total)} parameters, {percent(fixed / total, 1)} of them embeddings that stay; {left}."


def preview_text(preview: Mapping[str, Any]) -> Group:
    """What can be removed: the headline, one small histogram per space, and an example of its head masks."""
    from rich.console import Group
    from rich.text import Text

    head = ("space", "networks", "sizes of random samples, 0 to 100 %", "middle half")
    spaces = table(head, [[name, *space_cells(space)] for name, space in preview["spaces"].items()], left=range(4))
    model = f"{preview['model']}: {preview['layers']} layers, {preview['heads']} heads, {preview['units']} units"
    masks = [  # a random mask of every space side by side: layers downwards, heads across
        Column(name, ["".join("■" if kept else "·" for kept in layer) for layer in space["gallery"][0]], left=True)
        for name, space in preview["spaces"].items()
        if space["gallery"]
    ]
    gallery = ReportTable(masks, "heads kept (■) in a random sub-network", gap=2)
    return Group(Text(model), Text(preview_headline(preview)), Text(""), spaces, Text(""), gallery)


def space_cells(space: Mapping[str, Any]) -> tuple[str, str, str]:
    shares = sorted(share for share in space["shares"] if share is not None)
    size = space.get("size_log10")
    networks = DASH if size is None else f"10^{size:.1f}"
    if not shares:
        return networks, DASH, DASH
    quarter, last = len(shares) // 4, len(shares) - 1
    return networks, text_histogram(shares, 35), f"{percent(shares[quarter])} to {percent(shares[last - quarter])}"
