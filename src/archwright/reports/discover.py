"""What `archwright discover` shows: the best formulas for the terminal, and a page with the whole space."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.reports.discover_evolution import EVOLUTION_SECTIONS
from archwright.reports.discover_transfer import transfer_section
from archwright.reports.figures.parts import COLOURS, GREY, Figure, Panel, Trace, figure, group, plain_text, title
from archwright.reports.measures import DASH
from archwright.reports.page import panels_page
from archwright.reports.panels import Card, Section, facts, plot, section, table
from archwright.reports.rank.page import SCRIPTS, STYLES, plain
from archwright.reports.rank.rows import decimal
from archwright.reports.rank.terminal import Cells, Fitting, shortened

Document = Mapping[str, Any]
Best = Mapping[str, Any]
TALLEST = 0.98
"""Share of the height of a histogram at which marks of proxies begin."""
ROWS = 5
"""Marks above each other, so that neighbours can be told apart."""
NORMALISED = "_normalised"
KNOWN = "Where known proxies lie; forms that only divide by a number of modules are in the picture and in --json"
HISTOGRAM = (
    "How well every formula of the space ranks all rows, by the fitness of the search; published proxies are marked "
    "where they lie. The best formula of a large space looks better here than it is: trust the rows kept away."
)
SIZES = (
    "The best formula of each size: on the rows it was chosen on, and cross-fitted on rows that took no part, with "
    "95 % intervals (networks drawn anew, twins together)."
)
TABLE = (
    "Each formula was chosen on all rows. Its numbers on held-out rows are those of formulas chosen in the same way "
    "without a fifth of the networks, on that fifth; the fifths are pooled and were looked at once."
)


def discover_table(document: Document) -> Fitting:
    """The best formulas by size, for `Console.print`; `document` has the schema "archwright/discover/1"."""
    best: Sequence[Best] = document.get("best") or ()
    columns = [
        Cells("formula", [shortened(str(one.get("formula")), 60) for one in best], left=True),
        Cells("size", [str(one.get("size", DASH)) for one in best]),
        Cells("train", [decimal(spearman(one), 3) for one in best]),
        Cells("held out", [estimate(one.get("held_out")) for one in best]),
        Cells("within cells", [estimate(one.get("within_cells")) for one in best]),
        Cells("tau", [estimate(one.get("kendall_b")) for one in best], drop=1),
        Cells("verdict", [str(one.get("verdict") or DASH) for one in best], drop=2, left=True),
    ]
    return Fitting(columns, headline(document))


def spearman(one: Best) -> float | None:
    value = (one.get("train") or {}).get("spearman")
    return None if value is None else float(value)


def estimate(of: Mapping[str, Any] | None) -> str:
    """0.94 (0.91 to 0.96)."""
    if not of or of.get("value") is None:
        return DASH
    ends = "" if of.get("low") is None else f" ({decimal(of['low'])} to {decimal(of['high'])})"
    return f"{decimal(of['value'], 3)}{ends}"


def headline(document: Document) -> str:
    """One sentence: how many formulas, and what the best is worth."""
    best: Sequence[Best] = document.get("best") or ()
    number = document.get("formulas_canonical")
    how = "all ranked" if document.get("histogram") else "searched by evolution"
    space = f"{number:,} different formulas of {document.get('formulas_total'):,}, {how}" if number else "Formulas"
    if not best:
        return f"{space}; none is usable."
    return f"{space}: the best ranks rows kept away with Spearman {estimate(best[0].get('held_out'))}."


def discover_html(document: Document) -> str:
    """A page that opens from disk without any network; sections whose data is missing are left out."""
    sections = [made for make in SECTIONS for made in [make(document)] if made]
    name = f"{document.get('benchmark') or DASH}: proxies as formulas"
    head = {"eyebrow": "archwright discover", "title": name, "lead": headline(document), "cards": cards(document)}
    foot = f"{document.get('schema', DASH)}. This file needs no network."
    return panels_page({**head, "sections": sections, "footer": foot}, name, styles=STYLES, scripts=SCRIPTS)


def cards(document: Document) -> list[Card]:
    best: Sequence[Best] = document.get("best") or ()
    numbers = {"Formulas": "formulas_total", "Different": "formulas_canonical", "Usable": "formulas_valid"}
    found = [(words, f"{document[key]:,}", "") for words, key in numbers.items() if document.get(key) is not None]
    words = {"Held out, Spearman": "held_out", "Within cells": "within_cells"}
    return [*found, *((name, estimate(best[0].get(key)), "") for name, key in words.items() if best)]


def table_section(document: Document) -> Section | None:
    best: Sequence[Best] = document.get("best") or ()
    head = ("formula", "size", "train", "held out", "within cells", "Kendall tau-b", "verdict")
    keys = ("held_out", "within_cells", "kendall_b")
    rows = [
        [
            *(str(one.get("formula")), str(one.get("size", DASH)), decimal(spearman(one), 3)),
            *(estimate(one.get(key)) for key in keys),
            str(one.get("verdict") or DASH),
        ]
        for one in best
    ]
    return section("best", "The best formulas", TABLE, table(head, rows, left=(0, 6))) if rows else None


def histogram_section(document: Document) -> Section | None:
    found = document.get("histogram")
    if not found or not any(found["counts"]):
        return None
    blocks = [plot(histogram(found, document.get("published") or ()))]
    rows = [
        [str(one["proxy"]), str(one.get("origin") or DASH), decimal(one["fitness"], 3), f"{one['percentile']:.1f}"]
        for one in document.get("published") or ()
        if not str(one["proxy"]).endswith(NORMALISED)
    ]
    head = ("proxy", "origin", "fitness", "formulas below it, %")
    blocks += [table(head, rows, caption=KNOWN, left=(0, 1))] if rows else []
    return section("space", "The whole space", HISTOGRAM, *blocks, short="Space")


def histogram(found: Mapping[str, Any], published: Sequence[Mapping[str, Any]]) -> Figure:
    edges, counts = np.array(found["edges"]), np.array(found["counts"])
    middle = (edges[1:] + edges[:-1]) / 2
    bars: Trace = {
        "type": "bar", "x": middle.round(4).tolist(), "y": counts.tolist(), "marker": {"color": COLOURS[0]},
        "hovertemplate": "%{x:.3f}: %{y} formulas<extra></extra>", **group("formulas"),
    }  # fmt: skip
    top = float(counts.max())
    marks: Trace = {
        "type": "scatter", "mode": "markers", "x": [round(one["fitness"], 4) for one in published],
        "y": [top * (TALLEST - 0.04 * (place % ROWS)) for place in range(len(published))],
        "text": [plain_text(f"{one['proxy']} ({one['percentile']:.1f} %)") for one in published],
        "marker": {"symbol": "diamond", "size": 8, "color": COLOURS[1]},
        "hovertemplate": "%{text}: %{x:.3f}<extra></extra>", **group("known proxies"),
    }  # fmt: skip
    x = {**title(f"fitness ({found.get('of') or 'spearman'})"), "range": [-1, 1]}
    return figure([Panel("", [bars, marks], x, title("formulas"))], columns=1, height=360)


def sizes_section(document: Document) -> Section | None:
    best: Sequence[Best] = [one for one in document.get("best") or () if (one.get("held_out") or {}).get("value")]
    if not best:
        return None
    chosen: Trace = {
        "type": "scatter", "mode": "markers", "x": [one["size"] for one in best],
        "y": [spearman(one) for one in best], "marker": {"color": GREY, "symbol": "circle-open", "size": 9},
        "text": [plain_text(one["formula"]) for one in best],
        "hovertemplate": "%{text}: %{y:.3f}<extra></extra>", **group("on the rows it was chosen on"),
    }  # fmt: skip
    traces = [chosen, *(held(best, key, words, place) for place, (key, words) in enumerate(HELD.items()))]
    drawn = figure([Panel("", traces, title("size of the formula"), title("rank correlation"))], columns=1)
    return section("sizes", "Accuracy against size", SIZES, plot(drawn), short="Size")


HELD = {"held_out": "held out, Spearman", "within_cells": "held out, within cells"}


def held(best: Sequence[Best], key: str, words: str, place: int) -> Trace:
    known = [one for one in best if (one.get(key) or {}).get("value") is not None]
    ends = {
        name: [
            abs((one[key][end] if one[key][end] is not None else one[key]["value"]) - one[key]["value"])
            for one in known
        ]
        for name, end in (("array", "high"), ("arrayminus", "low"))
    }
    return {
        "type": "scatter", "mode": "markers", "x": [one["size"] for one in known],
        "y": [one[key]["value"] for one in known], "error_y": {"type": "data", **ends, "thickness": 1.2, "width": 3},
        "marker": {"color": COLOURS[place], "size": 9}, "text": [plain_text(one["formula"]) for one in known],
        "hovertemplate": "%{text}: %{y:.3f}<extra></extra>", **group(words),
    }  # fmt: skip


def front_section(document: Document) -> Section | None:
    front = document.get("front") or ()
    rows = [
        [str(one["formula"]), str(one["size"]), decimal(one["spearman"], 3), decimal(one["within_cells"], 3)]
        for one in front
    ]
    note = "Formulas that no other beats in Spearman, within cells and size at once, on all rows: an upper bound."
    head = ("formula", "size", "Spearman", "within cells")
    return section("front", "Pareto front", note, table(head, rows)) if rows else None


def made_section(document: Document) -> Section:
    names = (
        "benchmark",
        "variant",
        "target",
        "n",
        "networks",
        "unary",
        "reduction",
        "factor",
        "fitness",
        "seed",
        "batch",
        "loss",
    )
    found = {name: document.get(name) for name in (*names, "data", "commit")}
    cost = {**(document.get("seconds") or {}), "peak memory, MB": document.get("peak_mb")}
    return section(
        "made",
        "How it was made",
        "",
        facts(
            {"Search": plain(found), "Seconds": plain(cost), "Environment": plain(document.get("environment") or {})}
        ),
    )


SECTIONS = (
    table_section,
    histogram_section,
    sizes_section,
    transfer_section,
    *EVOLUTION_SECTIONS,
    front_section,
    made_section,
)
