"""The page of a ranking: sentence, table and pictures; a picture is there when its data is."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from archwright.reports.figures.parts import Figure
from archwright.reports.measures import DASH
from archwright.reports.page import panels_page
from archwright.reports.panels import Block, Card, Section, facts, plot, plots, section, text
from archwright.reports.rank import notes
from archwright.reports.rank.axes import Axis, axes_of, points_of
from archwright.reports.rank.bars import bar_figures
from archwright.reports.rank.rows import (
    BASELINE,
    DEPTH_WIDTH,
    PARAMETERS,
    Document,
    bounds,
    decimal,
    equal_in,
    headline,
    known,
    proxies,
    ranked,
    reference,
)
from archwright.reports.rank.studies import box_figures, eta_figure, powers_figure, scree_figure
from archwright.reports.rank.tables import missing_table, parity_table, published_table, rank_rows, verdict_table
from archwright.reports.rank.terminal import ceiling_words, setting
from archwright.reports.rank.xray import xray_figures

STYLES, SCRIPTS = ("rank.css",), ("statistics.js", "clouds.js", "rank.js")
NORMALISED = "_normalised"
FEW = 2
"""Architectures a picture needs at least."""


def rank_html(document: Document) -> str:
    """A page that opens from disk without any network, from a document of schema "archwright/rank/1".

    Any number may be None; sections whose data is missing are left out.
    """
    axes = axes_of(document)
    sections = [made for make in SECTIONS for made in [make(document, axes)] if made]
    name = f"{document.get('benchmark') or DASH}: what untrained networks tell"
    head = {"eyebrow": "archwright rank", "title": name, "lead": headline(document), "cards": cards(document)}
    foot = f"{document.get('schema', DASH)}. This file needs no network."
    drawn = {"axes": axes, "points": points_of(document)}
    return panels_page({**head, **drawn, "sections": sections, "footer": foot}, name, styles=STYLES, scripts=SCRIPTS)


def cards(document: Document) -> list[Card]:
    rows = proxies(ranked(document))
    ceiling = document.get("noise_ceiling") or {}
    best = [("Best proxy, Spearman", decimal(known(rows[0], "spearman")), str(rows[0].get("proxy")))] if rows else []
    lines = {"Parameters alone": PARAMETERS, "Depth and width": DEPTH_WIDTH}
    found = {words: reference(document, names) for words, names in lines.items()}
    baselines = [
        (words, decimal(known(row, "spearman")), bounds(row, "spearman")) for words, row in found.items() if row
    ]
    top = (
        [("Noise ceiling", decimal(known(ceiling, "value")), f"from {ceiling.get('kind') or DASH}")] if ceiling else []
    )
    number = f"{known(document, 'n') or 0:,.0f}"
    return [("Architectures", number, str(document.get("variant") or "")), *best, *baselines, *top]


def table_section(document: Document, axes: list[Axis]) -> Section:
    words = f"{setting(document)}{ceiling_words(document)} {notes.TABLE}"
    blocks = [rank_rows(ranked(document)), *verdict_table(ranked(document)), *missing_table(ranked(document))]
    return section("table", "All numbers", words, *blocks, short="Numbers")


def bars_section(document: Document, axes: list[Axis]) -> Section | None:
    figures = bar_figures(document)
    return section("bars", "Who ranks well", notes.BARS, plots(figures, "Shown"), short="Bars") if figures else None


def scatter_section(document: Document, axes: list[Axis]) -> Section | None:
    shown = scored(axes)
    if not shown or not trained(axes):
        return None
    block = {"kind": "scatter", "choices": shown, "against": 0, "chosen": first(axes)}
    return section("scatter", "Each proxy against the trained score", notes.SCATTER, block, short="Scatter")


def cells_section(document: Document, axes: list[Axis]) -> Section | None:
    if not (trained(axes) and scored(axes) and len(points_of(document)["cells"]) >= FEW):
        return None
    block = {"kind": "cells", "choices": scored(axes), "against": 0, "chosen": first(axes)}
    return section("cells", f"Among networks of equal {equal_in(document)}", notes.CELLS, block, short="Within cells")


def sides_section(document: Document, axes: list[Axis]) -> Section | None:
    places = {axis["name"]: place for place, axis in enumerate(axes)}
    pairs = [
        [places[raw], place]
        for name, place in places.items()
        if (raw := name.removesuffix(NORMALISED)) in places and raw != name
    ]
    if not pairs or not trained(axes):
        return None
    return section(
        "normalised", "Raw and normalised", notes.NORMALISED, {"kind": "sides", "pairs": pairs, "against": 0}
    )


def pair_section(document: Document, axes: list[Axis]) -> Section | None:
    if len(axes) < FEW:
        return None
    block = {"kind": "pair", "x": first(axes), "y": 0}
    return section("pair", "Score against score, rank against rank", notes.PAIR, block, short="Two scores")


def boxes_section(document: Document, axes: list[Axis]) -> Section | None:
    figures = box_figures(document)
    block: Block = {
        "kind": "menus",
        "figures": [[list(w), f] for w, f in figures.items()],
        "labels": ["Proxy", "Varied"],
    }
    return section("ablation", "Seeds and batches", notes.ABLATION, block, short="Ablations") if figures else None


def drawn(key: str, name: str, title: str, note: str, draw: Callable[[Any], Figure], short: str = "") -> "Make":
    """A section of one plot for what stands under a key."""

    def make(document: Document, axes: list[Axis]) -> Section | None:
        return section(name, title, note, plot(draw(document[key])), short=short) if document.get(key) else None

    return make


def xray_section(document: Document, axes: list[Axis]) -> Section | None:
    figures = xray_figures(document.get("xray") or ())
    return (
        section("xray", "The space under an x-ray", notes.XRAY, plots(figures, "Shown"), short="X-ray")
        if document.get("xray")
        else None
    )


def published_section(document: Document, axes: list[Axis]) -> Section | None:
    found = document.get("published")
    return (
        section(
            "published",
            "The papers' numbers beside ours",
            notes.PUBLISHED,
            published_table(document),
            short="Published",
        )
        if found
        else None
    )


def parity_section(document: Document, axes: list[Axis]) -> Section | None:
    found = document.get("parity")
    return (
        section("parity", "Parity with the published scores", notes.PARITY, parity_table(found), short="Parity")
        if found
        else None
    )


def notes_section(document: Document, axes: list[Axis]) -> Section | None:
    words = [str(note) for note in document.get("notes") or ()]
    return section("notes", "Notes", "", text(*words)) if words else None


def made_section(document: Document, axes: list[Axis]) -> Section:
    run = {key: document.get(key) for key in ("benchmark", "variant", "target", "n", "seed")}
    environment: Mapping[str, Any] = document.get("environment") or {}
    return section("made", "How it was made", "", facts({"Ranking": run, "Environment": plain(environment)}))


def plain(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Terms and values as text."""
    return {str(key): None if value is None else spoken(value) for key, value in values.items()}


def spoken(value: Any) -> str:
    """Lists without brackets, numbers as one reads them, all else as it is written in JSON or by itself."""
    if isinstance(value, list | tuple):
        return ", ".join(map(spoken, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) else f"{value:.5g}"
    return json.dumps(value, default=str) if isinstance(value, Mapping) else str(value)


def trained(axes: list[Axis]) -> bool:
    return bool(axes) and axes[0]["group"] == "trained" and axes[0]["known"] >= FEW


def scored(axes: list[Axis]) -> list[int]:
    return [place for place, axis in enumerate(axes) if axis["group"] not in ("trained", "size")]


def first(axes: list[Axis]) -> int:
    """The best proxy that is no baseline, else the last axis there is."""
    better = (place for place in scored(axes) if axes[place]["group"] != BASELINE)
    return next(better, (scored(axes) or [len(axes) - 1])[0])


Make = Callable[[Document, list[Axis]], Section | None]

SECTIONS: tuple[Make, ...] = (
    bars_section,
    table_section,
    scatter_section,
    cells_section,
    sides_section,
    pair_section,
    boxes_section,
    xray_section,
    drawn("spectra", "scree", "Eigenvalues of one network", notes.SCREE, scree_figure, "Scree"),
    drawn("eta", "eta", "How much variance to count", notes.ETA, eta_figure, "η"),
    drawn("powers", "powers", "Parameters and V-PCA, mixed", notes.POWERS, powers_figure, "Powers"),
    published_section,
    parity_section,
    notes_section,
    made_section,
)
"""In the order of the page."""
