"""What `archwright discover` shows: the best formulas for the terminal, and a page with the whole space."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from archwright.reports.discover.evolution import evolution_sections
from archwright.reports.discover.mathml import formula_mathml
from archwright.reports.figures.panels import (
    COLOURS,
    GREY,
    Figure,
    Panel,
    Trace,
    axis_title,
    figure,
    group,
    plotly_text,
    scatter,
)
from archwright.reports.numbers import DASH, decimal, estimate, number, shorten
from archwright.reports.page import Block, Card, Section, Site, facts, plot, render_page, section
from archwright.reports.tables import Cell, Column, ReportTable, table

Document = Mapping[str, Any]
Formula = Mapping[str, Any]
TALLEST = 0.98
"""Share of the height of a histogram at which marks of proxies begin."""
ROWS = 5
"""Marks above each other, so that neighbours can be told apart."""
NORMALISED = "_normalised"
HELD_OUT = {"held_out": "held out, Spearman", "within_cells": "held out, within cells"}
OPTIONS = (
    *("benchmark", "variant", "target", "n", "networks", "unary", "reduction", "factor", "fitness", "seed", "batch"),
    *("loss", "data", "commit"),
)
PUBLISHED = "Where known proxies lie; forms that only divide by a number of modules are in the picture and in --json"
HISTOGRAM = (
    "How well every formula of the space ranks all rows, by the fitness of the search; published proxies are marked "
    "where they lie. The best formula of a large space looks better here than it is: trust the rows kept away."
)
SIZES = (
    "The best formula of each size: on the rows it was chosen on, and cross-fitted on rows that took no part, with "
    "95 % intervals (networks and splits drawn anew, twins together)."
)
FORMULAS_NOTE = (
    "The index l goes over the L layers; theta, W, G and the like are tensors of a layer, and where a branch leaves "
    "a tensor, its mean counts."
)
TABLE = (
    "Each formula was chosen on all rows. Its numbers on held-out rows are those of formulas chosen in the same way "
    "without a fifth of the networks, on that fifth, the fifths pooled: means over all splits into fifths, with 95 % "
    "intervals over networks and splits. The last row is, for each set of rows, the smallest formula within one "
    "standard error of the best: a choice that rows kept away take no part in."
)
BY_SIZE, ONE_ERROR = "best of its size or less", "within one standard error"
COUNTED = (
    "Every statistic of the formulas above beside the nearest product of powers, or sum of logarithms, of counts; the "
    "error is the largest of any layer of 16 networks. Half: median of the statistic with half of the texts, relative "
    "to that with all."
)
FRONT = "Formulas that no other beats in Spearman, within cells and size at once, on all rows: an upper bound."


def discover_table(document: Document) -> ReportTable:
    """The best formulas by size, for `Console.print`; `document` has the schema "archwright/discover/1"."""
    return ReportTable(formula_columns(document, longest=60, tau="tau"), discover_headline(document))


def formula_columns(document: Document, *, longest: int, tau: str) -> list[Column]:
    """One row per formula, whose text has at most so many characters; the choice of one standard error last."""
    simplest = document.get("simplest")
    best: Sequence[Formula] = [*(document.get("best") or ()), *([simplest] if simplest else [])]
    kinds = [BY_SIZE] * len(best)
    if simplest:
        kinds[-1] = ONE_ERROR
    return [
        Column("formula", [formula_cell(each, longest) for each in best], left=True),
        Column("chosen as", kinds, left=True, drop=3),
        Column("size", [str(each.get("size", DASH)) for each in best]),
        Column("train", [decimal(number(each, "train", "spearman"), 3) for each in best]),
        Column("held out", [estimate(each.get("held_out")) for each in best]),
        Column("within cells", [estimate(each.get("within_cells")) for each in best]),
        Column(tau, [estimate(each.get("kendall_b")) for each in best], drop=1),
        Column("verdict", [str(each.get("verdict") or DASH) for each in best], drop=2, left=True),
    ]


def formula_cell(entry: Formula, longest: int = 10_000) -> Cell:
    """A formula as text of at most so many characters, and as mathematics where its tree can be read."""
    words = str(entry.get("formula"))
    try:
        math = formula_mathml(entry["json"], words)
    except (KeyError, TypeError, AttributeError):  # of an earlier version, or damaged
        math = None
    return Cell(shorten(words, longest), math=math)


def discover_headline(document: Document) -> str:
    """One sentence: how many formulas, and what the best is worth."""
    best: Sequence[Formula] = document.get("best") or ()
    different = document.get("formulas_canonical")
    how = "all ranked" if document.get("histogram") else "searched by evolution"
    total = f"{document.get('formulas_total'):,}" if different else ""
    space = f"{different:,} different formulas of {total}, {how}" if different else "Formulas"
    if not best:
        return f"{space}; none is usable."
    return f"{space}: the best ranks rows kept away with Spearman {estimate(best[0].get('held_out'))}."


def render_discover_page(document: Document, *, site: Site | None = None) -> str:
    """A page that opens from disk without any network; sections whose data is missing are left out."""
    best: Sequence[Formula] = document.get("best") or ()
    counts = {"Formulas": "formulas_total", "Different": "formulas_canonical", "Usable": "formulas_valid"}
    known = {name: document[key] for name, key in counts.items() if document.get(key) is not None}
    cards: list[Card] = [(name, f"{value:,}", "") for name, value in known.items()]
    for name, key in {"Held out, Spearman": "held_out", "Within cells": "within_cells"}.items():
        cards += [(name, estimate(best[0].get(key)), "")] if best else []
    return render_page(
        f"{document.get('benchmark') or DASH}: proxies as formulas",
        discover_sections(document),
        command="archwright discover",
        lead=discover_headline(document),
        cards=cards,
        schema=str(document.get("schema", DASH)),
        explore=True,
        site=site,
    )


def discover_sections(document: Document) -> list[Section | None]:
    formulas = ReportTable(formula_columns(document, longest=10_000, tau="Kendall tau-b"))
    return [
        section("best", "The best formulas", f"{TABLE} {FORMULAS_NOTE}", formulas) if document.get("best") else None,
        counts_section(document),
        histogram_section(document),
        sizes_section(document),
        transfer_section(document),
        *evolution_sections(document),
        front_section(document),
        made_section(document),
    ]


def counts_section(document: Document) -> Section | None:
    """What the statistics of the formulas really are."""
    counts = document.get("counts") or {}
    rows = [
        [
            str(each["statistic"]),
            str(each["is"] or DASH),
            f"{100 * each['error']:.2g} %" if each["error"] is not None else DASH,
            "yes" if each["count"] else "no",
            decimal(each["with_half_the_texts"], 3) if each["depends_on_batch"] else "same",
        ]
        for each in counts.get("statistics") or ()
    ]
    if not rows:
        return None
    head = ("statistic", "nearest closed form", "error", "a count", "half")
    return section("counts", "What they count", COUNTED, table(head, rows, left=(0, 1)), short="Counts")


def histogram_section(document: Document) -> Section | None:
    histogram, published = document.get("histogram"), document.get("published") or ()
    if not histogram or not any(histogram["counts"]):
        return None
    blocks: list[Block] = [plot(histogram_figure(histogram, published))]
    rows = [
        [str(each["proxy"]), str(each.get("origin") or DASH), decimal(each["fitness"], 3), f"{each['percentile']:.1f}"]
        for each in published
        if not str(each["proxy"]).endswith(NORMALISED)
    ]
    head = ("proxy", "origin", "fitness", "formulas below it, %")
    blocks += [table(head, rows, title=PUBLISHED, left=(0, 1))] if rows else []
    return section("space", "The whole space", HISTOGRAM, *blocks, short="Space")


def histogram_figure(histogram: Mapping[str, Any], published: Sequence[Mapping[str, Any]]) -> Figure:
    edges, counts = np.array(histogram["edges"]), np.array(histogram["counts"])
    bars: Trace = {
        "type": "bar", "x": ((edges[1:] + edges[:-1]) / 2).round(4).tolist(), "y": counts.tolist(),
        "marker": {"color": COLOURS[0]}, "hovertemplate": "%{x:.3f}: %{y} formulas<extra></extra>", **group("formulas"),
    }  # fmt: skip
    top = float(counts.max())
    marks = scatter(
        [round(each["fitness"], 4) for each in published],
        [top * (TALLEST - 0.04 * (place % ROWS)) for place in range(len(published))],
        text=[plotly_text(f"{each['proxy']} ({each['percentile']:.1f} %)") for each in published],
        marker={"symbol": "diamond", "size": 8, "color": COLOURS[1]},
        hovertemplate="%{text}: %{x:.3f}<extra></extra>",
        **group("known proxies"),
    )
    x = axis_title(f"fitness ({histogram.get('of') or 'spearman'})", range=[-1, 1])
    return figure([Panel("", [bars, marks], x, "formulas")], columns=1, height=360)


def sizes_section(document: Document) -> Section | None:
    best: Sequence[Formula] = [each for each in document.get("best") or () if number(each, "held_out", "value")]
    if not best:
        return None
    hollow = {"color": GREY, "symbol": "circle-open", "size": 9}
    chosen = size_trace(best, ("train", "spearman"), marker=hollow, **group("on the rows it was chosen on"))
    traces = [chosen]
    for place, (key, words) in enumerate(HELD_OUT.items()):
        known = [each for each in best if number(each, key, "value") is not None]
        ends = {
            name: [abs((each[key][end] if each[key][end] is not None else each[key]["value"]) - each[key]["value"])
                   for each in known]
            for name, end in (("array", "high"), ("arrayminus", "low"))
        }  # fmt: skip
        look = {"error_y": {"type": "data", **ends, "thickness": 1.2, "width": 3}, **group(words)}
        traces.append(size_trace(known, (key, "value"), marker={"color": COLOURS[place], "size": 9}, **look))
    points = figure([Panel("", traces, "size of the formula", "rank correlation")], columns=1)
    return section("sizes", "Accuracy against size", SIZES, plot(points), short="Size")


def size_trace(formulas: Sequence[Formula], keys: tuple[str, str], **look: Any) -> Trace:
    """A number of every formula against its size."""
    return scatter(
        [each["size"] for each in formulas],
        [number(each, *keys) for each in formulas],
        text=[plotly_text(each["formula"]) for each in formulas],
        hovertemplate="%{text}: %{y:.3f}<extra></extra>",
        **look,
    )


def front_section(document: Document) -> Section | None:
    rows = [
        [str(each["formula"]), str(each["size"]), decimal(each["spearman"], 3), decimal(each["within_cells"], 3)]
        for each in document.get("front") or ()
    ]
    front = table(("formula", "size", "Spearman", "within cells"), rows)
    return section("front", "Pareto front", FRONT, front) if rows else None


def made_section(document: Document) -> Section:
    panels = {
        "Search": {name: document.get(name) for name in OPTIONS},
        "Seconds": {**(document.get("seconds") or {}), "peak memory, MB": document.get("peak_mb")},
        "Environment": document.get("environment") or {},
    }
    return section("made", "How it was made", "", facts(panels))


MOST_PUBLISHED = 15
"""Published proxies on the page; all are in --json."""


NOTE = (
    "Each formula was found on one benchmark, by its whole search, and is judged on the others, whose rows took no "
    "part: Spearman, in brackets Kendall's tau-b. Where it was found its number (*) is cross-fitted. Dashes say what "
    "the networks there do not have."
)


def transfer_table(document: Mapping[str, Any]) -> ReportTable:
    """Found formulas on every benchmark, for `Console.print`."""
    rows = [row for row in document["transfer"] if row.get("found_on")]
    columns = [
        Column("formula", [shorten(str(row["formula"]), 50) for row in rows], left=True),
        Column("found on", [str(row["found_on"]) for row in rows], left=True),
    ]
    for name in rows[0]["on"]:
        entries = [row["on"][name] for row in rows]
        columns.append(Column(name, [DASH if entry.get("missing") else entry_text(entry) for entry in entries]))
    return ReportTable(
        columns, "Spearman (Kendall's tau-b) of each on all benchmarks; * cross-fitted, where it was found."
    )


def entry_text(entry: Mapping[str, Any]) -> str:
    """0.91 (0.74)*, or why there is none."""
    if entry.get("missing"):
        return f"{DASH} {entry['missing']}"
    rho, tau = (decimal(number(entry, key, "value"), 3) for key in ("held_out", "kendall_b"))
    return f"{rho} ({tau}){'*' if entry.get('cross_fitted') else ''}"


def transfer_section(document: Mapping[str, Any]) -> Section | None:
    rows: Sequence[Mapping[str, Any]] = document.get("transfer") or ()
    if not rows:
        return None
    names = list(rows[0]["on"])
    formulas = [row for row in rows if row.get("found_on")]
    published = [row for row in rows if row.get("proxy") and spearman(row, names[0]) is not None]
    published = sorted(published, key=lambda row: -(spearman(row, names[0]) or 0.0))[:MOST_PUBLISHED]
    tables = []
    for first, second, chosen in (("formula", "found_on", formulas), ("proxy", "origin", published)):
        cells = [[row[first], row[second], *map(entry_text, row["on"].values())] for row in chosen]
        if cells or first == "formula":
            tables.append(table((first, second.replace("_", " "), *names), cells, left=(0, 1)))
    traces = []
    for place, name in enumerate(names):
        known = [row for row in formulas if spearman(row, name) is not None]
        trace = scatter(
            [spearman(row, name) for row in known],
            [plotly_text(f"{row['formula']} [{row['found_on']}]") for row in known],
            marker={"color": COLOURS[place], "size": 9},
            hovertemplate="%{y}: %{x:.3f}<extra></extra>",
            **group(f"on {name}"),
        )
        traces.append(trace)
    panel = Panel("", traces, "Spearman", axis_title("", automargin=True))
    dots = plot(figure([panel], columns=1, height=140 + 26 * len(formulas)))
    return section("transfer", "Transfer between benchmarks", NOTE, dots, *tables, short="Transfer")


def spearman(row: Mapping[str, Any], benchmark: str) -> float | None:
    return number(row["on"][benchmark], "held_out", "value")
